"""Any sequence of asking, telling and restoring keeps its promises."""

import copy
import json
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from coevolve import Assignment, Estimate, Missing, Pool, Selector, protocols
from coevolve.errors import ChangedOutcomeError, NoOutcomeError
from tests.effort import effort

TASKS = tuple(f"t{i}" for i in range(9))
PROTOCOLS = tuple(known.name for known in protocols())
score = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1), st.builds(Missing, st.just("x")))


class AskTell(RuleBasedStateMachine):
    """Drives a selector beside a plain dictionary of what was told."""

    assignments = Bundle("assignments")

    @initialize(
        protocol=st.sampled_from(PROTOCOLS),
        fraction=st.sampled_from([0.1, 0.4, 1.0]),
        trials=st.sampled_from([1, 2]),
        pools=st.booleans(),
        draw_per=st.sampled_from(["round", "candidate"]),
        start=st.lists(st.lists(score, min_size=9, max_size=9), min_size=1, max_size=2),
    )
    def open(
        self,
        protocol: str,
        fraction: float,
        trials: int,
        pools: bool,
        draw_per: Any,
        start: list[list[Any]],
    ) -> None:
        pool = Pool(TASKS, pools=["x"] * 4 + ["y"] * 5 if pools else None)
        self.selector = Selector(
            pool,
            protocol=protocol,
            fraction=fraction,
            trials=trials,
            draw_per=draw_per,
            seed=5,
        )
        self.model: dict[tuple[str, str, int], Any] = {}
        self.trials, self.told = trials, 0
        self.asked = 0
        for number, values in enumerate(start):
            results = {task: [value] * trials for task, value in zip(TASKS, values, strict=True)}
            self.selector.tell_full(f"start-{number}", results)

    @rule(target=assignments, number=st.integers(1, 3))
    def ask(self, number: int) -> Any:
        names = [f"c{self.asked + i}" for i in range(number)]
        self.asked += number
        return multiple(*self.asked_as_planned(names))

    @rule(target=assignments, final=st.booleans())
    def ask_for_more(self, final: bool) -> Any:
        return multiple(*self.asked_as_planned(final=final))

    def asked_as_planned(self, *names: list[str], final: bool = False) -> list[Assignment]:
        """A plan changes nothing, and says what `ask` records."""
        before = self.selector.events
        planned = self.selector.plan(*names, final=final)
        assert self.selector.events == before
        made = self.selector.ask(*names, final=final)
        assert list(self.selector.events_since(len(before))) == planned
        return made

    @rule(assignment=assignments, data=st.data())
    def tell(self, assignment: Assignment, data: st.DataObject) -> None:
        task = data.draw(st.sampled_from(assignment.tasks))
        values = data.draw(st.lists(score, min_size=1, max_size=len(assignment.trials)))
        told = {
            (assignment.candidate, task, trial): value
            for trial, value in zip(assignment.trials, values, strict=False)
        }
        clash = any(key in self.model and self.model[key] != told[key] for key in told)
        try:
            self.selector.tell(assignment, {task: values})
        except ChangedOutcomeError:
            assert clash
        else:
            assert not clash
            self.told += len(told.keys() - self.model.keys())
            self.model |= told

    @rule(assignment=consumes(assignments))
    def finish(self, assignment: Assignment) -> None:
        """Tell what is left of an assignment."""
        for task in assignment.tasks:
            keys = [(assignment.candidate, task, trial) for trial in assignment.trials]
            values = [self.model.get(key, 1.0) for key in keys]
            self.selector.tell(assignment, {task: values})
            self.told += len(set(keys) - self.model.keys())
            self.model |= dict(zip(keys, values, strict=True))
        assert assignment.tasks not in [
            other.tasks
            for other in self.selector.outstanding()
            if (other.candidate, other.batch) == (assignment.candidate, assignment.batch)
        ]

    @rule()
    def restore(self) -> None:
        self.selector = Selector.from_events(json.loads(json.dumps(self.selector.events)))

    @precondition(lambda self: hasattr(self, "selector"))
    @invariant()
    def counts_match(self) -> None:
        assert self.selector.evaluations == self.told

    @precondition(lambda self: hasattr(self, "selector"))
    @invariant()
    def estimates_come_with_honest_counts(self) -> None:
        for name in self.selector.candidates:
            try:
                estimate = self.selector.estimate(name)
            except NoOutcomeError:
                continue
            assert 0 < estimate.tasks <= estimate.drawn <= estimate.pool_size == 9
            if estimate.low is not None and estimate.high is not None:
                assert estimate.low <= estimate.value <= estimate.high

    @precondition(lambda self: hasattr(self, "selector"))
    @invariant()
    def a_restored_selector_is_the_same(self) -> None:
        restored = Selector.from_events(self.selector.events)
        assert restored.history().mean.tobytes() == self.selector.history().mean.tobytes()
        assert self.estimates(restored) == self.estimates(self.selector)
        original = copy.deepcopy(self.selector)
        later = [selector.ask(["probe"])[0] for selector in (original, restored)]
        assert later[0].tasks == later[1].tasks
        assert later[0].probabilities == later[1].probabilities
        assert original.events == restored.events

    @staticmethod
    def estimates(selector: Selector) -> list[Estimate | None]:
        found: list[Estimate | None] = []
        for name in (*selector.starts, *selector.candidates):
            try:
                found.append(selector.estimate(name))
            except NoOutcomeError:
                found.append(None)
        return found

    @rule(data=st.data())
    def tell_in_full(self, data: st.DataObject) -> None:
        """Complete a candidate, repeating its scores and making good what was missing."""
        if not self.selector.candidates:
            return
        name = data.draw(st.sampled_from(self.selector.candidates))
        results: dict[str, Any] = {}
        for task in TASKS:
            keys = [(name, task, trial) for trial in range(self.trials)]
            cells = [self.model.get(key, 1.0) for key in keys]
            results[task] = [1.0 if isinstance(cell, Missing) else cell for cell in cells]
            for key, cell in zip(keys, cells, strict=True):
                self.model.setdefault(key, cell)
        self.selector.tell_full(name, results)
        assert self.selector.estimate(name).tasks == 9


TestAskTell = AskTell.TestCase
TestAskTell.settings = settings(max_examples=effort(6, 80), stateful_step_count=20, deadline=None)
