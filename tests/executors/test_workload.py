"""How a benchmark is found and built from its description."""

from pathlib import Path
from typing import Any

import pytest

from coevolve.errors import ConfigError
from coevolve.executors.workload import Spec


class Wanting:
    """A benchmark that needs the engine."""

    def __init__(self, size: int, host: Any = None) -> None:
        self.size, self.host = size, host


class Plain:
    """A benchmark that does not."""

    def __init__(self, **arguments: Any) -> None:
        self.arguments = arguments


HERE = __name__


@pytest.mark.parametrize(
    ("factory", "reason"),
    [
        ("json", "must be 'package.module:callable', got 'json'"),
        ("json:", "must be 'package.module:callable', got 'json:'"),
        ("json:lods", "module 'json' has no 'lods'"),
        ("math:pi", "'math:pi' is not callable"),
    ],
)
def test_an_invalid_factory_is_refused(factory: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        Spec(factory=factory).build()


def test_only_a_benchmark_with_a_host_parameter_gets_the_host() -> None:
    class Host:
        def ask(self, service: str, /, **payload: Any) -> Any:
            return payload

    host = Host()
    wanting: Any = Spec(factory=f"{HERE}:Wanting", arguments={"size": 3}).build(host)
    assert (wanting.size, wanting.host) == (3, host)
    plain: Any = Spec(factory=f"{HERE}:Plain", arguments={"a": 1}).build(host)
    assert plain.arguments == {"a": 1}


def test_a_spec_survives_json(tmp_path: Path) -> None:
    for folder in (None, tmp_path):
        spec = Spec(factory="m:f", arguments={"a": [1]}, folder=folder)
        assert Spec.from_json(spec.to_json()) == spec
