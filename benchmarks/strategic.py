"""Candidates that drop the tasks they cannot solve, by every fault they can reach.

A candidate knows a third of the tasks. On the others it makes the trial fail in some way, so that
the trial is not its own failure. Honest rivals know half of the tasks. Every search is run twice
with the same seed: once with the fault, and once with a candidate that fails the same tasks
honestly. A fault pays if the candidate is chosen more often, or estimated higher, than the honest
one. Model faults go through the real gateway, with a provider that answers other requests, except
where candidates exhaust it. Faults of the sandbox are classified by the functions that classify
the real ones; `tests/executors/test_dropped_tasks.py` compares them.

Run as `make bench-strategic` (a quarter of an hour); `--quick` runs few searches, unrecorded.
"""

import argparse
import asyncio
import json
import os
import signal
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import record
import virtual_time

from coevolve import Pool, Selector
from coevolve.errors import StopRun
from coevolve.executors.failures import classify
from coevolve.executors.isolation import Limits
from coevolve.executors.isolation.harness_calls import reported
from coevolve.executors.isolation.sandbox import exit_fault
from coevolve.executors.local import explained
from coevolve.executors.worker_process import ServiceUse
from coevolve.models.gateway import Gateway
from coevolve.models.model_client import ModelClient, StubModel
from coevolve.models.model_errors import (
    ContextTooLong,
    ModelReplyError,
    ModelUnavailable,
    TrialCapError,
)
from coevolve.models.provider import JSON, ModelReply, ModelRequest
from coevolve.models.rate_limits import Minute, Retrying
from coevolve.search.budget import Settings
from coevolve.search.candidate import Candidate
from coevolve.search.journal import MemoryJournal
from coevolve.search.loop import Search, open_run
from coevolve.search.proposal import Proposal, View
from coevolve.search.run_state import RunState
from coevolve.search.trials import Blame, Fault, Prepared, Result, Trial

TASKS, ROUNDS, CANDIDATES = 24, 4, 3
KNOWN, RIVAL = 1 / 3, 1 / 2
SECONDS = 60.0
FILE = "harness.json"
PROTOCOLS = ("task-coevolve", "adaptive")
FAULTS = {
    "fails honestly": "",
    "429 for its requests": "429",
    "429, request too large": "too large",
    "answers later than [model] seconds": "late",
    "replies that cannot be read": "garbage",
    "waits past the time limit of the trial": "service-limit",
    "time-out of the evaluator's own service": "ReadTimeout",
    "429 of the evaluator's own service": "RateLimitError",
    "sandbox that does not start": "SandboxError",
    "memory of the evaluator": "MemoryError",
    "death of the worker": "worker-died",
    "calls of the model past trial_calls": "trial_calls",
    "tokens of the model past trial_tokens": "trial_tokens",
    "forks without end": "fork",
    "memory of the sandbox": "memory",
    "sandbox killed for its memory": "killed",
    "exit of the sandbox": "exit",
    "death in the check": "check",
    "exit at import": "import",
}
REFUSED = ("check", "import")
"""Faults before the first trial."""


@dataclass(frozen=True, kw_only=True)
class Service:
    """How the model and the evaluator's own service answer.

    `outage` is when the model is down; `per_minute` how many requests it allows, `slots` how many
    it answers at once, `failing` the share of requests that fail by chance, and `judging` the same
    for the evaluator's service. One that `holds` requests works on them after the client has gone.
    """

    outage: tuple[float, float] = (0.0, 0.0)
    per_minute: int | None = None
    slots: int | None = None
    failing: float = 0.0
    judging: float = 0.0
    holds: bool = False


USUAL = Service()
SERVICES = {
    "a flood of requests; 60 a minute are allowed": (Service(per_minute=60), "flood"),
    "answers later than [model] seconds; the model has one slot": (Service(slots=1), "late"),
    "the same, and it works on requests whose client has gone": (
        Service(slots=1, holds=True),
        "hog",
    ),
    "429; three of ten requests fail by chance": (Service(failing=0.3), "429"),
    "time-out; the evaluator's service fails three of ten times": (
        Service(judging=0.3),
        "ReadTimeout",
    ),
}
"""Services that a candidate can exhaust, or that fail for all; and how it drops tasks there."""
TOGETHER = ("429 for its requests", "time-out of the evaluator's own service")
"""Faults that are also tried with strategic candidates only, from the second round on."""


class PickyProvider:
    """Answers every request but those that name a way to fail."""

    identity: Mapping[str, JSON] = {"name": "picky"}
    window = None
    gives_scores = False

    def __init__(self, service: Service, rng: np.random.Generator) -> None:
        self._service, self._rng = service, rng
        self._slots = asyncio.Semaphore(service.slots or 1_000)
        self._minute = Minute(service.per_minute or 1_000_000)
        self._held: set[asyncio.Task[ModelReply]] = set()

    async def complete(self, request: ModelRequest, /) -> ModelReply:
        """An answer, or the error that the prompt names."""
        now = asyncio.get_running_loop().time()
        if self._minute.wait(now, 1) > 0:
            await asyncio.sleep(0.2)
            raise ModelUnavailable("429: slow down.")
        self._minute.enter(now, 1)
        if not self._service.holds:
            return await self._in_turn(request)
        task = asyncio.ensure_future(self._in_turn(request))
        self._held.add(task)
        task.add_done_callback(self._held.discard)
        return await asyncio.shield(task)

    async def _in_turn(self, request: ModelRequest) -> ModelReply:
        async with self._slots:
            return await self._answer(request)

    async def _answer(self, request: ModelRequest) -> ModelReply:
        await asyncio.sleep(1.0)
        begin, end = self._service.outage
        if begin <= asyncio.get_running_loop().time() < end:
            raise ModelUnavailable("503: down.")
        if self._rng.random() < self._service.failing:
            raise ModelUnavailable("503: overloaded.")
        prompt = request.prompt or ""
        if prompt == "429":
            raise ModelUnavailable("429: slow down.")
        if prompt in ("late", "hog"):
            await asyncio.sleep(10 * SECONDS)
        if prompt == "garbage":
            raise ModelReplyError("a reply that cannot be read.")
        if prompt == "too large":
            raise ContextTooLong("429: request too large.")
        return ModelReply(text="yes", finish="stop", tokens_in=5, tokens_out=1)

    async def count(self, texts: Sequence[str], /) -> list[int]:
        """A quarter of the characters."""
        return [len(text) // 4 for text in texts]

    async def close(self) -> None:
        """Nothing was started."""


class StrategicExecutor:
    """Runs candidates that are a list of known tasks and a way to fail the others."""

    capacity = 4

    def __init__(self, journal: MemoryJournal, service: Service, seed: int) -> None:
        self._journal, self._service = journal, service
        self._rng = np.random.default_rng([seed, 9])
        provider = PickyProvider(service, np.random.default_rng([seed, 8]))
        self._gateway = Gateway(provider, retrying=Retrying(seconds=SECONDS))

    async def check(self, candidate: Candidate) -> Prepared:
        """Whether it dies in its check."""
        way = self._read(candidate)["way"]
        return Prepared(fault=fault_of(way)) if way in REFUSED else Prepared()

    async def prepare(self, candidate: Candidate) -> Prepared:
        """Nothing to prepare."""
        return Prepared()

    async def run(self, candidate: Candidate, trial: Trial) -> Result:
        """One if it knows the task; else 0, or the fault it brings about."""
        harness = self._read(candidate)
        knows = trial.task in harness["knows"]
        way = "" if knows else harness["way"]
        if knows and harness["way"] == "hog":
            return Result(score=1.0)  # without the model, which its other trials occupy
        if self._rng.random() < self._service.judging:
            return Result(fault=fault_of("ReadTimeout"))
        try:
            for number in range(200 if way == "flood" else 1):
                await self._gateway.ask(prompt=_prompt(way, trial, number))
        except Exception as error:
            return Result(fault=classify(error))
        if way in ("", "flood"):
            return Result(score=float(knows))
        use = ServiceUse()
        use.late = "model" if way == "service-limit" else ""
        return Result(fault=await explained(fault_of(way), self._gateway.services(), use))

    async def close(self) -> None:
        """Close the gateway."""
        await self._gateway.close()

    def _read(self, candidate: Candidate) -> dict[str, Any]:
        return dict(json.loads(self._journal.get(candidate.files[FILE])))


def _prompt(way: str, trial: Trial, number: int) -> str:
    return f"{trial.task} {number}" if way == "flood" else way or "question"


def fault_of(way: str) -> Fault:
    """The fault of a way to fail, unless it is an answer of the model."""
    match way:
        case "service-limit":
            reason = "the service 'model' did not answer"
            return Fault(blame=Blame.INFRASTRUCTURE, kind=way, reason=reason)
        case "worker-died":
            return Fault(blame=Blame.DOUBTFUL, kind=way, reason="the worker was ended by signal 9")
        case "ReadTimeout":
            base = type("Timeout", (Exception,), {})
            return classify(type(way, (base,), {})("on purpose"))
        case "trial_calls" | "trial_tokens":
            return classify(_past_cap(way))
        case "fork" | "memory":
            name = "BlockingIOError" if way == "fork" else "MemoryError"
            return classify(reported({"error": {"type": name, "text": "on purpose"}}, Limits()))
        case "killed" | "check":
            return classify(exit_fault(-signal.SIGKILL, Limits()))
        case "exit" | "import":
            return classify(exit_fault(0, Limits()))
        case _:
            return classify(type(way, (Exception,), {})("on purpose"))


class CostlyStub(StubModel):
    """A stub of the engine whose answers cost tokens."""

    def ask(self, service: str, /, **payload: Any) -> Any:
        """The answer of a service."""
        cost = {"usage": {"tokens_in": 5, "tokens_out": 1}} if service == "model" else {}
        return {**super().ask(service, **payload), **cost}


def _past_cap(cap: str) -> TrialCapError:
    """The error of a trial that asks the model until a cap stops it."""
    calls, tokens = (3, None) if cap == "trial_calls" else (None, 3)
    client = ModelClient(CostlyStub(trial_calls=calls, trial_tokens=tokens))
    try:
        for _ in range(10):
            client.model(prompt="question")
    except TrialCapError as error:
        return error
    raise AssertionError(f"{cap} had no effect.")


@dataclass(frozen=True)
class Rivals:
    """Proposes one strategic candidate and honest rivals; or strategic ones only, later."""

    seed: int
    way: str
    alone: bool

    async def propose(self, view: View, count: int) -> Sequence[Proposal]:
        """The candidates of a round."""
        rng = np.random.default_rng([self.seed, view.round])
        found = []
        for index in range(count):
            strategic = index == 0 or (self.alone and view.round > 1)
            share, way = (KNOWN, self.way) if strategic else (RIVAL, "")
            name = f"{'strategic' if strategic else 'rival'}-{view.round}-{index}"
            found.append(Proposal(files=_files(rng, view.tasks, share, way), name=name))
        return found


def _files(
    rng: np.random.Generator, tasks: Sequence[str], share: float, way: str
) -> dict[str, bytes]:
    known = rng.choice(tasks, round(share * len(tasks)), replace=False).tolist()
    return {FILE: json.dumps({"knows": sorted(known), "way": way}).encode()}


@dataclass(frozen=True, kw_only=True)
class Found:
    """What came of one search."""

    chosen: str
    strategic: list[float]
    rivals: list[float]


def search(
    seed: int,
    *,
    way: str,
    protocol: str,
    alone: bool = False,
    service: Service = USUAL,
) -> Found:
    """One search on virtual time."""
    state = virtual_time.run(lambda clock: _searched(clock, seed, way, protocol, alone, service))
    kinds: dict[str, list[float]] = {"strategic": [], "rival": []}
    for name in state.selector.candidates:
        found = state.estimate(name)
        if found is not None:
            kinds[name.partition("-")[0]].append(found.value)
    chosen = "" if state.chosen is None else str(state.chosen["candidate"])
    return Found(chosen=chosen, strategic=kinds["strategic"], rivals=kinds["rival"])


async def _searched(
    clock: virtual_time.Clock,
    seed: int,
    way: str,
    protocol: str,
    alone: bool,
    service: Service,
) -> RunState:
    rng, journal = np.random.default_rng([seed, 0]), MemoryJournal(clock)
    pool = Pool([f"task-{n:02}" for n in range(TASKS)])
    open_run(
        journal,
        name="strategic",
        settings=Settings(rounds=ROUNDS, candidates=CANDIDATES, seed=seed),
        selector=Selector(pool, fraction=0.25, protocol=protocol, seed=seed),
        starts={name: _files(rng, pool.tasks, 0.4, "") for name in ("start-a", "start-b")},
    )
    while True:
        executor = StrategicExecutor(journal, service, seed)
        try:
            return await Search(journal, executor, Rivals(seed, way, alone)).run()
        except StopRun:  # the operator starts the service anew
            await asyncio.sleep(3600)


def row(
    fault: str, protocol: str, found: Sequence[Found], honest: Sequence[Found]
) -> dict[str, Any]:
    """The searches with a fault beside those with honest failure."""
    wins = [sum(one.chosen.startswith("strategic") for one in some) for some in (found, honest)]
    means = [_mean(value for one in some for value in one.strategic) for some in (found, honest)]
    return {
        "fault": fault,
        "protocol": protocol,
        "searches": len(found),
        "chosen": wins[0],
        "chosen if honest": wins[1],
        "estimate": f"{means[0]:.3f}",
        "estimate if honest": f"{means[1]:.3f}",
        "same choice": sum(a.chosen == b.chosen for a, b in zip(found, honest, strict=True)),
    }


def _mean(values: Any) -> float:
    numbers = list(values)
    return float(np.mean(numbers)) if numbers else float("nan")


def main() -> None:
    """Run, print and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few searches, nothing recorded")
    quick = parser.parse_args().quick
    seeds = range(10 if quick else 200)
    table, outages = [], []
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for protocol in PROTOCOLS:
            for alone in (False, True):
                honest: list[Found] = []
                for fault, way in FAULTS.items():
                    if alone and way and fault not in TOGETHER:
                        continue
                    one = partial(search, way=way, protocol=protocol, alone=alone)
                    found = list(pool.map(one, seeds, chunksize=5))
                    honest = honest or found
                    name = f"{fault}, by all" if alone else fault
                    table.append(row(name, protocol, found, honest))
            for name, (service, way) in SERVICES.items():
                one = partial(search, protocol=protocol, service=service)
                found = list(pool.map(partial(one, way=way), seeds, chunksize=5))
                honest = list(pool.map(partial(one, way=""), seeds, chunksize=5))
                table.append(row(name, protocol, found, honest))
            for outage in ((0.0, 0.0), (40.0, 100.0), (40.0, 160.0)):
                one = partial(search, way="", protocol=protocol, service=Service(outage=outage))
                found = list(pool.map(one, seeds, chunksize=5))
                rivals = [value for run in found for value in run.rivals]
                outages.append(
                    {
                        "protocol": protocol,
                        "outage s": f"{outage[1] - outage[0]:.0f}",
                        "candidates": len(rivals),
                        "truth": f"{RIVAL:.3f}",
                        "mean estimate": f"{np.mean(rivals):.3f}",
                        "standard error": f"{np.std(rivals) / np.sqrt(len(rivals)):.3f}",
                    }
                )
    record.show("Candidates that drop what they cannot solve", table)
    record.show("Honest candidates during an outage of the model", outages)
    if not quick:
        record.save("strategic", {"faults": table, "outages": outages})


if __name__ == "__main__":
    main()
