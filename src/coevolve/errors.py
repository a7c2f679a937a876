"""All errors that are raised on purpose, in one tree.

    CoevolveError
    ├── InputError (also a ValueError)      a value that is never allowed
    │   ├── PoolError                       invalid tasks, pools, weights or costs of a pool
    │   ├── ScoreError                      a score that is not a number on its scale
    │   ├── UnknownTaskError                a task that is not in the pool
    │   ├── UnknownCandidateError           a candidate that the selector does not know
    │   ├── UnknownProtocolError            a protocol that is not registered
    │   ├── MatrixError                     a file or arrays that are not an outcome matrix
    │   ├── CandidateError                  files that are not a valid candidate
    │   └── ConfigError                     a configuration that cannot be run
    │       ├── ChangedConfigError          a file that differs from what the run recorded
    │       └── ChangedBenchmarkError       a benchmark that is not the one of earlier trials
    ├── StateError                          an allowed value at the wrong time
    │   ├── PhaseError                      asking before Phase 0, or Phase 0 after asking
    │   ├── NotAskedError                   telling an outcome that was not asked for
    │   ├── ChangedOutcomeError             telling another score for a recorded outcome
    │   └── NoOutcomeError                  estimating without any score
    ├── EventError                          an event stream that is damaged or out of order
    │   └── DamageError                     a journal or a blob that is damaged
    ├── OwnedError                          a run that another process is writing
    ├── StoreError                          a run that cannot be read or written
    ├── StopRun                             the operator must act before the run can continue
    │   └── EmptyRounds                     rounds in a row without a candidate to evaluate
    └── ReplayError                         a replayed search that could not continue

Messages say what was wrong, the value, and what to do. An error does not change the object that
raised it.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class CoevolveError(Exception):
    """Base of every error raised on purpose."""


class InputError(CoevolveError, ValueError):
    """A value that is never allowed."""


class PoolError(InputError):
    """Invalid tasks, pools, weights or costs of a pool."""


class ScoreError(InputError):
    """A score that is not a number on its scale, which is [0, 1] unless the pool has another."""


class UnknownTaskError(InputError):
    """A task that is not in the pool."""


class UnknownCandidateError(InputError):
    """A candidate that the selector does not know."""


class UnknownProtocolError(InputError):
    """A protocol that is not registered."""


class UnfitSettingError(InputError):
    """A setting that has no effect on a protocol."""


class MatrixError(InputError):
    """A file or arrays that are not an outcome matrix."""


class HistoryError(InputError):
    """A file of past results that cannot be used; the message names the row and the column."""


class CandidateError(InputError):
    """Files that are not a valid candidate."""


class ConfigError(InputError):
    """A configuration that cannot be run."""


class ChangedConfigError(ConfigError):
    """A configuration that differs from the one that the run recorded."""


class ChangedBenchmarkError(ConfigError):
    """A benchmark that has changed since trials of the run were scored."""


class StateError(CoevolveError):
    """An allowed value at the wrong time."""


class PhaseError(StateError):
    """Asking before Phase 0, or Phase 0 after asking."""


class NotAskedError(StateError):
    """Telling an outcome that was not asked for."""


class ChangedOutcomeError(StateError):
    """Telling another score for an outcome that is already recorded."""


class NoOutcomeError(StateError):
    """Estimating without any score."""


class EventError(CoevolveError):
    """An event stream that is damaged or out of order."""


class DamageError(EventError):
    """A journal or a blob that is damaged; the first `intact` events are good."""

    def __init__(self, message: str, *, intact: int = 0) -> None:
        super().__init__(message)
        self.intact = intact


class OwnedError(CoevolveError):
    """A run that another process is writing."""


class StoreError(CoevolveError):
    """A run that cannot be read or written: no such folder, no disk, no permission."""


class StopRun(CoevolveError):  # noqa: N818
    """The operator must act before the run can continue; nothing is lost.

    `resumable` is false if only a new run helps. `details`, such as a traceback, are for a log.

    >>> StopRun("the key is not valid.").resumable
    True
    """

    def __init__(self, message: str, *, resumable: bool = True, details: str = "") -> None:
        super().__init__(message)
        self.resumable = resumable
        self.details = details


class EmptyRounds(StopRun):
    """Rounds in a row had no candidate that could be evaluated."""


class ReplayError(CoevolveError):
    """A replayed search that could not continue."""


def nearest(name: object, known: Iterable[object]) -> str:
    """A suggestion for the end of an error message; empty if no known name is similar.

    >>> nearest("task-coevolv", ["naive", "task-coevolve"])
    " Did you mean 'task-coevolve'?"
    """
    close = get_close_matches(str(name), [str(one) for one in known], n=1)
    return f" Did you mean '{close[0]}'?" if close else ""


def titled(kind: str, reason: str) -> str:
    """A reason with its kind in front, unless it already has it.

    >>> titled("time-limit", "over 60 s"), titled("KeyError", "KeyError: 'answer'")
    ('time-limit: over 60 s', "KeyError: 'answer'")
    """
    return reason if f"{kind}:" in f"{reason}:" else f"{kind}: {reason}"
