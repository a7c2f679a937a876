"""The fuzz targets: one for every parser of what others write.

Candidates, proposers, model servers and users write what these functions read. Whatever it is, a
function returns, or raises an error of our own (`CoevolveError`), soon and within little memory.
"""

from tests.fuzz import (
    candidate_targets,
    journal_targets,
    model_targets,
    proposer_targets,
    user_targets,
)

_MODULES = (candidate_targets, proposer_targets, model_targets, user_targets, journal_targets)
TARGETS = tuple(target for module in _MODULES for target in module.TARGETS)
