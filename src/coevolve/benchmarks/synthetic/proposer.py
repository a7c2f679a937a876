"""The proposer of synthetic worlds: builds on the best and mends what it sees fail."""

from coevolve.benchmarks.synthetic.benchmark import FILE, harness_files, read_harness
from coevolve.benchmarks.synthetic.world import SyntheticWorld
from coevolve.core.outcomes import Missing
from coevolve.search.proposal import Proposal, Proposed, View


class SyntheticProposer:
    """Writes children of the best candidate, as `coevolve.benchmarks.synthetic.search` does.

    Its luck depends on the world, the round and the index alone.

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
                    hypothesis=f"mends {len(child.mended - harness.mended)} failed tasks",
                )
                for child in children
            )
        )
