"""Findings: what a check looked at, and whether it passed."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["passed", "noted", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was checked: it passed, failed, or is worth knowing.

    >>> print(Finding(kind="noted", about="test", detail="no sealed test", advice=""))
    noted: test: no sealed test
    """

    kind: Kind
    about: str
    detail: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.about}: {self.detail}" + (
            f" {self.advice}" if self.advice else ""
        )


def passed(about: str, detail: str) -> Finding:
    """Something that is in order."""
    return Finding(kind="passed", about=about, detail=detail)


def noted(about: str, detail: str, advice: str = "") -> Finding:
    """Something that is allowed and worth knowing."""
    return Finding(kind="noted", about=about, detail=detail, advice=advice)


def failed(about: str, detail: str, advice: str = "") -> Finding:
    """Something that must be fixed."""
    return Finding(kind="failed", about=about, detail=detail, advice=advice)


def raise_failed(findings: Iterable[Finding]) -> None:
    """Raise an AssertionError that lists the failed ones; for tests.

    >>> raise_failed([passed("pool", "4 tasks")])
    """
    wrong = [str(finding) for finding in findings if finding.kind == "failed"]
    if wrong:
        raise AssertionError("\n".join(wrong))
