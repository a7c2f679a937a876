"""Candidates at work, for tests of benchmarks."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from coevolve.executors.isolation import Harness, Limits, find_isolation

LIMITS = Limits(seconds=20, startup_seconds=20)


@contextmanager
def at_work(files: Mapping[str, str | bytes], state: object = None) -> Iterator[Harness]:
    """A harness of these files, in the isolation this machine has."""
    with TemporaryDirectory(prefix="coevolve-test-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        for path, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            (folder / path).write_bytes(data)
        isolation = find_isolation("auto")
        with Harness(folder, isolation=isolation, limits=LIMITS, name="c", state=state) as harness:
            yield harness
