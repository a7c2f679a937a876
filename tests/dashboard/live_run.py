"""A slow run in a process of its own: `python live_run.py FOLDER FILE [TRIALS]`.

It opens the run, or goes on with it. It starts a trial only while there are fewer of them than
the number in FILE says, so that a test decides how far the run gets. It prints a line when it
has the journal.
"""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Self

from coevolve.search.candidate import Candidate
from coevolve.search.loop import Search
from coevolve.search.trials import Result, Trial
from coevolve.store import JOURNAL, RunStore
from tests.dashboard.sample_runs import SampleProposer, act, begin
from tests.search.stubs import StubExecutor


class PacedExecutor(StubExecutor):
    """Runs as many trials as a file allows."""

    def __init__(self, file: Path) -> None:
        super().__init__(capacity=1, act=act)
        self._file = file

    async def run(self, candidate: Candidate, trial: Trial) -> Result:
        while len(self.ran) >= int(self._file.read_text() or 0):
            await asyncio.sleep(0.02)
        return await super().run(candidate, trial)


class LiveRun:
    """The process, as a test holds it.

    Args:
        folder: The run.
        file: Where the number of trials is written.
    """

    def __init__(self, folder: Path, file: Path) -> None:
        self.folder, self._file = folder, file

    def start(self, trials: int) -> Self:
        """Open the run or go on with it, for so many trials at first."""
        self.allow(trials)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.dashboard.live_run", str(self.folder), str(self._file)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "working\n"
        return self

    def allow(self, trials: int) -> None:
        """Let the process run so many trials since it started."""
        new = self._file.with_suffix(".new")
        new.write_text(str(trials))
        new.replace(self._file)

    def wait(self) -> None:
        """Wait until the run has ended."""
        assert self._process.wait(60) == 0
        self.kill()

    def kill(self) -> None:
        """Kill the process without warning."""
        self._process.kill()  # SIGKILL, unless it has ended
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


def main(folder: Path, file: Path) -> None:
    """Work on the run until it ends."""
    new = not (folder / JOURNAL).exists()
    with RunStore.create(folder) if new else RunStore.open(folder) as store:
        if new:
            begin(store, rounds=1)
        sys.stdout.write("working\n")
        sys.stdout.flush()
        asyncio.run(Search(store, PacedExecutor(file), SampleProposer(), pause=0.0).run())


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
