"""A synthetic world as a benchmark, and the proposer that knows it."""

import json
import math
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import lru_cache
from typing import Any

from coevolve.benchmarks.synthetic.world import Harness, SyntheticWorld
from coevolve.core.outcomes import Missing
from coevolve.errors import InputError
from coevolve.executors.failures import CandidateFault
from coevolve.executors.isolation import Harness as Sandbox
from coevolve.search.candidate import Files
from coevolve.search.proposal import Proposal, Proposed, View

FILE = "skills.json"
_KEPT = 256
_BRIEFING = """\
A candidate is one file, `skills.json`. It is data, not code:

```json
{{"name": "any text", "skills": [{zeros}], "mended": []}}
```

`skills` has {skills} numbers, one for each kind of ability; each task needs another mixture of \
them. `mended` lists tasks that the harness was fixed for, by their number in the pool, from 0 to \
{last}; they do not count in the sealed test. More skill makes a task more likely to be solved. A \
solved task scores 1, any other 0.
"""


class SyntheticBenchmark:
    """A synthetic world as a benchmark.

    A candidate is one file, `skills.json`, with the name, the skills and the fixed tasks of a
    `Harness`; it is data and is never run. Outcomes are those of `world.outcomes`.

    Args:
        world: The world of the validation tasks.
        starts: Number of starting harnesses.
        test_tasks: Number of tasks of the sealed test. They come from another world, in which the
            same skills count and no task is fixed.
        seconds: Duration of a trial of average cost; it is proportional to the cost.

    >>> benchmark = SyntheticBenchmark(SyntheticWorld(pools={"all": 89}, seed=1), test_tasks=30)
    >>> sorted(benchmark.starts), len(benchmark.pool), len(benchmark.test_tasks)
    (['start-0', 'start-1'], 89, 30)
    """

    def __init__(
        self,
        world: SyntheticWorld,
        *,
        starts: int = 2,
        test_tasks: int = 0,
        seconds: float = 0.0,
    ) -> None:
        if starts < 1:
            raise InputError(f"a search needs a starting harness, got {starts}.")
        self.world = world
        self.pool = world.pool
        self.starts: Mapping[str, Files] = {
            harness.name: harness_files(harness) for harness in world.start(starts)
        }
        self._test = _test_world(world, test_tasks) if test_tasks else None
        self.test_tasks = self._test.pool.tasks if self._test else ()
        self._seconds = seconds
        self._outcomes = lru_cache(_KEPT)(world.outcomes)
        self._test_outcomes = lru_cache(_KEPT)((self._test or world).outcomes)

    @property
    def briefing(self) -> str:
        """A description of the file, for proposers."""
        skills = self.world.skills
        zeros = ", ".join(["0.0"] * skills)
        return _BRIEFING.format(zeros=zeros, skills=skills, last=len(self.pool) - 1)

    def check(self, harness: Sandbox) -> None:
        self._read(harness)

    def prepare(self, harness: Sandbox) -> object:
        return None

    def run(self, harness: Sandbox, task: str, trial: int) -> float:
        position = self.pool.position(task)
        if self._seconds and self.pool.costs is not None:
            time.sleep(self._seconds * self.pool.costs[position] / self.pool.costs.mean())
        return float(self._outcomes(self._read(harness), trial)[position])

    def run_test(self, harness: Sandbox, task: str, trial: int) -> float:
        if self._test is None:
            raise InputError("this world has no sealed test.")
        unfixed = replace(self._read(harness), mended=frozenset())
        outcomes = self._test_outcomes(unfixed, trial)
        return float(outcomes[self._test.pool.position(task)])

    def _read(self, harness: Sandbox) -> Harness:
        path = harness.folder / FILE
        try:
            return read_harness(path.read_bytes(), self.world)
        except FileNotFoundError:
            raise CandidateFault(f"there is no {FILE}", kind="missing-file") from None
        except InputError as error:
            raise CandidateFault(f"{FILE}: {error}", kind="no-harness") from error


def build(
    *, starts: int = 2, test_tasks: int = 0, seconds: float = 0.0, **world: Any
) -> SyntheticBenchmark:
    """The benchmark of a world given by its parameters; for workers."""
    return SyntheticBenchmark(
        SyntheticWorld(**world), starts=starts, test_tasks=test_tasks, seconds=seconds
    )


def harness_files(harness: Harness) -> Files:
    """The files of a harness of a synthetic world.

    >>> harness_files(Harness(name="h", skills=(0.5,)))
    {'skills.json': b'{"name": "h", "skills": [0.5], "mended": []}'}
    """
    data = {**asdict(harness), "mended": sorted(harness.mended)}
    return {FILE: json.dumps(data).encode()}


def read_harness(data: bytes, world: SyntheticWorld) -> Harness:
    """The harness in a file of `harness_files`, if it is valid in this world."""
    try:
        found = json.loads(data)
        harness = Harness(
            name=str(found["name"]),
            skills=tuple(float(skill) for skill in found["skills"]),
            mended=frozenset(int(task) for task in found["mended"]),
        )
        harness.name.encode()
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise InputError(f"not a harness: {type(error).__name__}: {error}.") from error
    if len(harness.skills) != world.skills:
        raise InputError(f"{len(harness.skills)} skills, but the world has {world.skills}.")
    if not all(math.isfinite(skill) for skill in harness.skills):
        raise InputError(f"skills must be finite, got {harness.skills}.")
    if any(not 0 <= task < len(world.pool) for task in harness.mended):
        raise InputError(f"'mended' has tasks out of range: {sorted(harness.mended)}.")
    return harness


def _test_world(world: SyntheticWorld, size: int) -> SyntheticWorld:
    """A similar world with other tasks."""
    return replace(world, pools={"test": size}, ease=None, seed=world.seed + 1_000_003)


class SyntheticProposer:
    """Writes children of the best candidate, as `synthetic_search.search` does.

    Its random choices depend only on the world, the round and the index.

    >>> SyntheticProposer(SyntheticWorld(pools={"all": 5})).world.skills
    3
    """

    def __init__(self, world: SyntheticWorld) -> None:
        self.world = world

    async def propose(self, view: View, count: int) -> Proposed:
        parent = view.standing(view.parent)
        failed = [
            self.world.pool.position(task)
            for task, score in parent.outcomes.items()
            if not isinstance(score, Missing) and score < 0.5
        ]
        harness = read_harness(view.files(view.parent)[FILE], self.world)
        children = [
            self.world.child(harness, failed, round=view.round, index=index)
            for index in range(count)
        ]
        return Proposed(
            proposals=tuple(
                Proposal(
                    files=harness_files(child),
                    name=child.name,
                    parents=(view.parent,),
                    hypothesis=f"fixes {len(child.mended - harness.mended)} failed tasks",
                )
                for child in children
            )
        )
