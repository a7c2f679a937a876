"""The reproductions are found by name, and the engine does not import them."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from coevolve import Pool, Selector, protocol
from coevolve.analysis import synthetic_matrix
from coevolve.analysis.replay_search import Stage, play
from coevolve.benchmarks.textclass.harness_files import BUILT_IN, built_in
from coevolve.core.protocols import protocol_from_json, register_part
from coevolve.errors import InputError
from coevolve_reproductions import FAMILY
from coevolve_reproductions.rivals import RIVALS

ROOT = Path(__file__).parents[2]
FOLD = """
import json, sys
from coevolve import Selector
for events in json.load(sys.stdin):
    selector = Selector.from_events(events)
    print(selector.protocol.name, selector.best().candidate)
"""


def test_the_engine_and_its_command_line_load_without_the_reproductions() -> None:
    code = "import sys, coevolve.cli.main; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "coevolve.core.protocols" in done.stdout.split()
    assert "coevolve_reproductions" not in done.stdout


def test_only_their_commands_mention_the_reproductions() -> None:
    found = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "src").rglob("*.py")
        if "coevolve_reproductions" in path.read_text()
    }
    names = ("analyse_command", "table_command", "table_grid")
    assert found <= {f"src/coevolve/cli/{name}.py" for name in names}


def test_every_rival_is_an_entry_point_and_has_the_name_it_is_found_by() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert list(project["entry-points"]["coevolve.protocols"]) == [known.name for known in RIVALS]
    for rival in RIVALS:
        assert protocol(rival.name) is rival
        assert protocol_from_json(rival.to_json()) == rival


def test_parts_of_rivals_are_named_in_events_as_before() -> None:
    found = {rival.to_json()["allocation"]["part"] for rival in RIVALS}
    assert found == {"Halving", "PairedRacing", "Thompson", "Stepwise", "Share"}
    with pytest.raises(InputError, match="another part is already registered as 'Halving'"):
        register_part(type("Halving", (), {}))


def test_a_recorded_run_of_a_rival_folds_in_a_process_that_has_not_loaded_it() -> None:
    stage = Stage.of(synthetic_matrix(tasks=20, candidates=6).series[0], seed=0)
    played = [play(stage, rival, fraction=0.2) for rival in RIVALS]
    done = subprocess.run(
        [sys.executable, "-c", FOLD],
        input=json.dumps([list(one.selector.events) for one in played]),
        capture_output=True,
        text=True,
        check=True,
    )
    expected = [f"{one.selector.protocol.name} {one.choice.candidate}" for one in played]
    assert done.stdout.splitlines() == expected


def test_a_protocol_with_a_part_of_a_rival_folds_too() -> None:
    selector = Selector(Pool(["a", "b"]), protocol=protocol("halving"))
    events = [dict(event) for event in selector.events]
    assert Selector.from_events(events).protocol.name == "halving"


def test_the_command_says_so_where_the_tables_are_not_installed() -> None:
    code = (
        "import sys; sys.modules['coevolve_reproductions'] = None\n"
        "from coevolve.cli.main import app; app(['analyse', 'x.npz', '--table', 'ties'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "the tables of the paper are not installed" in done.stderr
    assert "reinstall task-coevolve" in done.stderr


def test_the_family_can_be_named_like_built_in_harnesses() -> None:
    family = {name: folder for name, folder in built_in().items() if name not in BUILT_IN}
    assert len(family) == 12
    assert {folder.parent for folder in family.values()} == {FAMILY}
