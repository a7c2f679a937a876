"""Speed of the core: a round at several sizes, inclusion probabilities, fits, the import.

Run as `make bench` or `python benchmarks/core.py`. Sizes run in processes of their own, so that
the memory of one is not counted for another.
"""

import gc
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import record

from coevolve.core.arrays import Floats
from coevolve.core.inclusion import monte_carlo_inclusion, successive_inclusion

SIZES = (130, 10_000, 250_000, 500_000, 1_000_000)
REPETITIONS = 4_000


def timed(act: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds an act takes, and its result."""
    gc.collect()
    start = time.perf_counter()
    result = act()
    return time.perf_counter() - start, result


def one_round(tasks: int) -> dict[str, Any]:
    """Ask, tell and estimate once for a candidate, after Phase 0 and four rounds."""
    from coevolve import Pool, Selector

    rng = np.random.default_rng(tasks)
    rates = rng.beta(0.4, 0.4, size=tasks)
    pool = Pool([f"task-{i}" for i in range(tasks)])
    place = {task: i for i, task in enumerate(pool.tasks)}
    selector = Selector(pool, fraction=0.2, seed=1)

    def outcomes(names: tuple[str, ...]) -> dict[str, float]:
        solved = rng.random(len(names)) < rates[[place[name] for name in names]]
        return dict(zip(names, solved.astype(float).tolist(), strict=True))

    for start in ("start-a", "start-b"):
        selector.tell_full(start, outcomes(pool.tasks))
    for number in range(4):
        (assignment,) = selector.ask([f"c{number}"])
        selector.tell(assignment, outcomes(assignment.tasks))
        selector.estimate(f"c{number}")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ask, (assignment,) = timed(lambda: selector.ask(["measured"]))
    results = outcomes(assignment.tasks)
    tell, _ = timed(lambda: selector.tell(assignment, results))
    estimate, _ = timed(lambda: selector.estimate("measured"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "tasks": tasks,
        "drawn": len(assignment.tasks),
        "ask ms": round(1e3 * ask, 2),
        "tell ms": round(1e3 * tell, 2),
        "estimate ms": round(1e3 * estimate, 2),
        "round ms": round(1e3 * (ask + tell + estimate), 2),
        "peak MB": round(peak / 1024),
        "of which round MB": round((peak - before) / 1024),
    }


def weights_of(kind: str, tasks: int, rng: np.random.Generator) -> Floats:
    """Weights as they are after Phase 0, after 20 rounds of 3 candidates, or all different."""
    if kind == "phase 0":
        return np.array([0.1427, 0.2677, 0.0177])[rng.integers(3, size=tasks)]
    if kind == "20 rounds":
        count = rng.integers(2, 30, size=tasks)
        p = rng.binomial(count, rng.beta(0.4, 0.4, size=tasks)) / count
        return np.asarray(np.where(p == 0, 0.125, p * (1 - p)) + 0.025 / np.sqrt(count))
    return rng.uniform(0.003, 0.28, size=tasks)


def inclusion(kind: str, tasks: int, share: float = 0.2) -> dict[str, Any]:
    """Exact inclusion probabilities beside 4,000 Monte Carlo repetitions."""
    rng = np.random.default_rng(tasks)
    weights, size = weights_of(kind, tasks, rng), round(share * tasks)
    exact = [timed(lambda: successive_inclusion(weights, size)) for _ in range(9)]
    simulated = [
        timed(lambda: monte_carlo_inclusion(weights, size, REPETITIONS, rng)) for _ in range(3)
    ]
    pi, estimated = exact[0][1], simulated[0][1]
    fast, slow = (statistics.median(t for t, _ in runs) for runs in (exact, simulated))
    return {
        "weights": kind,
        "tasks": tasks,
        "drawn": size,
        "distinct": len(np.unique(weights)),
        "exact ms": round(1e3 * fast, 2),
        "Monte Carlo ms": round(1e3 * slow, 1),
        "times faster": round(slow / fast, 1),
        "error of the sum": f"{abs(pi.sum() / size - 1):.0e}",
        "exact error": f"{reference_error(weights, size, pi):.0e}" if tasks <= 1_000 else "-",
        "Monte Carlo error": f"{np.abs(estimated / pi - 1).max():.0e}",
    }


def reference_error(weights: Floats, size: int, pi: Floats) -> float:
    """Largest relative error among five tasks, from light to heavy, computed another way."""
    some = np.argsort(weights)[np.linspace(0, len(weights) - 1, 5).astype(int)]
    return max(abs(float(pi[task]) / reference(weights, size, int(task)) - 1) for task in some)


def reference(weights: Floats, size: int, task: int) -> float:
    """π of one task from the first form of the integral, by Gauss-Legendre quadrature.

    π_t = ∫ w_t exp(-w_t s) P(at most m - 1 others arrived by s) ds, the probability by adding one
    task after the other.
    """
    others = np.delete(weights, task)
    top = 1.0
    while _at_most(others, size, np.array([top]))[0] > 1e-18:
        top *= 1.1
    nodes, quadrature = np.polynomial.legendre.leggauss(300)
    s, ds = top * (nodes + 1) / 2, top * quadrature / 2
    rate = weights[task] * np.exp(-weights[task] * s)
    return float(ds @ (rate * _at_most(others, size, s)))


def _at_most(weights: Floats, size: int, s: Floats) -> Floats:
    """P(at most size - 1 arrivals by each time)."""
    number = np.zeros((len(s), size))
    number[:, 0] = 1
    for weight in weights:
        waiting = np.exp(-weight * s)[:, None]
        number[:, 1:] = number[:, 1:] * waiting + number[:, :-1] * (1 - waiting)
        number[:, 0] *= waiting[:, 0]
    return np.asarray(number.sum(axis=1))


def joint_fit(candidates: int, tasks: int) -> dict[str, Any]:
    """A fit of the joint model with the threads of BLAS as they are, and with one."""
    from coevolve.core.blas_threads import one_blas_thread
    from coevolve.core.joint import Joint
    from coevolve.core.posterior import Cells

    rng = np.random.default_rng(tasks)
    rates = rng.beta(0.4, 0.4, size=tasks)
    seen = rng.random((candidates, tasks)) < 0.2
    seen[:2] = True
    candidate, task = np.nonzero(seen)
    cells = Cells(
        candidate=candidate,
        task=task,
        score=(rng.random(len(task)) < rates[task]).astype(float),
        trials=np.ones(len(task)),
        rounds=(0, 0, *range(1, candidates - 1)),
        shares=np.full(tasks, 1 / tasks),
    )
    before = Joint().fit(cells, None)

    def again() -> float:
        return timed(lambda: Joint().fit(cells, before))[0]

    def alone() -> float:
        def fit() -> None:
            with one_blas_thread():
                Joint().fit(cells, before)

        return timed(fit)[0]

    def with_intervals() -> float:
        def fit() -> None:
            with one_blas_thread():
                Joint().fit(cells, before).uncertainty.trace()

        return timed(fit)[0]

    times = ([act() for _ in range(51)] for act in (again, alone, with_intervals))
    as_set, one, read = times
    return {
        "candidates": candidates,
        "tasks": tasks,
        "threads as set ms": round(1e3 * statistics.median(as_set), 2),
        "one thread ms": round(1e3 * statistics.median(one), 2),
        "with intervals ms": round(1e3 * statistics.median(read), 2),
        "slowest as set ms": round(1e3 * max(as_set), 1),
        "slowest of one ms": round(1e3 * max(one), 1),
    }


def import_time() -> dict[str, Any]:
    """Seconds of `import coevolve` in a fresh interpreter, and of numpy alone."""
    code = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
    row: dict[str, Any] = {}
    for module in ("numpy", "coevolve"):
        command = [sys.executable, "-c", code.format(module)]
        runs = [float(subprocess.check_output(command)) for _ in range(9)]
        row[f"{module} ms"] = round(1e3 * statistics.median(runs), 1)
    return row


def main() -> None:
    """Measure, print and record everything."""
    if len(sys.argv) == 3 and sys.argv[1] == "round":
        print(json.dumps(one_round(int(sys.argv[2]))))
        return
    rounds = [
        json.loads(subprocess.check_output([sys.executable, __file__, "round", str(size)]))
        for size in SIZES
    ]
    record.show("One ask + tell + estimate, task-coevolve at 20%", rounds)
    kinds = ("phase 0", "20 rounds", "all different")
    probabilities = [inclusion(k, n) for k in kinds for n in (89, 130, 1_000, 10_000)]
    probabilities += [inclusion(k, 130, share) for k in kinds for share in (0.02, 0.98)]
    record.show(
        f"Inclusion probabilities: exact, and {REPETITIONS:,} Monte Carlo repetitions",
        probabilities,
    )
    fits = [joint_fit(*size) for size in ((10, 89), (22, 100), (60, 500))]
    record.show("A fit of the joint model, from the fit before", fits)
    imports = [import_time()]
    record.show("Import", imports)
    record.save(
        "core", {"round": rounds, "inclusion": probabilities, "fit": fits, "import": imports}
    )


if __name__ == "__main__":
    main()
