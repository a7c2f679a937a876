"""Every command that reads a run reports a damaged log, and shows nothing of the rest."""

import shutil
from pathlib import Path

import pytest

import coevolve as package
from coevolve.errors import DamageError
from coevolve.store import RunStore
from tests.cli.projects import coevolve
from tests.store.helpers import flip

_OF_THE_STORE = ("seq", "type", "seal", "at", "clock")

COMMANDS = {
    "status": ("status", "RUN"),
    "status --json": ("status", "RUN", "--json"),
    "show": ("show", "RUN", "same"),
    "show rounds": ("show", "RUN", "rounds"),
    "query": ("query", "candidates", "--run", "RUN"),
    "diff": ("diff", "RUN", "same", "square"),
    "export": ("export", "RUN", "--to", "outcomes.csv"),
    "analyse": ("analyse", "RUN", "--table", "cost"),
    "resume": ("resume", "RUN"),
}


@pytest.fixture(scope="module")
def killed(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run, as if its process had been killed: most events are in the log only."""
    source = finished / "runs" / "doubling"
    with RunStore.read(source) as run:
        events = [
            (event["type"], {k: v for k, v in event.items() if k not in _OF_THE_STORE})
            for event in run.events()
        ]
    writing, folder = (tmp_path_factory.mktemp("killed") / name for name in ("writing", "run"))
    with RunStore.create(writing) as run:
        for event in events:
            run.append([event])
        shutil.copytree(writing, folder)
    shutil.copytree(source / "blobs", folder / "blobs")
    return folder


@pytest.fixture(scope="module")
def damaged(killed: Path) -> Path:
    folder = killed.with_name("damaged")
    shutil.copytree(killed, folder)
    log = folder / "run.db-wal"
    flip(log, log.stat().st_size // 2)
    return folder


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_a_command_reports_the_damage(damaged: Path, words: tuple[str, ...]) -> None:
    done = coevolve(*(damaged if word == "RUN" else word for word in words), cwd=damaged.parent)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "run.db-wal is damaged in its middle" in done.stderr
    assert "events before it are intact" in done.stderr
    assert f"coevolve doctor --repair {damaged}" in done.stderr


def test_a_run_opened_from_python_reports_it(damaged: Path) -> None:
    run = package.open(damaged)
    for attempt in (lambda: run.state, run.report, lambda: list(run.events())):
        with pytest.raises(DamageError, match="doctor --repair"):
            attempt()


def test_the_undamaged_log_of_a_killed_run_is_read(killed: Path) -> None:
    done = coevolve("status", killed)
    assert done.returncode == 0, done.stderr
