"""The joint model: exact where nothing is unknown, sane where nothing is known, calibrated."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coevolve import Missing, Pool, Selector, protocol
from coevolve.core.arrays import Bools, Floats
from coevolve.core.estimators import modelled
from coevolve.core.joint import Joint, Seen, newton
from coevolve.core.joint_effects import NODES, Effects, drift
from coevolve.core.posterior import Cells, Posterior
from coevolve.errors import InputError
from tests.effort import effort


def cells(outcomes: Floats, seen: Bools, trials: float = 1.0) -> Cells:
    candidates, tasks = outcomes.shape
    row, column = np.nonzero(seen)
    return Cells(
        candidate=row,
        task=column,
        score=outcomes[row, column],
        trials=np.full(len(row), trials),
        rounds=(0, 0, *range(1, candidates - 1))[:candidates],
        shares=np.full(tasks, 1 / tasks),
    )


def world(
    seed: int, candidates: int = 30, tasks: int = 200, share: float = 0.2, trials: int = 1
) -> tuple[Floats, Cells]:
    """Outcomes of a world as the model has it, and the cells seen: uniform draws."""
    rng = np.random.default_rng(seed)
    ability, ease = rng.normal(0, 0.6, candidates), rng.normal(0, 2.0, tasks)
    chance = 1 / (1 + np.exp(-(ability[:, None] + ease)))
    outcomes: Floats = rng.binomial(trials, chance) / trials
    seen = rng.random(chance.shape) < share
    seen[:2] = True
    return outcomes, cells(outcomes, seen, trials)


def test_what_is_seen_in_full_is_exact() -> None:
    outcomes, _ = world(0, candidates=5, tasks=30)
    posterior = Joint().fit(cells(outcomes, np.ones(outcomes.shape, dtype=np.bool_)), None)
    np.testing.assert_allclose(posterior.scores, outcomes.mean(axis=1), atol=1e-12)
    np.testing.assert_allclose(posterior.sd, 0, atol=1e-9)


@pytest.mark.parametrize("trials", [1, 2, 5])
def test_intervals_hold_in_worlds_of_the_model(trials: int) -> None:
    """840 intervals of 30 worlds; the standard error of their coverage is about 1.2 points."""
    held: list[bool] = []
    errors: list[float] = []
    raw: list[float] = []
    for seed in range(30):
        outcomes, seen = world(seed, trials=trials)
        posterior = Joint().fit(seen, None)
        truth = outcomes.mean(axis=1)
        gap = (posterior.scores - truth)[2:]
        held.extend(np.abs(gap) <= 1.645 * posterior.sd[2:])
        errors.extend(gap)
        for candidate in range(2, len(truth)):
            mine = seen.score[seen.candidate == candidate]
            raw.append(mine.mean() - truth[candidate])
    assert 0.85 <= np.mean(held) <= 0.95
    assert np.sqrt(np.mean(np.square(errors))) < 0.75 * np.sqrt(np.mean(np.square(raw)))
    assert abs(np.mean(errors)) < 0.005


def test_starting_harnesses_of_another_kind_do_not_mislead_about_candidates() -> None:
    """Three weak starts find other tasks easy; each of 30 candidates has six outcomes.

    If starts and candidates had the same variances, the root mean square error would be 0.092.
    """
    squares: list[float] = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        ability, ease = rng.normal(0.8, 0.3, 33), rng.normal(0.3, 1.7, 100)
        ability[:3] = -1.5, -1.0, -0.5
        logits = ability[:, None] + ease
        logits[:3] = ability[:3, None] + rng.normal(0, 1.7, (3, 100))
        outcomes = np.asarray(rng.random((33, 100)) < 1 / (1 + np.exp(-logits)), dtype=float)
        seen = np.zeros(outcomes.shape, dtype=np.bool_)
        seen[:3] = True
        for row in seen[3:]:
            row[rng.choice(100, size=6, replace=False)] = True
        rounds = (0, 0, 0, *(1 + at // 3 for at in range(30)))
        posterior = Joint().fit(replace(cells(outcomes, seen), rounds=rounds), None)
        squares.extend((posterior.scores - outcomes.mean(axis=1))[3:] ** 2)
    assert np.sqrt(np.mean(squares)) < 0.08


def test_the_variance_of_the_drift_stays_while_nothing_drifts() -> None:
    _, seen = world(8, candidates=6)
    for rounds in ((0,) * 6, (0, 0, 1, 1, 1, 1), (1,) * 6):
        effects = Joint().fit(replace(seen, rounds=rounds), None).parameters
        assert effects.walk == Effects.at_first(6, 0.5).walk
        assert np.isfinite([effects.own, effects.start_ability, effects.start_slope]).all()


def test_trials_that_only_repeat_themselves_are_not_counted_as_more() -> None:
    _, once = world(7)
    repeated = replace(once, trials=np.full(len(once.trials), 5.0))
    sd = [Joint().fit(seen, None).sd[2:].mean() for seen in (once, repeated)]
    assert sd[1] == pytest.approx(sd[0], rel=0.1)


def test_differences_are_as_uncertain_as_the_covariance_says() -> None:
    z: list[float] = []
    for seed in range(30):
        outcomes, seen = world(seed, candidates=12)
        posterior, truth = Joint().fit(seen, None), outcomes.mean(axis=1)
        for a in range(2, 11):
            variance = posterior.covariance[[a, a + 1], [a, a + 1]].sum()
            variance -= 2 * posterior.covariance[a, a + 1]
            gap = posterior.scores[a] - posterior.scores[a + 1] - truth[a] + truth[a + 1]
            z.append(gap / np.sqrt(variance))
    assert 0.85 < np.std(z) < 1.15


def test_a_warm_start_comes_to_the_same_end() -> None:
    _, seen = world(3)
    part = replace(
        seen,
        candidate=seen.candidate[:-20],
        task=seen.task[:-20],
        score=seen.score[:-20],
        trials=seen.trials[:-20],
    )
    model = Joint(tolerance=1e-6, steps=400)
    cold, warm = model.fit(seen, None), model.fit(seen, model.fit(part, None))
    assert (np.abs(warm.scores - cold.scores) <= 0.15 * cold.sd + 1e-9).all()
    np.testing.assert_allclose(warm.sd, cold.sd, rtol=0.05, atol=1e-9)


def test_candidates_may_join_between_fits() -> None:
    outcomes, seen = world(4, candidates=10)
    few = seen.candidate < 7
    before = Joint().fit(
        replace(
            seen,
            candidate=seen.candidate[few],
            task=seen.task[few],
            score=seen.score[few],
            trials=seen.trials[few],
            rounds=seen.rounds[:7],
        ),
        None,
    )
    after = Joint().fit(seen, before)
    assert after.scores.shape == (10,)
    assert np.corrcoef(after.scores, outcomes.mean(axis=1))[0, 1] > 0.7


def test_the_gradient_is_that_of_the_marginal_likelihood() -> None:
    _, seen = world(5, candidates=4, tasks=12, share=0.6)
    data = Seen.of(seen)
    effects = Effects.at_first(4, 0.5)
    effects = replace(effects, curves=effects.curves + np.array([[0.3, -0.2, 0.1, 0.5]] * 2) / 2)

    def value(curves: Floats) -> float:
        logits = curves[0][:, None] + curves[1][:, None] * NODES
        likely = data.solved.T @ logits - data.trials.T @ np.logaddexp(0, logits)
        marginal = np.log(np.exp(likely) @ effects.masses).sum()
        prior = curves[0] @ np.linalg.solve(effects.prior(data.rounds), curves[0])
        steep = ((curves[1] - 1) ** 2 / effects.slope_variances(data.rounds)).sum()
        return float(marginal - prior / 2 - steep / 2)

    step = newton(data, effects)
    slope = np.array([_slope(value, effects.curves, at) for at in np.ndindex(2, 4)])
    gradient = np.linalg.solve(step.covariance, step.change.ravel())
    np.testing.assert_allclose(gradient / gradient[0], slope / slope[0], rtol=1e-4)

    # The information is that of the marginal likelihood, but for what is not linear in easiness.
    curvature = np.empty((8, 8))
    for row, at in enumerate(np.ndindex(2, 4)):
        bump = np.zeros((2, 4))
        bump[at] = 1e-3
        above, below = (
            np.array([_slope(value, effects.curves + sign * bump, to) for to in np.ndindex(2, 4)])
            for sign in (1, -1)
        )
        curvature[row] = (above - below) / 2e-3
    information = np.linalg.inv(step.covariance)
    error = np.abs(information + curvature).max() / np.abs(curvature).max()
    assert error < 0.05


def _slope(value: Callable[[Floats], float], curves: Floats, at: tuple[int, ...]) -> float:
    bump = np.zeros_like(curves)
    bump[at] = 1e-5
    return (value(curves + bump) - value(curves - bump)) / 2e-5


@pytest.mark.parametrize("value", [0.0, 1.0, 0.5])
def test_when_all_outcomes_agree_scores_are_finite_and_near(value: float) -> None:
    outcomes = np.full((6, 40), value)
    seen = np.random.default_rng(0).random((6, 40)) < 0.2
    posterior = Joint().fit(cells(outcomes, seen), None)
    assert np.isfinite(posterior.covariance).all()
    assert np.abs(posterior.scores - value).max() < 0.15


def test_a_candidate_without_outcomes_is_like_the_others_but_uncertain() -> None:
    _, seen = world(6, candidates=10)
    keep = seen.candidate != 9
    posterior = Joint().fit(
        replace(
            seen,
            candidate=seen.candidate[keep],
            task=seen.task[keep],
            score=seen.score[keep],
            trials=seen.trials[keep],
        ),
        None,
    )
    others = posterior.scores[:9]
    assert others.min() - 0.1 < posterior.scores[9] < others.max() + 0.1
    assert posterior.sd[9] > 1.5 * posterior.sd[2:9].max()
    assert posterior.newcomer.shape == (200,)


def test_before_anybody_is_there_everything_is_open() -> None:
    nothing = np.empty(0)
    none = Cells(
        candidate=nothing.astype(np.int64),
        task=nothing.astype(np.int64),
        score=nothing,
        trials=nothing,
        rounds=(),
        shares=np.full(3, 1 / 3),
    )
    assert Joint().fit(none, None).newcomer.tolist() == [0.5] * 3


def test_fractional_outcomes_are_less_noisy_than_coins() -> None:
    rng = np.random.default_rng(8)
    chance = 1 / (1 + np.exp(-(rng.normal(0, 0.5, 20)[:, None] + rng.normal(0, 1.5, 100))))
    seen = rng.random(chance.shape) < 0.2
    smooth: Floats = np.clip(chance + rng.normal(0, 0.05, chance.shape), 0, 1)
    coins = (rng.random(chance.shape) < chance).astype(np.float64)
    steady, noisy = (Joint().fit(cells(outcome, seen), None) for outcome in (smooth, coins))
    assert steady.sd.mean() < 0.6 * noisy.sd.mean()
    assert isinstance(steady.parameters, Effects)
    assert steady.parameters.dispersion < 0.5


def test_shares_weigh_the_tasks() -> None:
    outcomes, seen = world(9, candidates=6, tasks=40)
    shares = np.r_[np.full(20, 0.9 / 20), np.full(20, 0.1 / 20)]
    posterior = Joint().fit(replace(seen, shares=shares), None)
    np.testing.assert_allclose(posterior.scores[:2], (outcomes @ shares)[:2], atol=1e-12)


def test_drift_is_centred_and_of_unit_size() -> None:
    covariance = drift((0, 0, 1, 2, 3, 7))
    np.testing.assert_allclose(covariance.sum(axis=0), 0, atol=1e-12)
    assert np.trace(covariance) == pytest.approx(4)
    assert not covariance[:2].any()
    assert (np.linalg.eigvalsh(covariance) > -1e-9).all()
    assert not drift((1, 1)).any()


@settings(max_examples=effort(15, 60), deadline=None)
@given(data=st.data())
def test_any_outcomes_give_a_finite_posterior(data: st.DataObject) -> None:
    candidates, tasks = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 7))
    score = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1))
    rows = st.lists(score, min_size=tasks, max_size=tasks)
    outcomes = np.array(data.draw(st.lists(rows, min_size=candidates, max_size=candidates)))
    mask = st.lists(st.booleans(), min_size=tasks, max_size=tasks)
    seen = np.array(data.draw(st.lists(mask, min_size=candidates, max_size=candidates)))
    posterior = Joint().fit(cells(outcomes, seen), None)
    assert ((posterior.scores >= 0) & (posterior.scores <= 1)).all()
    assert np.isfinite(posterior.covariance).all()
    assert (np.diag(posterior.covariance) > -1e-12).all()
    assert ((posterior.chances > 0) & (posterior.chances < 1)).all()
    draws = posterior.draws(np.random.default_rng(0), 10)
    assert np.isfinite(draws).all()


def test_confidence_by_enumeration_of_two() -> None:
    """P(N(0.1, 0.02) > 0) = 0.7602; E max(-d, 0) = 0.0200 for d ~ N(0.1, 0.02)."""
    two = Posterior(
        scores=np.array([0.5, 0.6]),
        covariance=0.01 * np.eye(2),
        chances=np.full((2, 3), 0.5),
        newcomer=np.full(3, 0.5),
        parameters=None,
    )
    found = two.confidence(1, np.random.default_rng(1))
    assert found.probability == pytest.approx(0.7602, abs=0.02)
    assert found.regret == pytest.approx(0.0200, abs=0.002)


def test_shared_errors_do_not_make_a_choice_less_sure() -> None:
    covariance = np.full((2, 2), 0.01) + 1e-6 * np.eye(2)
    two = Posterior(
        scores=np.array([0.5, 0.52]),
        covariance=covariance,
        chances=np.full((2, 3), 0.5),
        newcomer=np.full(3, 0.5),
        parameters=None,
    )
    assert two.confidence(1, np.random.default_rng(1)).probability == 1.0


def searched(name: str = "joint", **options: object) -> Selector:
    """Six candidates in a world where the later ones are better."""
    outcomes, _ = world(10, candidates=8, tasks=60)
    tasks = [f"t{i}" for i in range(60)]
    selector = Selector(Pool(tasks), protocol=name, fraction=0.3, **options)  # type: ignore[arg-type]
    for start in range(2):
        selector.tell_full(f"c{start}", dict(zip(tasks, outcomes[start], strict=True)))
    for number in range(2, 8):
        for assignment in selector.ask([f"c{number}"]):
            scores = dict(zip(tasks, outcomes[number], strict=True))
            selector.tell(assignment, {task: scores[task] for task in assignment.tasks})
    return selector


def test_the_design_based_estimate_stands_beside_the_model() -> None:
    estimate = searched().estimate("c4")
    assert (estimate.method, estimate.tasks, estimate.drawn) == ("joint", 18, 18)
    assert estimate.check is not None
    assert estimate.check.method == "difference"
    assert estimate.se is not None
    assert estimate.check.se is not None
    assert estimate.se < estimate.check.se
    assert estimate.note == ""


def family(seed: int, candidates: int, tasks: int) -> Floats:
    """Outcomes of candidates as the model describes them, with abilities that drift upwards."""
    rng = np.random.default_rng([seed, 1])
    ability = np.cumsum(rng.normal(0.1, 0.2, candidates)) + rng.normal(0, 0.6, candidates)
    logits = ability[:, None] + rng.normal(0, 2, tasks)
    return (rng.random((candidates, tasks)) < 1 / (1 + np.exp(-logits))).astype(float)


def test_intervals_hold_in_small_families() -> None:
    """12 candidates, 30 tasks, 6 of them each: 95% intervals hold in 93% to 99% of 400."""
    held, as_estimated = [], []
    for seed in range(effort(40, 200)):
        outcomes = family(seed, 12, 30)
        tasks = list(range(30))
        selector = Selector(Pool(tasks), protocol="joint", seed=seed)
        for start in range(2):
            selector.tell_full(start, dict(zip(tasks, outcomes[start], strict=True)))
        for candidate in range(2, 12):
            (assignment,) = selector.ask([candidate])
            selector.tell(assignment, {t: outcomes[candidate, t] for t in assignment.tasks})
        posterior = selector._state.posterior()
        narrow = np.sqrt(np.diag(posterior.covariance))
        assert (posterior.sd >= narrow - 1e-12).all()
        for candidate in range(2, 12):
            error = abs(selector.estimate(candidate).value - outcomes[candidate].mean())
            held.append(error <= 1.96 * posterior.sd[candidate])
            as_estimated.append(error <= 1.96 * narrow[candidate])
    assert 0.93 <= np.mean(held) <= 0.99
    assert np.mean(as_estimated) < np.mean(held)


def test_wider_intervals_do_not_change_what_is_drawn() -> None:
    class Narrow(Joint):
        def fit(self, cells: Cells, start: Posterior | None) -> Posterior:
            return replace(Joint.fit(self, cells, start), wide=None)

    draws = []
    for model in (Joint(), Narrow()):
        rule = replace(protocol("adaptive"), name="draws", estimator=model)
        selector = Selector(Pool(list(range(30))), protocol=rule, seed=3)
        outcomes = family(3, 8, 30)
        for start in range(2):
            selector.tell_full(start, dict(enumerate(outcomes[start])))
        for candidate in range(2, 8):
            asked = selector.ask([candidate])
            while asked:
                for a in asked:
                    selector.tell(a, {task: outcomes[a.candidate, task] for task in a.tasks})
                asked = selector.ask()
        draws.append([e["draws"] for e in selector.events if e["type"] == "drawn"])
    assert draws[0] == draws[1]


def test_a_warning_tells_when_the_two_disagree_beyond_chance() -> None:
    check = searched("task-coevolve").estimate("c4")
    assert check.se is not None
    for distance, warned in ((2.9, False), (3.1, True)):
        sd = 0.02
        value = check.value + distance * float(np.hypot(sd, check.se))
        estimate = modelled(
            value, sd, tasks=18, drawn=18, pool_size=60, confidence=0.9, check=check
        )
        assert ("larger than chance explains" in estimate.note) == warned


def test_estimates_of_all_candidates_move_when_one_is_told() -> None:
    outcomes, _ = world(10, candidates=8, tasks=60)
    tasks = [f"t{i}" for i in range(60)]
    selector = searched()
    before = selector.estimate("c2").value
    (assignment,) = selector.ask(["c8"])
    selector.tell(assignment, dict.fromkeys(assignment.tasks, 0.0))
    assert selector.estimate("c2").value != before
    selector.tell_full("c2", dict(zip(tasks, outcomes[2], strict=True)))
    assert selector.estimate("c2").value == pytest.approx(outcomes[2].mean())
    assert selector.estimate("c2").exact


def test_a_choice_by_the_model_says_how_sure_it_is() -> None:
    choice = searched().best()
    assert choice.confidence is not None
    assert 0 < choice.confidence.probability < 1
    assert 0 < choice.confidence.regret < 0.1
    assert searched("task-coevolve").best().confidence is None


def test_missing_outcomes_are_predicted_not_counted_as_failures() -> None:
    outcomes, _ = world(11, candidates=4, tasks=60)
    tasks = [f"t{i}" for i in range(60)]
    estimates = []
    for lost in (False, True):
        selector = Selector(Pool(tasks), protocol="joint", fraction=0.5, seed=1)
        for start in range(2):
            selector.tell_full(f"c{start}", dict(zip(tasks, outcomes[start], strict=True)))
        (assignment,) = selector.ask(["c2"])
        scores = dict(zip(tasks, outcomes[2].tolist(), strict=True))
        gone = assignment.tasks[::3] if lost else ()
        selector.tell(
            assignment,
            {
                task: Missing("lost", shared=True) if task in gone else scores[task]
                for task in assignment.tasks
            },
        )
        estimates.append(selector.estimate("c2"))
    told, part = estimates
    assert (told.tasks, part.tasks, part.drawn) == (30, 20, 30)
    assert abs(told.value - part.value) < 0.12
    assert part.se is not None
    assert told.se is not None
    assert part.se > told.se


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"steps": 0}, "steps must be a whole number of at least 1, got 0"),
        ({"tolerance": 0.0}, r"tolerance must be in \(0, 1\), got 0.0"),
    ],
)
def test_parameters_without_sense_are_refused(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Joint(**arguments)  # type: ignore[arg-type]
