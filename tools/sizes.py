"""Report the sizes of the modules, very small ones, and names that are used twice."""

import statistics
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src"
SMALL = 40
SHARED = ("__init__", "__main__", "base", "harness")
"""Names that several modules may have."""


def main() -> None:
    """Print the count, the largest modules, the small ones and the repeated names."""
    lines = {path: len(path.read_text().splitlines()) for path in SOURCE.rglob("*.py")}
    median = statistics.median(lines.values())
    print(f"{len(lines)} modules, {sum(lines.values()):,} lines, median {median:.0f}")
    by_size = sorted(lines, key=lambda path: (-lines[path], path))
    _show("largest", {path: lines[path] for path in by_size[:5]})
    named = [path for path in by_size if path.stem not in SHARED]
    _show(f"under {SMALL} lines", {path: lines[path] for path in named if lines[path] < SMALL})
    places = defaultdict(list)
    for path in named:
        places[path.stem].append(path)
    repeated = [path for paths in places.values() if len(paths) > 1 for path in paths]
    _show("names used more than once", {path: lines[path] for path in repeated})


def _show(title: str, lines: dict[Path, int]) -> None:
    print(f"{title}: {len(lines) or 'none'}")
    for path, count in lines.items():
        print(f"{count:5d}  {path.relative_to(SOURCE)}")


if __name__ == "__main__":
    main()
