"""What a conformance suite found."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["passed", "noted", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing a benchmark was checked for: passed, failed, or worth knowing.

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
    """Something that is as it should be."""
    return Finding(kind="passed", about=about, detail=detail)


def noted(about: str, detail: str, advice: str = "") -> Finding:
    """Something that is allowed and worth knowing."""
    return Finding(kind="noted", about=about, detail=detail, advice=advice)


def failed(about: str, detail: str, advice: str = "") -> Finding:
    """Something that must be put right."""
    return Finding(kind="failed", about=about, detail=detail, advice=advice)
