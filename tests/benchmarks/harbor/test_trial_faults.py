"""Which failures of a Harbor trial count against the agent, and which do not."""

from types import SimpleNamespace
from typing import Any

import pytest

from coevolve.benchmarks.harbor.trial_faults import FAULT_TABLE, fault_of, reward_of, score_of
from coevolve.errors import InputError
from coevolve.executors.failures import InfrastructureError, TrialError
from coevolve.executors.isolation import HarnessFault
from coevolve.search.trials import Blame


def result(
    *, raised: str | None = None, rewards: dict[str, float] | None = None, begun: bool = True
) -> Any:
    """A result as Harbor gives it, as far as it is read."""
    said = SimpleNamespace(exception_type=raised, exception_message="why")
    return SimpleNamespace(
        task_name="some-task",
        exception_info=None if raised is None else said,
        verifier_result=None if rewards is None else SimpleNamespace(rewards=rewards),
        agent_setup=object() if begun else None,
    )


def blame(found: TrialError) -> tuple[Blame, bool]:
    return found.fault.blame, found.fault.shared


def test_a_reward_is_the_score() -> None:
    assert score_of(result(rewards={"reward": 1.0}), None) == 1.0
    assert score_of(result(rewards={"reward": 0}), None) == 0.0


@pytest.mark.parametrize("name", ["AgentTimeoutError", "NonZeroAgentExitCodeError"])
def test_work_done_before_the_time_was_up_counts(name: str) -> None:
    assert score_of(result(raised=name, rewards={"reward": 1.0}), None) == 1.0


@pytest.mark.parametrize("name", ["AgentTimeoutError", "NonZeroAgentExitCodeError"])
def test_without_a_reward_it_is_the_agents_fault(name: str) -> None:
    with pytest.raises(TrialError) as caught:
        score_of(result(raised=name), None)
    assert blame(caught.value) == (Blame.CANDIDATE, False)


def test_a_fault_of_the_candidate_leaves_the_reward() -> None:
    fault = HarnessFault("memory-limit", "used too much")
    raised = result(raised="NonZeroAgentExitCodeError", rewards={"reward": 1.0})
    assert score_of(raised, fault) == 1.0


def test_an_environment_that_nobody_could_use_is_in_doubt() -> None:
    with pytest.raises(TrialError) as caught:
        score_of(result(raised="NonZeroAgentExitCodeError"), None, broken="it has ended")
    assert blame(caught.value) == (Blame.INFRASTRUCTURE, False)
    verified = result(raised="NonZeroAgentExitCodeError", rewards={"reward": 0.0})
    assert score_of(verified, None, broken="it has ended") == 0.0


def test_a_model_that_does_not_answer_is_not_the_agents_fault_whatever_the_verifier_says() -> None:
    down = InfrastructureError("no answer", shared=True)
    with pytest.raises(InfrastructureError) as caught:
        score_of(result(raised="RuntimeError", rewards={"reward": 0.0}), down)
    assert caught.value is down


@pytest.mark.parametrize(
    "name",
    [
        "VerifierTimeoutError",
        "RewardFileNotFoundError",
        "RewardFileEmptyError",
        "VerifierOutputParseError",
        "AgentSetupTimeoutError",
        "MemoryLimitExceededError",
    ],
)
def test_what_an_agent_can_bring_about_scores_0(name: str) -> None:
    assert blame(fault_of(name, "", begun=True)) == (Blame.CANDIDATE, False)


@pytest.mark.parametrize("name", ["RuntimeError", "DownloadVerifierDirError", "OSError"])
def test_other_failures_are_in_doubt_once_the_agent_has_begun(name: str) -> None:
    assert blame(fault_of(name, "", begun=True)) == (Blame.INFRASTRUCTURE, False)


@pytest.mark.parametrize(
    "name", ["EnvironmentStartTimeoutError", "RuntimeError", "MemoryLimitExceededError"]
)
def test_nothing_is_the_agents_fault_before_it_begins(name: str) -> None:
    assert blame(fault_of(name, "", begun=False)) == (Blame.INFRASTRUCTURE, True)


def test_a_task_that_cannot_be_built_stops_the_run_with_advice() -> None:
    found = fault_of("SandboxBuildFailedError", "no such package", begun=False)
    assert found.fault.blame is Blame.OPERATOR
    assert "coevolve harbor check" in found.fault.advice


def test_no_name_is_twice_in_the_table() -> None:
    names = [name for row in FAULT_TABLE for name in row.names]
    assert len(names) == len(set(names))


def test_every_name_in_the_table_is_an_error_of_harbor() -> None:
    import harbor.agents.installed.base as installed
    import harbor.auth.errors as auth
    import harbor.environments.base as environments
    import harbor.environments.modal as modal
    import harbor.environments.singularity.singularity as singularity
    import harbor.trial.errors as trial
    import harbor.utils.optional_import as optional
    import harbor.verifier.verifier as verifier

    modules = (installed, auth, environments, modal, singularity, trial, optional, verifier)
    for row in FAULT_TABLE:
        for name in row.names:
            assert any(hasattr(module, name) for module in modules), name


def test_one_of_several_rewards_must_be_named() -> None:
    several = result(rewards={"speed": 0.5, "accuracy": 1.0})
    assert reward_of(several, "speed") == 0.5
    with pytest.raises(InputError, match=r"it has accuracy, speed\. Set `reward`"):
        reward_of(several)
