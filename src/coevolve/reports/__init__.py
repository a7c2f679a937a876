"""A run as one document: a self-contained HTML file or Markdown, and the check of its numbers."""

from coevolve.reports.html_report import html_report
from coevolve.reports.markdown_report import markdown_report
from coevolve.reports.report_check import Finding, check_report
from coevolve.reports.run_document import RunDocument, run_document

__all__ = [
    "Finding",
    "RunDocument",
    "check_report",
    "html_report",
    "markdown_report",
    "run_document",
]
