"""Task-CoEvolve: score LLM harnesses on a few well-chosen tasks, estimate the full-set score.

`optimize` runs a whole search from Python, `open` gives a run of a TOML file or a run folder,
`evaluate` scores any harness, and `Selector` is the choice of tasks alone, for a search of your
own. Everything people use is here; modules below are for extensions and may change.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from coevolve.core.assignment import Assignment, Design
from coevolve.core.choice import Choice
from coevolve.core.comparison import Comparison, Ranked
from coevolve.core.estimators import Estimate
from coevolve.core.outcome_table import History, OutcomeTable
from coevolve.core.outcomes import Missing, Outcome, Usage
from coevolve.core.pool import Pool
from coevolve.core.protocols import SearchProtocol, protocol, protocols, register
from coevolve.core.selector import Selector
from coevolve.errors import CoevolveError, StopRun

if TYPE_CHECKING:
    from coevolve.benchmarks.base import Benchmark
    from coevolve.executors.isolation import Harness
    from coevolve.executors.workload import Score
    from coevolve.runs.evaluate import evaluate
    from coevolve.runs.optimize import optimize, optimize_async
    from coevolve.runs.result import Result
    from coevolve.runs.run import Run, open
    from coevolve.search.budget import Budget
    from coevolve.search.proposal import Proposal, Proposer, View
    from coevolve.search.trials import Executor
    from coevolve.views.score_table import ScoreTable

__all__ = [
    "Assignment",
    "Benchmark",
    "Budget",
    "Choice",
    "CoevolveError",
    "Comparison",
    "Design",
    "Estimate",
    "Executor",
    "Harness",
    "History",
    "Missing",
    "Outcome",
    "OutcomeTable",
    "Pool",
    "Proposal",
    "Proposer",
    "Ranked",
    "Result",
    "Run",
    "Score",
    "ScoreTable",
    "SearchProtocol",
    "Selector",
    "StopRun",
    "Usage",
    "View",
    "evaluate",
    "open",
    "optimize",
    "optimize_async",
    "protocol",
    "protocols",
    "register",
]

__version__ = "0.1.0"

_LAZY = {
    "Benchmark": "benchmarks.base",
    "Budget": "search.budget",
    "Executor": "search.trials",
    "Harness": "executors.isolation",
    "Proposal": "search.proposal",
    "Proposer": "search.proposal",
    "Result": "runs.result",
    "Run": "runs.run",
    "Score": "executors.workload",
    "ScoreTable": "views.score_table",
    "View": "search.proposal",
    "evaluate": "runs.evaluate",
    "open": "runs.run",
    "optimize": "runs.optimize",
    "optimize_async": "runs.optimize",
}
"""Names whose modules are imported when they are first used."""


if not TYPE_CHECKING:  # or else no checker would find a name that does not exist

    def __getattr__(name: str) -> object:
        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
