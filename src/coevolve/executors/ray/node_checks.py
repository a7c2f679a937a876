"""Checks of every node of a Ray cluster, for `coevolve doctor`."""

from collections.abc import Iterator

import coevolve
from coevolve.executors.local import processors
from coevolve.executors.ray.node_host import examine_node
from coevolve.executors.ray.ray_connection import ClusterPlace, RayConnection
from coevolve.executors.ray.trial_share import TrialShare
from coevolve.findings import Finding, failed, noted, passed
from coevolve.formatting import one_line, plural

_SECONDS = 60.0


def check_nodes(
    place: ClusterPlace, *, share: TrialShare, isolation: str, workers: int | None = None
) -> Iterator[Finding]:
    """Whether each node can run trials: resources, version and isolation; each is named.

    A Ray on this machine alone gets room for as many `workers` as in a run.

    Raises:
        ConfigError: There is no such cluster.
    """
    cpus = processors() if workers is None else workers * share.cpus
    connection = RayConnection.join(place, project=None, cpus=float(cpus))
    try:
        yield from _findings(connection, share, isolation)
    finally:
        connection.leave()


def _findings(connection: RayConnection, share: TrialShare, isolation: str) -> Iterator[Finding]:
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    ray, free, labels = connection.ray, connection.nodes(), connection.labels()
    examine = ray.remote(num_cpus=0, max_retries=0)(examine_node)
    asked = {
        node: examine.options(
            scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)
        ).remote(isolation)
        for node in free
    }
    slots = 0
    for node, reference in asked.items():
        about, fits = f"node {labels.get(node, node[:8])}", share.fit(free[node])
        try:
            facts = ray.get(reference, timeout=_SECONDS)
        except Exception as error:
            yield failed(about, f"it does not answer: {one_line(str(error))[:300]}")
            continue
        if facts["version"] != coevolve.__version__:
            has = f"it has coevolve {facts['version']}, this machine {coevolve.__version__}"
            yield failed(about, has, "Install the same version on every node.")
        elif not facts["isolation"]:
            yield failed(about, facts["why_not"])
        elif not fits:
            wanted = ", ".join(f"{v:g} {n}" for n, v in share.named().items() if v)
            yield noted(about, f"no trial fits: one reserves {wanted}", "It gets no trials.")
        else:
            slots += fits
            yield passed(about, f"{plural(fits, 'trial')} at once, isolation {facts['isolation']}")
    if slots:
        yield passed("ray", f"{plural(len(asked), 'node')}, {plural(slots, 'trial')} at once")
    else:
        yield failed("ray", f"none of {plural(len(asked), 'node')} can run trials")
