"""Report the size of every module, largest first, so that none grows unnoticed."""

import statistics
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src"


def main() -> None:
    """Print the five largest modules and the median."""
    lines = {path: len(path.read_text().splitlines()) for path in SOURCE.rglob("*.py")}
    largest = sorted(lines, key=lambda path: lines[path], reverse=True)
    median = statistics.median(lines.values())
    print(f"{len(lines)} modules, {sum(lines.values())} lines, median {median:.0f}; the largest:")
    for path in largest[:5]:
        print(f"{lines[path]:5d}  {path.relative_to(SOURCE)}")


if __name__ == "__main__":
    main()
