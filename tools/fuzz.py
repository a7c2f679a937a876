"""Try every fuzz target with 10,000 examples and record the result.

Run as `make fuzz`, or as `python tools/fuzz.py --examples N [TARGET ...]`, which records nothing.
The result is written to benchmarks/results/fuzz.json: for each target who writes what it reads,
examples, seconds, the megabytes of its process at most, and whether it held. Each target has a
process of its own. Examples differ from run to run; one that fails is printed and kept by
Hypothesis, and is tried first the next time.
"""

import argparse
import json
import os
import platform
import resource
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks" / "results" / "fuzz.json"
EXAMPLES = 10_000
sys.path.insert(0, str(ROOT))


def fuzz(name: str, examples: int) -> dict[str, Any]:
    """One row of the result; for a fresh process."""
    from tests.fuzz.examination import examine
    from tests.fuzz.targets import TARGETS

    target = next(target for target in TARGETS if target.name == name)
    begin = time.perf_counter()
    try:
        tried, held = examine(target, examples), True
    except BaseException:
        traceback.print_exc()
        tried, held = 0, False
    return {
        "target": name,
        "written by": target.written_by,
        "examples": f"{tried:,}",
        "seconds": f"{time.perf_counter() - begin:.0f}",
        "MB at most": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "held": "yes" if held else "no",
    }


def main() -> int:
    """Try the targets, print and record; 1 if one did not hold."""
    from tests.fuzz.targets import TARGETS

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", help="names of targets; all of them if left out")
    parser.add_argument("--examples", type=int, default=EXAMPLES)
    options = parser.parse_args()
    names = options.targets or [target.name for target in TARGETS]
    with ProcessPoolExecutor(
        os.cpu_count(), mp_context=get_context("spawn"), max_tasks_per_child=1
    ) as pool:
        rows = []
        for row in pool.map(partial(fuzz, examples=options.examples), names):
            print("  ".join(str(value) for value in row.values()), flush=True)
            rows.append(row)
    if not options.targets and options.examples >= EXAMPLES:
        measured = {
            "date": datetime.now(UTC).date().isoformat(),
            "python": platform.python_version(),
            "hypothesis": version("hypothesis"),
            "cores": os.cpu_count(),
        }
        RESULT.write_text(json.dumps({"measured_on": measured, "targets": rows}, indent=1) + "\n")
        print(f"recorded in {RESULT.relative_to(ROOT)}")
    return 0 if all(row["held"] == "yes" for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
