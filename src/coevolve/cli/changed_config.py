"""What to do about a TOML file that differs from what its run recorded, as the user decides."""

import itertools
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coevolve.cli.console_output import ask_letter, ask_text, echo
from coevolve.errors import ChangedConfigError, CoevolveError, InputError

if TYPE_CHECKING:
    from coevolve.runs.config import RunConfig
    from coevolve.runs.config_changes import ConfigChange
    from coevolve.search.run_state import RunState

Extend = Annotated[
    bool,
    typer.Option(
        "--extend", help="Take the new limits in the TOML file: rounds and caps of the budget."
    ),
]
IgnoreChanges = Annotated[
    bool,
    typer.Option("--ignore-changes", help="Continue with what the run recorded, not the file."),
]
AcceptChange = Annotated[
    bool,
    typer.Option(
        "--accept-change",
        help="Continue although the benchmark has changed; the change is recorded.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What the user has decided: to continue the run, with new limits or none, or a new run."""

    limits: Mapping[str, Any]
    new_run: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The options of the user: take the new limits, or ignore what the file has changed.

    `ask` is whether a user at a terminal can be asked. `limits` are those of other options; what
    the file says about them does not matter. `pinned` is whether an option is only for the run
    that exists, so that a new one is not a choice. `matrix` is the file of the matrix that the run
    belongs to, whose rows name its runs.
    """

    extend: bool = False
    ignore: bool = False
    ask: bool = False
    limits: Mapping[str, float]
    pinned: bool = False
    matrix: Path | None = None

    def course(
        self, state: "RunState", folder: Path, file: Path, config: "RunConfig"
    ) -> Course | None:
        """What to do, or None if nothing was decided because nothing has changed.

        Raises:
            ChangedConfigError: The file has changed, and the options do not say what to do.
        """
        from coevolve.runs.config_changes import config_changes, listed, new_limits

        if self.ignore and not self.extend:
            return Course(limits=self.limits)
        changes = [
            change
            for change in config_changes(state, folder, config)
            if not (change.limit and change.key.partition(".")[2] in self.limits)
        ]
        kept = [change for change in changes if not change.limit]
        if self.extend and kept and not self.ignore:
            raise ChangedConfigError(
                f"--extend takes only new limits, but {self.matrix or file} has also changed:\n"
                f"{listed(kept)}\n"
                f"Add --ignore-changes to keep what the run recorded, or {self._new_run(file)}."
            )
        if self.extend:
            return Course(limits={**new_limits(changes), **self.limits})
        return self._asked(state, changes, folder, file) if changes else None

    def _asked(
        self, state: "RunState", changes: "list[ConfigChange]", folder: Path, file: Path
    ) -> Course:
        """The decision of a user at a terminal; elsewhere the options are listed."""
        from coevolve.runs.config_changes import listed, new_limits

        limits = {**new_limits(changes), **self.limits}
        extends = _can_extend(state, new_limits(changes), limits)
        source = self.matrix or file
        differs = f"{source} differs from what the run in {folder} recorded:\n{listed(changes)}"
        options = self._options(folder, file, changes, extends=extends)
        if not self.ask:
            raise ChangedConfigError(f"{differs}\n{options}")
        echo(differs, err=True)
        letters = {}
        if extends:
            only = "" if all(change.limit for change in changes) else ", ignore the other changes"
            letters["e"] = f"extend the run with the new limits{only}"
        letters["i"] = "ignore the changes, continue with what was recorded"
        if not self.pinned and self.matrix is None:
            letters["n"] = "start a new run under another name"
        letters["q"] = "quit"
        chosen = ask_letter(letters)
        if chosen == "q":
            echo(options, err=True)
            raise typer.Exit(2)
        if chosen == "n":
            return Course(limits={}, new_run=_new_name(state.name, file))
        return Course(limits=limits if chosen == "e" else self.limits)

    def _options(
        self, folder: Path, file: Path, changes: "list[ConfigChange]", *, extends: bool
    ) -> str:
        from coevolve.runs.config_changes import HISTORY

        command = f"coevolve resume {folder}"
        found = [(f"coevolve run {file} --name NAME", "start a new run")]
        if self.matrix is not None:
            command = f"coevolve run --matrix {self.matrix}"
            found = [("another name for the row", "start a new run")]
        found.insert(0, (f"{command} --ignore-changes", "continue with what was recorded"))
        for past in (change.now for change in changes if change.key == HISTORY and change.now):
            imported = f"coevolve import {file.parent / past} --to {folder}"
            found.insert(0, (imported, "import the other results into the run"))
        if extends:
            command, what = f"{command} --extend", "take the new limits"
            if not all(change.limit for change in changes):
                command, what = f"{command} --ignore-changes", f"{what}, and nothing else"
            found.insert(0, (command, what))
        width = max(len(command) for command, _ in found)
        lines = [f"  {command:<{width}}  {what}" for command, what in found]
        if sys.stderr.isatty() and max(map(len, lines)) > shutil.get_terminal_size().columns:
            lines = [f"  {what}:\n    {command}" for command, what in found]
        return "\n".join(["Decide:", *lines])

    def _new_run(self, file: Path) -> str:
        """How to start a new run."""
        if self.matrix is not None:
            return "give the row another name, which starts a new run"
        return f"start a new run with `coevolve run {file} --name NAME`"


def _can_extend(state: "RunState", changed: Mapping[str, Any], limits: Mapping[str, Any]) -> bool:
    """Whether the run can take the limits that the file has changed."""
    from coevolve.runs.extension import check_limits

    try:
        check_limits(state, wanted_limits(state, limits))
    except InputError:
        return False
    return bool(changed)


def _new_name(name: str, file: Path) -> str:
    """The name of a new run, which the user gives; one that is not in use is proposed."""
    from coevolve.runs.config import read_config
    from coevolve.runs.run import Run
    from coevolve.runs.session import run_folder

    def refused(name: str) -> str:
        folder = run_folder(file, read_config(file, name=name))
        return f"{folder} already has a run." if Run(folder).started else ""

    numbered = (f"{name}-{number}" for number in itertools.count(2))
    proposed = next(one for one in numbered if not refused(one))
    while True:
        given = ask_text("Name of the new run", proposed)
        try:
            why = refused(given)
        except CoevolveError as error:
            why = str(error)
        if not why:
            return given
        echo(why, err=True)


def wanted_limits(state: "RunState", limits: Mapping[str, Any]) -> dict[str, Any]:
    """The limits to record: a run under way may have some of them already.

    So a command that was killed can be repeated.
    """
    from coevolve.runs.extension import limits_of

    now = limits_of(state.settings)
    known = state.ended is None
    return {name: cap for name, cap in limits.items() if not (known and now.get(name) == cap)}


def check_extends(state: "RunState", file: Path, limits: Mapping[str, Any]) -> None:
    """Refuse `--extend` for a run that has ended if the file has no new limit."""
    if state.ended is not None and not limits:
        raise InputError(
            f"--extend has no effect: {file} has the limits of the run, which has ended: "
            f"{state.ended['why']}. Raise search.rounds or a cap in the file, or use --rounds."
        )
