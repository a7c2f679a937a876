"""What to do about a TOML file that differs from what its run recorded, as the user decides."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coevolve.cli.console_output import ask_letter, echo
from coevolve.errors import ChangedConfigError, InputError

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
class Decision:
    """The options of the user: take the new limits, or ignore what the file has changed.

    `limits` are those of other options; what the file says about them does not matter. `matrix` is
    the file of the matrix that the run belongs to.
    """

    extend: bool = False
    ignore: bool = False
    ask: bool = False
    limits: Mapping[str, float]
    matrix: Path | None = None

    def new_limits(
        self, state: "RunState", folder: Path, file: Path, config: "RunConfig"
    ) -> dict[str, Any] | None:
        """The new limits of the run, or None if nothing was decided because nothing has changed.

        Raises:
            ChangedConfigError: The file has changed, and the options do not say what to do.
        """
        from coevolve.runs.config_changes import config_changes, listed, new_limits

        if self.ignore and not self.extend:
            return dict(self.limits)
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
            return {**new_limits(changes), **self.limits}
        return {**self._asked(changes, folder, file), **self.limits} if changes else None

    def _asked(self, changes: "list[ConfigChange]", folder: Path, file: Path) -> dict[str, Any]:
        """The decision of a user at a terminal; elsewhere the options are listed."""
        from coevolve.runs.config_changes import listed, new_limits

        limits = new_limits(changes)
        source = self.matrix or file
        differs = f"{source} differs from what the run in {folder} recorded:\n{listed(changes)}"
        if not self.ask:
            raise ChangedConfigError(f"{differs}\n{self._options(folder, file, changes)}")
        echo(differs, err=True)
        letters = {"i": "ignore the changes", "q": "quit"}
        if all(change.raised for change in changes):
            letters = {"e": "extend the run with the new limits", **letters}
        chosen = ask_letter(letters)
        if chosen == "q":
            echo(self._options(folder, file, changes), err=True)
            raise typer.Exit(2)
        return limits if chosen == "e" else {}

    def _options(self, folder: Path, file: Path, changes: "list[ConfigChange]") -> str:
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
        if any(change.raised for change in changes):
            command, what = f"{command} --extend", "take the new limits"
            if not all(change.limit for change in changes):
                command, what = f"{command} --ignore-changes", f"{what}, and nothing else"
            found.insert(0, (command, what))
        width = max(len(command) for command, _ in found)
        return "\n".join(
            ["Decide:", *(f"  {command:<{width}}  {what}" for command, what in found)]
        )

    def _new_run(self, file: Path) -> str:
        """How to start a new run."""
        if self.matrix is not None:
            return "give the row another name, which starts a new run"
        return f"start a new run with `coevolve run {file} --name NAME`"


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
