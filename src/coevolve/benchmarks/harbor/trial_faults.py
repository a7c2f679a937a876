"""What the result of a Harbor trial means: a score, or a fault and who is to blame.

Two facts decide: the name of the exception that Harbor recorded, and whether the agent had begun.
An agent cannot cause a missing trial.
"""

from dataclasses import dataclass
from typing import Any, Protocol

from coevolve.errors import InputError
from coevolve.executors.failures import (
    CandidateFault,
    InfrastructureError,
    OperatorError,
    TrialError,
    classify,
)
from coevolve.executors.isolation import CallInterrupted
from coevolve.search.trials import Blame


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRow:
    """Exceptions of Harbor, the blame for them, what they mean, and what to do."""

    names: tuple[str, ...]
    blame: Blame
    meaning: str
    advice: str = ""


class Asked(Protocol):
    """A model that can be asked whether it answers."""

    def answers(self) -> bool:
        """Whether it answers a short request now."""
        ...


FAULT_TABLE = (
    FaultRow(
        names=("AgentTimeoutError",),
        blame=Blame.CANDIDATE,
        meaning="the agent ran out of time; the verifier's reward counts",
    ),
    FaultRow(
        names=("NonZeroAgentExitCodeError",),
        blame=Blame.CANDIDATE,
        meaning="the agent failed; the verifier's reward counts",
    ),
    FaultRow(
        names=("AgentSetupTimeoutError",),
        blame=Blame.CANDIDATE,
        meaning="the setup of the agent ran out of time",
        advice="Raise setup_timeout_multiplier if the machine is slow.",
    ),
    FaultRow(
        names=("VerifierTimeoutError",),
        blame=Blame.CANDIDATE,
        meaning="the verifier ran out of time",
        advice="Raise verifier_timeout_multiplier if verifiers are slow on this machine.",
    ),
    FaultRow(
        names=("RewardFileNotFoundError", "RewardFileEmptyError", "VerifierOutputParseError"),
        blame=Blame.CANDIDATE,
        meaning="the verifier wrote no valid reward",
    ),
    FaultRow(
        names=("MemoryLimitExceededError", "SandboxLikelyOutOfMemoryError"),
        blame=Blame.CANDIDATE,
        meaning="the environment ran out of memory",
    ),
    FaultRow(
        names=("SandboxBuildFailedError",),
        blame=Blame.OPERATOR,
        meaning="the environment of the task cannot be built",
        advice="See `coevolve harbor check FOLDER --build`, or add the task to `exclude`.",
    ),
    FaultRow(
        names=("MissingExtraError", "NotAuthenticatedError", "ApiKeyRejectedError"),
        blame=Blame.OPERATOR,
        meaning="Harbor cannot use the environment",
        advice="Install the extra of Harbor, and set the credentials that the error names.",
    ),
    FaultRow(
        names=("EnvironmentStartTimeoutError", "HealthcheckError"),
        blame=Blame.INFRASTRUCTURE,
        meaning="the environment did not start",
        advice="Raise build_timeout_multiplier, or lower the number of workers.",
    ),
    FaultRow(
        names=("AddTestsDirError", "DownloadVerifierDirError"),
        blame=Blame.INFRASTRUCTURE,
        meaning="files could not be copied into or out of the environment",
    ),
)
"""By exact name of the class. Any other exception is an infrastructure fault."""

_BY_NAME = {name: row for row in FAULT_TABLE for name in row.names}
_REWARDED = ("AgentTimeoutError", "NonZeroAgentExitCodeError")
"""After these, Harbor runs the verifier, and its reward counts."""


def reward_of(result: Any, reward: str = "reward") -> float | None:
    """The reward of a trial by its name, if the verifier gave one.

    Raises:
        InputError: The verifier gave rewards, but none of this name.
    """
    found = result.verifier_result
    if found is None or not found.rewards:
        return None
    if reward in found.rewards:
        return float(found.rewards[reward])
    if len(found.rewards) == 1:
        return float(next(iter(found.rewards.values())))
    listed = ", ".join(sorted(found.rewards))
    raise InputError(
        f"task {result.task_name!r} has no reward {reward!r}; it has {listed}. Set `reward` in "
        "[benchmark]."
    )


def score_of(
    result: Any, error: BaseException | None, reward: str = "reward", *, broken: str = ""
) -> float:
    """The score of a trial.

    Args:
        result: Harbor's `TrialResult`.
        error: Why the candidate's agent ended early, as our side saw it, if it did.
        reward: The name of the reward that counts.
        broken: The error of the environment when a command could not be run, if that happened.

    Raises:
        TrialError: There is no score; the error has the blame.
    """
    if error is not None and not isinstance(error, CallInterrupted):
        fault = classify(error)
        if fault.blame is not Blame.CANDIDATE:
            raise error  # such as a model that does not answer
    raised = result.exception_info
    value = reward_of(result, reward)
    if raised is None or (raised.exception_type in _REWARDED and value is not None):
        if value is None:
            raise CandidateFault("the verifier gave no reward", kind="no-reward")
        return value
    if broken and raised.exception_type in _REWARDED:
        # Neither the agent nor the verifier could use the environment; a control trial decides.
        raise InfrastructureError(f"the environment failed ({broken})", kind="environment")
    raise fault_of(
        raised.exception_type, raised.exception_message, begun=result.agent_setup is not None
    )


def ended_by(result: Any, name: str) -> bool:
    """Whether an exception of this name ended a trial."""
    return result.exception_info is not None and result.exception_info.exception_type == name


def check_model(model: Asked, waited: float) -> None:
    """Ask whether the model is to blame that an agent ran out of time while it waited for it.

    If the model answers another request, the agent may just have asked for too much: the reward of
    the verifier counts, as for every agent that runs out of time.

    Args:
        model: The model of the run.
        waited: For how many seconds the agent had waited for its answer.

    Raises:
        InfrastructureError: It does not answer; a control trial decides.
    """
    if not model.answers():
        raise InfrastructureError(
            f"the agent ran out of time after {waited:.1f} s of waiting for the model, which "
            "does not answer other requests either",
            kind="service-limit",
            advice="If this continues, lower the number of workers or concurrency in [model].",
        )


def fault_of(name: str, message: str, *, begun: bool) -> TrialError:
    """The fault of an exception that Harbor recorded.

    Args:
        name: The name of its class.
        message: Its text.
        begun: Whether the agent had begun; before that, the candidate cannot be at fault.

    >>> fault_of("VerifierTimeoutError", "after 60 seconds", begun=True).fault.blame.value
    'candidate'
    >>> fault_of("EnvironmentStartTimeoutError", "", begun=False).fault.shared
    True
    """
    row = _BY_NAME.get(name)
    first = str(message).strip().partition("\n")[0][:500]
    meaning = row.meaning if row else "Harbor or the environment failed"
    reason = f"{meaning} ({name}: {first})" if first else f"{meaning} ({name})"
    advice = row.advice if row else ""
    blame = row.blame if row else Blame.INFRASTRUCTURE
    if blame is Blame.OPERATOR:
        return OperatorError(reason, kind=name, advice=advice)
    if blame is Blame.CANDIDATE and begun:
        return CandidateFault(reason, kind=name)
    # An agent that had begun may have broken the environment; a control trial decides.
    return InfrastructureError(reason, kind=name, advice=advice, shared=not begun)
