"""A sandbox shows what an agent needs to start, wherever it is installed, and no more."""

import os
import sys
from pathlib import Path

import pytest

from coevolve.errors import ConfigError
from coevolve.proposers.command import custom, preset
from coevolve.proposers.command.agent_setup import find_installation, find_program


def program(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def shown(name: str) -> set[Path]:
    return set(find_installation(custom([name])).shown) - {Path("/usr/bin/env").resolve()}


def test_a_node_package_is_shown_with_those_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modules = tmp_path / "prefix" / "lib" / "node_modules"
    node = program(tmp_path / "nvm" / "bin" / "node")
    (tmp_path / "nvm" / "lib" / "node_modules").mkdir(parents=True)
    script = program(modules / "@maker" / "agent" / "cli.js", "#!/usr/bin/env node\n")
    (tmp_path / "prefix" / "bin").mkdir()
    (tmp_path / "prefix" / "bin" / "agent").symlink_to(script)
    places = [str(tmp_path / "prefix" / "bin"), str(node.parent), os.environ["PATH"]]
    monkeypatch.setenv("PATH", os.pathsep.join(places))
    found = find_installation(custom(["agent"]))
    assert found.command == (str(node), str(script))
    assert {modules, node.parent, tmp_path / "nvm" / "lib"} <= set(found.shown)
    assert tmp_path / "prefix" / "bin" not in found.shown
    assert node.parent in found.path


def test_what_the_first_line_says_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = program(tmp_path / "bin" / "node", "binary")
    script = program(tmp_path / "agent", "#!/usr/bin/env -S node --no-warnings\n")
    monkeypatch.setenv("PATH", str(node.parent))
    assert find_installation(custom([str(script)])).command == (
        str(node),
        "--no-warnings",
        str(script),
    )
    script.write_text("#!/bin/sh -e\n")
    assert find_installation(custom([str(script)])).command == (str(script),)


def test_a_virtual_environment_is_shown_with_its_python(tmp_path: Path) -> None:
    environment = tmp_path / "tool"
    python = Path(sys.executable).resolve()
    (environment / "bin").mkdir(parents=True)
    (environment / "lib").mkdir()
    (environment / "pyvenv.cfg").write_text("")
    (environment / "bin" / "python").symlink_to(python)
    program(environment / "bin" / "agent", f"#!{environment}/bin/python\n")
    found = shown(str(environment / "bin" / "agent"))
    assert {environment / name for name in ("bin", "lib", "pyvenv.cfg")} <= found
    assert any(python.is_relative_to(path) for path in found)
    assert environment not in found


def test_a_single_program_is_shown_alone(tmp_path: Path) -> None:
    single = program(tmp_path / ".local" / "bin" / "agent", "binary")
    (tmp_path / ".local" / "lib").mkdir()
    assert shown(str(single)) == {single}


def test_further_places_of_its_own_are_shown(home: Path, tmp_path: Path) -> None:
    versions = home / ".local/share/claude/versions"
    versions.mkdir(parents=True)
    agent = preset("claude-code", program=str(program(tmp_path / "claude")))
    assert versions in find_installation(agent).shown


def test_a_program_beside_this_python_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    name = Path(sys.executable).name
    assert find_program(custom([name])) == Path(sys.executable).parent / name


def test_a_program_that_is_not_installed_is_named_with_advice() -> None:
    with pytest.raises(ConfigError, match="no program 'no-such-agent' on the PATH"):
        find_program(custom(["no-such-agent"]))
