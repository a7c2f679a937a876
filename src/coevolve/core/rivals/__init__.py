"""Rules of other systems and papers, as parts of protocols, to compare with."""

from coevolve.core.rivals.halving import Halving
from coevolve.core.rivals.racing import PairedRacing
from coevolve.core.rivals.stepwise import Stepwise
from coevolve.core.rivals.thompson import Thompson
from coevolve.core.rivals.weights import ExpectedScoreWeights, MidRangeWeights

__all__ = [
    "ExpectedScoreWeights",
    "Halving",
    "MidRangeWeights",
    "PairedRacing",
    "Stepwise",
    "Thompson",
]
