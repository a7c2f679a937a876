"""What goes wrong when a benchmark is built, told so that its author finds the line."""

import traceback
from dataclasses import replace
from pathlib import Path

from coevolve.executors.failures import OperatorError, classify
from coevolve.executors.workload import Spec
from coevolve.search.trials import Blame, Fault

_OURS = str(Path(__file__).parent.parent)


def building_fault(error: BaseException, spec: Spec) -> Fault:
    """The fault of a benchmark that could not be built: the operator's, unless the network's."""
    fault = classify(error)
    if fault.blame is Blame.DOUBTFUL and not isinstance(error, RecursionError):
        # No candidate had a part in it, so that only the machine and the network are left.
        return replace(fault, blame=Blame.INFRASTRUCTURE)
    if fault.blame is Blame.INFRASTRUCTURE:
        return fault
    reason = f"the benchmark {spec.factory!r} could not be built: {fault.reason}"
    where = where_raised(error, spec.folder)
    return OperatorError(
        f"{reason} ({where})" if where else reason,
        kind=fault.kind,
        advice=fault.advice or "Correct the benchmark or its arguments, then resume the run.",
    ).fault


def where_raised(error: BaseException, folder: Path | None) -> str:
    """The file and line of an error: the last in the project, else the last not of coevolve."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}, line {error.lineno}"
    stack = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "importlib" not in frame.filename and not frame.filename.startswith(_OURS)
    ]
    own = [f for f in stack if folder is not None and Path(f.filename).is_relative_to(folder)]
    return "".join(f"{frame.filename}, line {frame.lineno}" for frame in (own or stack)[-1:])
