"""Tables for the terminal, and the same numbers in benchmarks/results."""

import json
import os
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def show(title: str, rows: Sequence[dict[str, Any]]) -> None:
    """Print rows of equal keys as a table."""
    names = list(rows[0])
    cells = [names, *([str(row[name]) for name in names] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(names))]
    print(f"\n{title}")
    for line in cells:
        print(
            "  " + "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        )


def save(name: str, tables: dict[str, Sequence[dict[str, Any]]]) -> None:
    """Write tables to benchmarks/results/NAME.json, with what they were measured on."""
    machine = {
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "scipy": version("scipy"),
        "cores": os.cpu_count(),
        "processor": platform.machine(),
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({"measured_on": machine, **tables}, indent=1) + "\n")
    print(f"\nrecorded in {path.relative_to(Path.cwd(), walk_up=True)}")
