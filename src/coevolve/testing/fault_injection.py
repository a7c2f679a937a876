"""An executor that fails on purpose, for tests and drills."""

from hashlib import blake2b

from coevolve.errors import InputError
from coevolve.executors.failures import InfrastructureError
from coevolve.search.candidate import Candidate
from coevolve.search.trials import Executor, Prepared, Result, Trial


class FaultyExecutor:
    """Makes a share of attempts end with an infrastructure fault, the same ones every time.

    Args:
        executor: Runs the other attempts, and every check and preparation.
        rate: The share of attempts that fail, in [0, 1].
        seed: Decides which attempts fail.
    """

    def __init__(self, executor: Executor, *, rate: float, seed: int) -> None:
        if not 0 <= rate <= 1:
            raise InputError(f"rate must be in [0, 1], got {rate!r}.")
        self._executor = executor
        self._rate = rate
        self._seed = seed

    @property
    def capacity(self) -> int:
        """How many attempts may run at once."""
        return self._executor.capacity

    @property
    def isolation_name(self) -> str:
        """How candidate code is isolated."""
        return str(getattr(self._executor, "isolation_name", ""))

    @property
    def elastic(self) -> bool:
        """Whether the capacity changes while trials run."""
        return bool(getattr(self._executor, "elastic", False))

    async def check(self, candidate: Candidate) -> Prepared:
        """Check a candidate."""
        return await self._executor.check(candidate)

    async def prepare(self, candidate: Candidate) -> Prepared:
        """Prepare a candidate."""
        return await self._executor.prepare(candidate)

    async def run(self, candidate: Candidate, trial: Trial) -> Result:
        """Run one attempt, or make it fail."""
        if not fails(trial, rate=self._rate, seed=self._seed):
            return await self._executor.run(candidate, trial)
        await self._spoil(candidate, trial)
        return Result(
            fault=InfrastructureError("failed on purpose", kind="injected", shared=True).fault
        )

    async def close(self) -> None:
        """Close the executor."""
        await self._executor.close()

    async def _spoil(self, candidate: Candidate, trial: Trial) -> None:
        """What happens before the fault: nothing here."""


def fails(trial: Trial, *, rate: float, seed: int) -> bool:
    """Whether an attempt is one of those that fail.

    >>> trials = [Trial(candidate="c1", task=f"t{number}") for number in range(1000)]
    >>> sum(fails(trial, rate=0.2, seed=7) for trial in trials)
    209
    """
    name = repr((seed, trial.candidate, trial.task, trial.trial, trial.attempt))
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest()) < rate * 2**64
