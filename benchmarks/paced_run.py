"""A run that records outcomes at a steady pace, one by one, in a process of its own.

It continues the run in a folder, or opens a new one. When the run is open it prints "ready" and
waits for a line. At the end it writes a row for every outcome: the number of events, the number of
trials and the time after it was committed.
"""

import argparse
import json
import sys
import time
from itertools import count
from pathlib import Path

import engine_runs
import numpy as np

from coevolve.search.journal import Recorder
from coevolve.store import JOURNAL, RunStore


class OverError(Exception):
    """The time of the run is over."""


def write(folder: Path, pace: float, seconds: float) -> list[tuple[int, int, float]]:
    """Record outcomes for some seconds; the rows of what was committed when."""
    rows: list[tuple[int, int, float]] = []
    new = not (folder / JOURNAL).exists()
    with RunStore.create(folder) if new else RunStore.open(folder) as store:
        if new:
            engine_runs._open(store, 1_000_000)
        recorder = Recorder(store)
        recorder.record("session", {"capacity": 10})
        if new:
            engine_runs._make_ready(recorder, recorder.state.starts)
        print("ready", flush=True)
        sys.stdin.readline()
        began = time.monotonic()

        def ended() -> None:
            state = recorder.state
            rows.append((state.events, state.evaluating.trials, time.time()))
            if time.monotonic() - began >= seconds:
                raise OverError
            time.sleep(max(0.0, began + len(rows) / pace - time.monotonic()))

        rng = np.random.default_rng(1)
        try:
            engine_runs._evaluate(recorder, rng, ended)
            if open_round := recorder.state.current_round:  # the run was stopped within it
                recorder.record("settled", {"round": open_round.number})
            for round in count(len(recorder.state.rounds) + 1):
                engine_runs._round(recorder, round, rng, ended)
        except OverError:
            pass
    return rows


def main() -> None:
    """Record outcomes, then write their times to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("times", type=Path)
    parser.add_argument("--pace", type=float, default=100.0, help="outcomes per second")
    parser.add_argument("--seconds", type=float, default=30.0)
    given = parser.parse_args()
    given.times.write_text(json.dumps(write(given.folder, given.pace, given.seconds)))


if __name__ == "__main__":
    main()
