"""Task-CoEvolve: score LLM harnesses on a few well-chosen tasks, estimate the full-set score."""

from coevolve.core.assignment import Assignment, Design
from coevolve.core.choice import Choice
from coevolve.core.estimators import Estimate
from coevolve.core.outcome_table import History, OutcomeTable
from coevolve.core.outcomes import Missing, Outcome, Usage
from coevolve.core.pool import Pool
from coevolve.core.protocols import SearchProtocol, protocol, protocols, register
from coevolve.core.selector import Selector
from coevolve.errors import CoevolveError

__all__ = [
    "Assignment",
    "Choice",
    "CoevolveError",
    "Design",
    "Estimate",
    "History",
    "Missing",
    "Outcome",
    "OutcomeTable",
    "Pool",
    "SearchProtocol",
    "Selector",
    "Usage",
    "protocol",
    "protocols",
    "register",
]

__version__ = "0.1.0"
