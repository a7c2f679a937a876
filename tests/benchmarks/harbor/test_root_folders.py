"""Roots: which stands for an image, where packages come from, and roots that users give."""

import json
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from coevolve.benchmarks.harbor.root_folders import (
    building,
    find_root,
    host_root,
    root_name,
    roots_folder,
)
from coevolve.benchmarks.harbor.root_preparation import Source, apt_sources, known_roots
from coevolve.cli.main import app
from coevolve.errors import InputError
from tests.benchmarks.harbor.task_boxes import needs_namespaces


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COEVOLVE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize(
    ("image", "root"),
    [
        ("debian:bookworm-slim", "debian-bookworm"),
        ("debian:bullseye-slim", "debian-bullseye"),
        ("debian:13.0-slim", "debian-trixie"),
        ("docker.io/library/debian:12", "debian-bookworm"),
        ("ubuntu:24.04", "ubuntu-noble"),
        ("ubuntu:24.04@sha256:0123", "ubuntu-noble"),
        ("python:3.13-slim-bookworm", "python-3.13-bookworm"),
        ("python:3.10.14-slim-bookworm", "python-3.10-bookworm"),
        ("python:3.11", "python-3.11-bookworm"),
        ("python:3.12-slim-trixie", "python-3.12-trixie"),
        ("python:3.12-alpine", None),
        ("alpine:3", None),
        ("example.org/debian:12", None),
    ],
)
def test_a_root_for_each_known_image(image: str, root: str | None) -> None:
    assert root_name(image) == root


def test_every_root_for_an_image_can_be_prepared() -> None:
    patterns = {name.replace("3.X", "3.13") for name in known_roots()}
    images = ("debian:12", "debian:13", "debian:11", "ubuntu:24.04", "ubuntu:22.04")
    assert {root_name(image) for image in (*images, "python:3.13")} <= patterns


def test_apt_sources_of_both_formats(tmp_path: Path) -> None:
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list").write_text(
        "# deb http://no.example a b\n"
        "deb [arch=amd64 signed-by=/k.gpg] http://one.example/debian bookworm main contrib # x\n"
        "deb-src http://no.example bookworm main\n"
    )
    (tmp_path / "sources.list.d" / "two.sources").write_text(
        "Types: deb deb-src\nURIs: http://two.example/debian\nSuites: trixie trixie-updates\n"
        "Components: main\nSigned-By: /t.gpg\n\n"
        "Enabled: no\nTypes: deb\nURIs: http://no.example\nSuites: x\n"
    )
    assert list(apt_sources(tmp_path)) == [
        Source(
            address="http://one.example/debian",
            suites=("bookworm",),
            components=("main", "contrib"),
            keyring="/k.gpg",
        ),
        Source(
            address="http://two.example/debian",
            suites=("trixie", "trixie-updates"),
            components=("main",),
            keyring="/t.gpg",
        ),
    ]


def test_the_root_of_the_machine_has_its_programs_but_not_its_secrets() -> None:
    root = host_root()
    assert root.parts["usr"] == "/usr"
    assert host_root().identity == root.identity
    assert "root:x:0:0" in (root.files / "etc/passwd").read_text()
    assert "$" not in (root.files / "etc/shadow").read_text()
    assert not list((root.files / "root").iterdir())
    assert not (root.files / "etc/ssl/private").exists()


def test_a_build_that_fails_leaves_nothing(tmp_path: Path) -> None:
    target = tmp_path / "made"

    def fail() -> None:
        with building(target) as made:
            assert made is not None
            (made / "half").write_text("x")
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    assert not target.exists()
    assert [path.name for path in tmp_path.glob(".made.part*")] == []
    with building(target) as made:
        assert made is not None
    with building(target) as made:
        assert made is None


@needs_namespaces
def test_a_container_becomes_a_root(tmp_path: Path) -> None:
    files = tmp_path / "files"
    for name in ("bin", "etc", "usr"):
        (files / name).mkdir(parents=True)
    (files / "bin/hello").write_text("#!/bin/sh\n")
    archive = tmp_path / "export.tar"
    subprocess.run(("tar", "-cf", archive, "-C", files, "."), check=True)
    runner = CliRunner()
    for name, source in (("one", archive), ("two", files)):
        argv = ["harbor", "prepare", name, "--from", str(source), "--env", "A=b", "--json"]
        done = runner.invoke(app, argv)
        assert done.exit_code == 0, done.output
        root = find_root("any", chosen=None, more={"any": name})
        assert (root.files / "bin/hello").exists()
        assert root.env["A"] == "b"
    assert runner.invoke(app, ["harbor", "prepare", "one", "--from", str(archive)]).exit_code == 2
    assert not list(roots_folder().glob(".*.part"))
    given = find_root("any", chosen=str(files), more={})
    assert given.files == files
    with pytest.raises(InputError, match="has no bin"):
        find_root("any", chosen=str(tmp_path / "cache"), more={})


def test_errors_of_the_command_say_what_to_do(tmp_path: Path) -> None:
    runner = CliRunner()
    (tmp_path / "empty").mkdir()
    for argv, said in (
        (["prepare", "fedora"], "is unknown; known: host"),
        (["prepare", "a", "b", "--from", "x"], "--from creates one root"),
        (["prepare", "a", "--env", "x=y"], "--env needs --from"),
        (["prepare", "a", "--from", str(tmp_path / "missing")], "there is no file or folder"),
        (["check", str(tmp_path / "empty")], "there is no task in"),
        (
            ["prepare", "ubuntu-noble", "--mirror", "http://127.0.0.1:9", "--keyring", "missing"],
            "that signs the packages of noble is missing",
        ),
    ):
        done = runner.invoke(app, ["harbor", *argv])
        assert done.exit_code == 2
        assert said in done.stderr


@needs_namespaces
def test_the_check_lists_each_task_with_its_reason(tmp_path: Path) -> None:
    for name, dockerfile in {
        "good": "FROM debian:12\nRUN echo x > /x\n",
        "bad": "FROM debian:12\nRUN exit 4\n",
        "stages": "FROM debian:12\nFROM debian:12\n",
    }.items():
        (tmp_path / "tasks" / name / "environment").mkdir(parents=True)
        (tmp_path / "tasks" / name / "task.toml").write_text("")
        (tmp_path / "tasks" / name / "environment/Dockerfile").write_text(dockerfile)
    (tmp_path / "tasks/none/environment").mkdir(parents=True)
    (tmp_path / "tasks/none/task.toml").write_text("")
    argv = ["harbor", "check", str(tmp_path / "tasks"), "--root", "host", "--build", "--json"]
    done = CliRunner().invoke(app, argv)
    assert done.exit_code == 1
    reasons = {row["task"]: row["reason"] for row in json.loads(done.stdout)["tasks"]}
    assert reasons["good"] == ""
    assert "line 2: RUN 'exit 4' ended with status 4" in reasons["bad"]
    assert "line 2: a second FROM" in reasons["stages"]
    assert "neither a Dockerfile nor a docker_image" in reasons["none"]
    plain = CliRunner().invoke(app, argv[:-1])
    assert "1 of 4 tasks can be built." in plain.stdout
