"""The differences between the configuration that a run recorded and its file as it is now."""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coevolve.errors import ChangedConfigError
from coevolve.past_results.past_files import past_digest
from coevolve.runs.config import RunConfig, flattened, read_config
from coevolve.runs.config_overrides import Override
from coevolve.runs.extension import limits_of
from coevolve.runs.session import BY_OPTIMIZE, OVERRIDES, recorded_config
from coevolve.search.budget import Settings
from coevolve.search.run_state import RunState

_UNCOMPARED = ("run.name", "run.folder")
"""Keys that say where the run is; it was found by them."""
HISTORY = "search.history"
_LONGEST = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigChange:
    """A key of the file whose value differs from that of the run.

    `recorded` is the value of the run, with its extensions; `limit` says whether the key is a
    limit, and `raised` whether the run can take it over.
    """

    key: str
    recorded: Any
    now: Any

    @property
    def limit(self) -> bool:
        return _is_limit(self.key)

    @property
    def raised(self) -> bool:
        if not self.limit or self.recorded is None or self.now is None:
            return self.limit
        return bool(self.now > self.recorded)

    def __str__(self) -> str:
        return f"{self.key}: recorded {_shown(self.recorded)}, now {_shown(self.now)}"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"key": self.key, "recorded": self.recorded, "now": self.now}


def config_changes(state: RunState, folder: Path, config: RunConfig) -> list[ConfigChange]:
    """What a configuration has changed since a run recorded it.

    A limit is not a change if the run has it or had it before an extension. Neither is another
    file of past results if its contents were imported: it was moved. Keys that are neither
    in the file now nor were when the run began are not compared: their defaults may differ between
    versions. A run that an earlier version began did not record which keys were set; for it, only
    the keys of the present file are compared.
    """
    if BY_OPTIMIZE in state.config:
        return []
    began, base = recorded_config({"config": state.config}, folder)
    before, now = flattened(began.to_json()), flattened(config.to_json())
    seeded = "run.seed" if state.config.get("seeded", False) else ""
    limits = _limits(state.settings)
    past = [_limits(settings) for settings in (*state.earlier, state.settings)]
    found = []
    for key in dict.fromkeys([*state.config.get("given", ()), *config.given_keys()]):
        recorded, value = before.get(key), now.get(key)
        if key in (*_UNCOMPARED, seeded) or value in [one.get(key, recorded) for one in past]:
            continue
        if key == HISTORY and value is not None:
            digest = past_digest(base / value)
            if digest is not None and state.past.imported(digest) is not None:
                continue
        found.append(ConfigChange(key=key, recorded=limits.get(key, recorded), now=value))
    return found


def _is_limit(key: str) -> bool:
    return key == "search.rounds" or key.startswith("budget.")


def _limits(settings: Settings) -> dict[str, Any]:
    """The limits of a run by the keys of the file."""
    tables = {"rounds": "search"}
    known = limits_of(settings).items()
    return {f"{tables.get(name, 'budget')}.{name}": limit for name, limit in known}


def new_limits(changes: Iterable[ConfigChange]) -> dict[str, Any]:
    """The limits among some changes, as `Run.extend` takes them."""
    return {change.key.partition(".")[2]: change.now for change in changes if change.limit}


def config_in_file(
    state: RunState, folder: Path, *, extend: bool = False
) -> tuple[Path, RunConfig] | None:
    """The TOML file that a run was started with, and its configuration.

    None if it no longer exists, or now describes another run. Options that changed values of the
    file when the run began change them here too; with `extend`, the limits are those of the file.
    """
    name = state.config.get("file")
    path = Path(os.path.normpath(folder / state.config.get("project", ".") / (name or ".")))
    if name is None or not path.is_file():
        return None
    config = read_config(path, overrides=recorded_overrides(state, extend=extend))
    renamed = config.run.name != state.name and not state.config.get("named", False)
    return None if renamed else (path, config)


def recorded_overrides(state: RunState, *, extend: bool = False) -> tuple[Override, ...]:
    """The values that options, or a matrix, gave the run in place of those in its file.

    With `extend`, its limits are left out.
    """
    found = map(Override.from_json, state.config.get(OVERRIDES, ()))
    return tuple(one for one in found if not (extend and _is_limit(one.key)))


def check_config(state: RunState, folder: Path, config: RunConfig) -> None:
    """Refuse to continue a run with a configuration that differs from its own.

    Raises:
        ChangedConfigError: It differs; the message has the differences.
    """
    if changes := config_changes(state, folder, config):
        raise ChangedConfigError(
            f"the configuration differs from that of the run in {folder}:\n"
            f"{listed(changes)}\n"
            "Call resume(ignore_changes=True) to continue with what the run recorded, "
            "extend(...) for new limits, or give the new run another name."
        )


def listed(changes: Iterable[ConfigChange]) -> str:
    """The changes, one on each line."""
    return "\n".join(f"  {change}" for change in changes)


def _shown(value: Any) -> str:
    text = "none" if value is None else json.dumps(value, default=str)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
