"""Where the numbers of a run come from: settings, seed, versions, sessions, the journal's end."""

from dataclasses import asdict, dataclass
from typing import Any

from coevolve.core.events import Event
from coevolve.search.run_state import RunState

_ABOUT = ("given", "file", "named", "seeded", "overrides", "orders", "project")
"""Keys of a recorded configuration that are not tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """One session of work: when it began, in seconds since 1970, and on how many workers."""

    at: float
    clock: float
    capacity: int
    isolation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """What a run was made with.

    `config` has the keys that the configuration file sets, or all if that is unknown. `protocol`
    is its name and its parts with all settings. `fingerprint` has a hash for each part of the
    benchmark. `events` and `seal` identify the journal as it was read: the number of events, and
    the seal of the last one, which depends on all before.
    """

    name: str
    seed: int
    trials: int
    draw_per: str
    confidence: float
    protocol: dict[str, Any]
    settings: dict[str, Any]
    config: dict[str, Any]
    fingerprint: dict[str, str]
    changes: tuple[str, ...]
    sessions: tuple[SessionRow, ...]
    began: float
    last: float
    events: int
    seal: str

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)


class SessionLog:
    """The sessions of a run, and the end of its journal; call `take` with every event."""

    def __init__(self) -> None:
        self.sessions: list[SessionRow] = []
        self.began = self.last = 0.0
        self.events, self.seal = 0, ""

    def take(self, event: Event) -> None:
        """Note an event."""
        if not self.events:
            self.began = event["at"]
        self.events, self.seal = event["seq"] + 1, event["seal"]
        self.last = max(self.last, event["at"])
        if event["type"] == "session":
            self.sessions.append(
                SessionRow(
                    at=event["at"],
                    clock=event["clock"],
                    capacity=event["capacity"],
                    isolation=event.get("isolation", ""),
                )
            )

    def provenance(self, state: RunState) -> Provenance:
        """What the run was made with, as of the last event."""
        selector = state.selector
        return Provenance(
            name=state.name,
            seed=state.settings.seed,
            trials=state.trials,
            draw_per=selector.draw_per,
            confidence=selector.confidence,
            protocol=selector.protocol.to_json(),
            settings=state.settings.to_json(),
            config=_flat(state.config),
            fingerprint=dict(state.fingerprint or {}),
            changes=tuple(
                f"after {one.trials:,} trials: {', '.join(one.parts)}" for one in state.changes
            ),
            sessions=tuple(self.sessions),
            began=self.began,
            last=self.last,
            events=self.events,
            seal=self.seal,
        )


def _flat(config: dict[str, Any]) -> dict[str, Any]:
    """The values that the file set, by "table.key".

    >>> _flat({"run": {"seed": 1, "name": "a"}, "given": ["run.seed"], "file": "a.toml"})
    {'run.seed': 1}
    """
    found: dict[str, Any] = {}
    given = config.get("given")
    for table, values in config.items():
        if table in _ABOUT:
            continue
        rows = values.items() if isinstance(values, dict) else [("", values)]
        for key, value in rows:
            name = f"{table}.{key}" if key else table
            if value is not None and (given is None or name in given):
                found[name] = value
    return found
