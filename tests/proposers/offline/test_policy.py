"""What is proposed, and why."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest

from coevolve.proposers.base import Proposal, View
from coevolve.proposers.offline import offline_proposer
from coevolve.proposers.offline.building_blocks import Recipe
from coevolve.proposers.offline.offline_proposer import Idea
from tests.effort import effort
from tests.proposers.offline.histories import (
    SPACE,
    TASKS,
    History,
    Trace,
    additive,
    proposal,
    recipe_of,
    searched,
)

SEEDS = SPACE.seeds
FIRST = len(SEEDS)

Propose = Callable[[View, int], list[Proposal]]


def ideas(view: View, count: int) -> list[Idea]:
    return offline_proposer.ideas(view, count, SPACE)


def proposed(view: View, count: int) -> list[Proposal]:
    """What the policy proposes, without its files."""
    return [
        Proposal(
            name="candidate",
            files=proposal(idea.recipe).files,
            components=idea.recipe.components,
            parents=idea.parents,
            kind=idea.kind,
        )
        for idea in ideas(view, count)
    ]


def at_random(view: View, count: int) -> list[Proposal]:
    """What chance proposes."""
    generator = np.random.default_rng(view.seed)
    return [proposal(SPACE.drawn(generator)) for _ in range(count)]


def after(
    recipe: Recipe,
    *,
    failed: Mapping[str, object],
    solved_by: Recipe | None = None,
    various: bool = False,
    tried: Sequence[Recipe] = (),
) -> Idea:
    """The next refinement where a recipe is the best so far, but for six failures.

    `various` gives each of them another answer; `tried` was tried as well, with less success.
    """
    history, wrong = History(rounds=3), dict.fromkeys(TASKS[:6], 0.0)
    others = [solved_by or recipe_of(count="12"), recipe_of(count="8"), recipe_of(count="6")]
    for place, other in enumerate([*others, *SEEDS.values(), *tried]):
        outcomes = dict.fromkeys(wrong, 1.0) if other == solved_by else {}
        history.add(proposal(other, f"other-{place}"), 0.4, outcomes=outcomes)
    traces: dict[str, Trace] = {task: {"trace": failed, "output": ""} for task in wrong}
    if various:
        traces = {task: {"trace": {**failed, "answer": task}, "output": ""} for task in wrong}
    history.add(proposal(recipe, "best"), 0.7, se=0.02, outcomes=wrong, traces=traces)
    found = ideas(history.view(), 1)[0]
    assert found.parents == ("best",)
    return found


def test_the_first_candidates_are_the_seeds() -> None:
    made = ideas(History().view(), FIRST)
    assert [idea.recipe for idea in made] == list(SEEDS.values())[:FIRST]
    assert all(idea.kind == "explore" and idea.hypothesis for idea in made)


def test_nothing_is_proposed_twice() -> None:
    for rounds, count in effort([(10, 3)], [(60, 1), (20, 3)]):
        history = searched(proposed, additive(3), rounds=rounds, count=count, seed=rounds)
        assert len(set(history.recipes())) == rounds * count


def test_a_refused_candidate_is_not_proposed_again() -> None:
    history = History()
    for _ in range(10):
        for made in proposed(history.view(), 2):
            history.add(made, None)
        history.rounds += 1
    assert len(set(history.recipes())) == 20


def test_starting_harnesses_and_the_work_of_others_do_not_matter() -> None:
    history = History()
    history.add(Proposal(name="start", files={"harness.py": b""}), 0.6)
    other = Proposal(name="theirs", files={"harness.py": b"1"}, components=("retrieval",))
    history.add(other, 0.9)
    assert [idea.recipe for idea in ideas(history.view(), 2)] == list(SEEDS.values())[:2]


def test_rounds_both_refine_and_explore() -> None:
    history = searched(proposed, additive(1), rounds=10, count=2, seed=1)
    kinds = Counter(standing.candidate.kind for standing in history.standings[FIRST:])
    parents = Counter(len(standing.candidate.parents) for standing in history.standings[FIRST:])
    assert kinds["exploit"] > kinds["explore"] > 0
    assert parents[1]
    assert parents[2]
    assert not parents[0]


def test_answers_outside_the_labels_lead_to_a_constraint() -> None:
    trace = {"gold": "printer", "answer": "I do not know", "calls": [{"prompt": "Q: x\nA:"}]}
    idea = after(recipe_of(select="none", ask="free"), failed=trace)
    assert idea.recipe["ask"] in ("choose", "standardised")
    assert "best answers outside the labels on 6 of its 6 failures" in idea.hypothesis


def test_one_answer_to_everything_leads_to_calibration() -> None:
    call = {"prompt": "Q: x\nA:", "choices": ["printer", "door"]}
    idea = after(
        recipe_of(select="none"), failed={"gold": "printer", "answer": "door", "calls": [call]}
    )
    assert idea.recipe["ask"] in ("calibrated", "standardised")
    assert "gives the same answer on 6 of its 6 failures" in idea.hypothesis


def test_a_shortlist_without_the_right_label_is_remedied() -> None:
    recipe = recipe_of(
        select="none", shortlist="3", ask="standardised", trust="2", notes="keywords"
    )
    call = {"prompt": "Q: x\nA:", "choices": ["door", "laptop"], "scores": True}
    idea = after(recipe, failed={"gold": "printer", "answer": "door", "calls": [call]})
    assert idea.recipe["shortlist"] in ("12", "all") or idea.recipe["like"] == "pieces"
    assert "The shortlist of best lacks the right label on 6 of its 6 failures" in idea.hypothesis


def test_examples_without_the_right_label_lead_to_other_examples() -> None:
    call = {"prompt": "Q: y\nA: door\n\nQ: x\nA:", "choices": ["printer", "door"]}
    trace = {"gold": "printer", "answer": "door", "calls": [call]}
    made = after(recipe_of(notes="keywords"), failed=trace, various=True)
    assert (
        made.recipe["select"] == "quota"
        or made.recipe["count"] == "8"
        or made.recipe["like"] == "fused"
    )
    assert "examples of best lack the right label on 6 of its 6 failures" in made.hypothesis


def test_what_similar_examples_know_leads_to_weighing_them() -> None:
    recipe = recipe_of(select="none", ask="standardised", notes="keywords")
    call = {"prompt": "x (keywords:", "choices": ["printer", "door"]}
    trace = {"gold": "printer", "answer": "door", "calls": [call]}
    idea = after(recipe, failed=trace, solved_by=recipe_of(count="2"))
    assert idea.recipe["trust"] in ("1", "2")
    assert "candidates that use similar examples are right where best is wrong" in idea.hypothesis


@pytest.mark.parametrize(
    "trace", [{}, {"gold": 3, "answer": "x"}, ["no"], {"gold": "a", "answer": None, "calls": "?"}]
)
def test_strange_traces_do_no_harm(trace: object) -> None:
    idea = after(recipe_of(ask="free"), failed=trace)  # type: ignore[arg-type]
    assert "failures" not in idea.hypothesis


def test_a_search_does_better_than_chance() -> None:
    """The best true score after 24 candidates, on average over 8 worlds, or 24."""

    def best(propose: Propose, seed: int) -> float:
        truth = additive(seed)
        return max(map(truth, searched(propose, truth, rounds=12, count=2, seed=seed).recipes()))

    gains = [best(proposed, seed) - best(at_random, seed) for seed in range(effort(8, 24))]
    assert np.mean(gains) > 0.03


def test_what_was_tried_against_a_failure_is_not_proposed_for_it_again() -> None:
    """The outcomes of what was tried say whether it helps; a hunch would say the same forever."""
    recipe = recipe_of(select="none", ask="standardised", notes="keywords")
    call = {"prompt": "x (keywords:", "choices": ["printer", "door"]}
    trace = {"gold": "printer", "answer": "door", "calls": [call]}
    unrelated = [SPACE.changed(recipe, {"format": block}) for block in ("topic", "tags")]
    changes = ({"trust": "1"}, {"trust": "2"}, {"shortlist": "6"})
    remedies = [SPACE.changed(recipe, change) for change in changes]
    for tried, again in ((unrelated, True), (remedies, False)):
        idea = after(recipe, failed=trace, solved_by=recipe_of(count="2"), tried=tried)
        assert ("similar examples get a vote" in idea.hypothesis) == again


def test_a_round_does_not_try_several_strengths_of_one_change() -> None:
    history = searched(proposed, additive(3), rounds=6, count=3, seed=3)
    recipes = {s.candidate.name: SPACE.of(s.candidate.components) for s in history.standings}
    for number in range(1, 7):
        made = [s.candidate for s in history.standings if s.candidate.round == number]
        changes = [
            (new.parents, slot)
            for new in made
            if len(new.parents) == 1 and new.kind == "exploit"
            for slot in recipes[new.parents[0]].differs(recipes[new.name])  # type: ignore
        ]
        assert len(changes) == len(set(changes))
