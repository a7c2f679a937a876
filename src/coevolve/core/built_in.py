"""The protocols that come with the library."""

from coevolve.core.adaptive import AdaptiveShare
from coevolve.core.allocation import CostShare, WholePool
from coevolve.core.choice import MostEvaluated
from coevolve.core.designs import PivotalDesign, SuccessiveDesign, UniformDesign
from coevolve.core.estimators import Hajek, HorvitzThompson
from coevolve.core.joint import Joint
from coevolve.core.rivals import (
    ExpectedScoreWeights,
    Halving,
    MidRangeWeights,
    PairedRacing,
    Stepwise,
    Thompson,
)
from coevolve.core.rule import PhaseZeroRule
from coevolve.core.search_protocol import SearchProtocol
from coevolve.core.weights import InformationWeights, VarianceWeights

BUILT_IN = (
    SearchProtocol(
        name="full",
        summary="Meta-Harness: every candidate on every task",
        estimator=Hajek(),
        allocation=WholePool(),
    ),
    SearchProtocol(
        name="naive",
        summary="one random subset, drawn once; raw mean",
        design=UniformDesign(redraws=False),
    ),
    SearchProtocol(
        name="random-resample",
        summary="a new random subset every round; raw mean",
    ),
    SearchProtocol(
        name="random-estimate",
        summary="a new random subset every round; full-set estimate per pool",
        estimator=PhaseZeroRule(),
    ),
    SearchProtocol(
        name="task-coevolve",
        summary="the paper: variance-weighted subset every round; full-set estimate per pool",
        weighting=VarianceWeights(),
        design=SuccessiveDesign(),
        estimator=PhaseZeroRule(),
    ),
    SearchProtocol(
        name="joint",
        summary="the paper's draws; all candidates re-estimated by one model of all outcomes",
        weighting=VarianceWeights(),
        design=SuccessiveDesign(),
        estimator=Joint(),
    ),
    SearchProtocol(
        name="adaptive",
        summary="joint, spending the same budget where contenders are hard to tell apart",
        weighting=InformationWeights(),
        design=PivotalDesign(),
        estimator=Joint(),
        allocation=AdaptiveShare(),
    ),
    SearchProtocol(
        name="cost-aware",
        summary="joint, with draws by information per cost, for a share of the cost of all tasks",
        weighting=VarianceWeights(cost=1.0),
        design=SuccessiveDesign(),
        estimator=Joint(),
        allocation=CostShare(),
    ),
    SearchProtocol(
        name="mid-range",
        summary="rival: only tasks with 30-70% past success; raw mean",
        weighting=MidRangeWeights(),
        design=SuccessiveDesign(),
    ),
    SearchProtocol(
        name="halving",
        summary="rival: successive halving over candidates; raw mean",
        allocation=Halving(),
        choice=MostEvaluated(),
    ),
    SearchProtocol(
        name="racing",
        summary="rival: candidates race on shared tasks; a paired t-test drops them",
        design=UniformDesign(redraws=False),
        allocation=PairedRacing(),
        choice=MostEvaluated(),
    ),
    SearchProtocol(
        name="racing-wilcoxon",
        summary="rival: the same with Wilcoxon's signed ranks",
        design=UniformDesign(redraws=False),
        allocation=PairedRacing(test="wilcoxon"),
        choice=MostEvaluated(),
    ),
    SearchProtocol(
        name="thompson",
        summary="rival: Thompson sampling over candidates, a draw for every task",
        allocation=Thompson(),
        choice=MostEvaluated(),
    ),
    SearchProtocol(
        name="item-information",
        summary="rival: most informative tasks under a fitted item-response model",
        weighting=InformationWeights(power=8.0),
        design=PivotalDesign(),
        estimator=Joint(),
        allocation=Stepwise(steps=3),
    ),
    SearchProtocol(
        name="active-testing",
        summary="rival: draws by a surrogate's expectation, in five steps, with LURE weights",
        weighting=ExpectedScoreWeights(),
        design=PivotalDesign(),
        estimator=HorvitzThompson(),
        allocation=Stepwise(steps=5),
    ),
)
