"""Web pages that show runs, live or finished; they only read."""

from coevolve.dashboard.page_access import Access
from coevolve.dashboard.web_server import PageServer, make_app

__all__ = ["Access", "PageServer", "make_app"]
