"""Whatever others write, a parser returns or raises an error of ours."""

import pytest

from tests.effort import effort
from tests.fuzz.examination import examine
from tests.fuzz.targets import TARGETS, Target


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_any_input_is_read_or_refused(target: Target) -> None:
    assert examine(target, effort(100, 10_000))
