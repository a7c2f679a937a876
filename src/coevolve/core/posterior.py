"""Joint models: their input, their posterior over the candidates, and their interface."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from coevolve.core.arrays import Floats, Indices
from coevolve.core.blas_threads import one_blas_thread
from coevolve.errors import InputError

_DRAWS = 4_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cells:
    """All outcomes seen: one entry per candidate and task with a score.

    `score` is the mean over `trials` trials. `rounds` has the round of every candidate, seen or
    not, 0 of starting harnesses; `shares` says how much each task counts in the full-set score
    and sums to 1.
    """

    candidate: Indices
    task: Indices
    score: Floats
    trials: Floats
    rounds: tuple[int, ...]
    shares: Floats

    @property
    def candidates(self) -> int:
        return len(self.rounds)

    @property
    def tasks(self) -> int:
        return len(self.shares)


@dataclass(frozen=True, slots=True, kw_only=True)
class Confidence:
    """How sure the choice is: the probability that the winner is the best, and expected regret.

    The regret is in units of the scores. `span` is the length of their scale.

    >>> print(Confidence(probability=0.81, regret=0.004))
    best with probability 81%, expected regret 0.004
    >>> print(Confidence(probability=0.81, regret=0.04, span=10.0))
    best with probability 81%, expected regret 0.04
    """

    probability: float
    regret: float
    span: float = 1.0

    def __str__(self) -> str:
        regret = f"{self.regret:.3f}" if self.span == 1 else f"{self.regret:.3g}"
        return f"best with probability {self.probability:.0%}, expected regret {regret}"


class Deferred[T]:
    """A value that is computed when it is first read, with one thread of BLAS.

    Most fits only decide about further tasks, and their intervals are not read.

    >>> Deferred(lambda: 6 * 7).read()
    42
    """

    def __init__(self, compute: Callable[[], T]) -> None:
        self._compute: Callable[[], T] | None = compute
        self._found: T

    def read(self) -> T:
        """The value."""
        if self._compute is not None:
            with one_blas_thread():  # one thread at a time
                if self._compute is not None:
                    self._found = self._compute()
                    self._compute = None  # frees what it refers to
        return self._found

    def __getstate__(self) -> dict[str, Any]:
        """The value, for another process."""
        return {"_compute": None, "_found": self.read()}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Posterior:
    """Full-set scores of all candidates, as a normal distribution, and chances per task.

    `chances` (candidates x tasks) are the probabilities of solving each task, `newcomer` those of
    a candidate without outcomes. The next fit starts from `parameters`. `covariance` is for
    decisions: about further tasks, and how sure the choice is. `wide` is for intervals, if they
    should be wider: it also has the uncertainty about the model itself. It is computed when it is
    first read.
    """

    scores: Floats
    covariance: Floats
    chances: Floats
    newcomer: Floats
    parameters: Any
    wide: Deferred[Floats] | None = None

    @property
    def uncertainty(self) -> Floats:
        """Covariance of the scores for intervals."""
        return self.covariance if self.wide is None else self.wide.read()

    @property
    def sd(self) -> Floats:
        """Standard deviation of each score."""
        return np.asarray(np.sqrt(np.maximum(np.diag(self.uncertainty), 0.0)))

    def of(self, candidates: Indices) -> "Posterior":
        """The posterior of some of the candidates."""
        both, wide = np.ix_(candidates, candidates), self.wide
        return replace(
            self,
            scores=self.scores[candidates],
            covariance=self.covariance[both],
            chances=self.chances[candidates],
            wide=None if wide is None else Deferred(lambda: wide.read()[both]),
        )

    def draws(self, rng: np.random.Generator, number: int = _DRAWS) -> Floats:
        """Draws of all scores together, one per row.

        >>> two = Posterior(scores=np.array([0.5, 0.6]), covariance=0.01 * np.eye(2),
        ...     chances=np.full((2, 3), 0.5), newcomer=np.full(3, 0.5), parameters=None)
        >>> two.draws(np.random.default_rng(0), 3).shape
        (3, 2)
        """
        values, vectors = np.linalg.eigh(self.covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        return np.asarray(self.scores + rng.standard_normal((number, len(values))) @ root.T)

    def confidence(self, winner: int, rng: np.random.Generator) -> Confidence:
        """How sure it is that `winner` is the best of the candidates.

        >>> two = Posterior(scores=np.array([0.5, 0.9]), covariance=1e-4 * np.eye(2),
        ...     chances=np.full((2, 3), 0.5), newcomer=np.full(3, 0.5), parameters=None)
        >>> print(two.confidence(1, np.random.default_rng(0)))
        best with probability 100%, expected regret 0.000
        """
        drawn = self.draws(rng)
        lost = drawn.max(axis=1) - drawn[:, winner]
        return Confidence(probability=float((lost <= 0).mean()), regret=float(lost.mean()))


def checked(posterior: Posterior, candidates: int, tasks: int, model: object) -> Posterior:
    """The posterior of a model; refuse one of the wrong shape, or with invalid values."""

    def covariance(name: str, values: Floats) -> Floats:
        _check_values(name, values, (candidates, candidates), model)
        if (np.diag(values) < -1e-9).any():
            raise InputError(f"{model!r} must give variances of at least 0.")
        return values

    _check_values("scores", posterior.scores, (candidates,), model)
    covariance("covariance", posterior.covariance)
    _check_values("chances", posterior.chances, (candidates, tasks), model)
    _check_values("newcomer", posterior.newcomer, (tasks,), model)
    wide = posterior.wide
    if wide is None:
        return posterior
    if not isinstance(wide, Deferred):
        raise InputError(f"{model!r} must give wide as Deferred(lambda: ...), got {wide!r}.")
    return replace(posterior, wide=Deferred(lambda: covariance("wide", wide.read())))


def _check_values(name: str, values: Floats, shape: tuple[int, ...], model: object) -> None:
    if np.shape(values) != shape or not np.isfinite(values).all():
        raise InputError(f"{model!r} must give finite {name} of shape {shape}, got {values!r}.")


@runtime_checkable
class JointModel(Protocol):
    """A model of all outcomes; a new outcome may change the estimates of all candidates."""

    @property
    def needs_history(self) -> bool: ...

    def fit(self, cells: Cells, start: Posterior | None) -> Posterior:
        """The posterior given all outcomes; `start` is an earlier one to begin from.

        The candidates of `start` are the first of those now. A fit must depend on nothing but its
        arguments.
        """
        ...
