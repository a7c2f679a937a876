"""Reading Dockerfiles: what is understood, and what is refused with its line."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevolve.benchmarks.harbor.dockerfile import (
    Copy,
    Folder,
    Run,
    parse_dockerfile,
)
from coevolve.benchmarks.harbor.dockerfile_words import DockerfileError

FROM = "FROM debian:bookworm-slim\n"


def runs(text: str) -> list[tuple[str, ...]]:
    return [step.argv for step in parse_dockerfile(FROM + text).steps if isinstance(step, Run)]


def copies(text: str) -> list[Copy]:
    return [step for step in parse_dockerfile(FROM + text).steps if isinstance(step, Copy)]


def test_a_usual_file() -> None:
    read = parse_dockerfile(
        """# syntax=docker/dockerfile:1
# A task
ARG TAG=24.04
FROM --platform=linux/amd64 ubuntu:${TAG} AS base
ENV A=1 B="two words" PATH=/opt/bin:$PATH
WORKDIR /app
LABEL a=b
RUN apt-get update \\
    # a comment between
    && apt-get install -y curl

COPY --chown=ann:staff --chmod=755 run.sh data/ ./
USER ann
RUN ["make", "all"]
EXPOSE 80
HEALTHCHECK CMD true
CMD ["bash"]
""",
        base_env={"PATH": "/bin"},
    )
    assert read.base == "ubuntu:24.04"
    assert read.env == {"A": "1", "B": "two words", "PATH": "/opt/bin:/bin"}
    assert (read.workdir, read.user, read.entrypoint) == ("/app", "ann", ())
    folder, apt, copy, make = read.steps
    assert isinstance(folder, Folder)
    assert folder.path == "/app"
    assert isinstance(apt, Run)
    assert apt.argv == ("/bin/sh", "-c", "apt-get update     && apt-get install -y curl")
    assert apt.line == 8
    assert apt.user is None
    assert isinstance(copy, Copy)
    assert (copy.sources, copy.target) == (("run.sh", "data/"), "/app/")
    assert (copy.owner, copy.mode) == ("ann:staff", 0o755)
    assert isinstance(make, Run)
    assert (make.argv, make.user, make.workdir) == (("make", "all"), "ann", "/app")


def test_variables_are_replaced_where_docker_does() -> None:
    text = "ARG N=x\nENV A=${N:-y} B=${M:-d} C='$N' D=\\$N E=${N:+set}\nWORKDIR /w/$N\nRUN echo $N"
    read = parse_dockerfile(FROM + text)
    assert read.env == {"A": "x", "B": "d", "C": "$N", "D": "$N", "E": "set"}
    run = read.steps[-1]
    assert isinstance(run, Run)
    assert run.argv[-1] == "echo $N"
    assert run.env["N"] == "x"
    assert read.workdir == "/w/x"
    assert parse_dockerfile(FROM + "ENV A one two").env == {"A": "one two"}


def test_the_platform_is_known_to_files_that_declare_it() -> None:
    read = parse_dockerfile(FROM + "ARG TARGETARCH\nENV A=$TARGETARCH B=$BUILDARCH")
    assert read.env["A"] in ("amd64", "arm64")
    assert read.env["B"] == ""


def test_arguments_before_from_are_for_from_only() -> None:
    read = parse_dockerfile("ARG V=12\nFROM debian:$V\nENV A=$V")
    assert (read.base, read.env) == ("debian:12", {"A": ""})


def test_here_documents() -> None:
    assert runs("RUN <<EOF\necho a\necho b\nEOF\n") == [("/bin/sh", "-c", "echo a\necho b\n")]
    kept = runs("RUN cat <<'E' > /f\n$x\nE\nRUN true\n")
    assert kept[0][2] == "cat <<'E' > /f\n$x\nE\n"
    assert kept[1][2] == "true"
    (copy,) = copies("ENV X=1\nCOPY <<EOF /a/b\nx=$X\nEOF\n")
    assert (copy.target, copy.text) == ("/a/b", "x=1\n")
    (copy,) = copies("COPY <<-'EOF' /a/\n\t$X\n\tEOF\n")
    assert (copy.target, copy.text) == ("/a/EOF", "$X\n")


def test_shell_workdir_and_entry_point() -> None:
    text = 'SHELL ["/bin/bash", "-ec"]\nWORKDIR a\nWORKDIR ../b\nRUN x\nENTRYPOINT ["/run", "y"]\n'
    read = parse_dockerfile(FROM + text)
    assert runs(text) == [("/bin/bash", "-ec", "x")]
    assert read.workdir == "/b"
    assert read.entrypoint == ("/run", "y")
    assert parse_dockerfile(FROM + "ENTRYPOINT start now").entrypoint[-1] == "start now"


def test_targets_of_copies() -> None:
    assert [copy.target for copy in copies("WORKDIR /app\nCOPY a b\nCOPY a .\nCOPY a /x/\n")] == [
        "/app/b",
        "/app/",
        "/x/",
    ]
    assert copies('COPY ["a b", "/c d"]\n')[0].sources == ("a b",)
    assert copies('COPY "a b" /c\n')[0].sources == ("a b",)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("FROM b\n", 2, "second FROM"),
        ("\nCOPY --from=0 a b\n", 3, "COPY --from"),
        ("ADD https://example.org/x /x\n", 2, "ADD of an address"),
        ("RUN --mount=type=secret,id=a x\n", 2, "RUN --mount"),
        ("ONBUILD RUN x\n", 2, "ONBUILD"),
        ("RUN\n", 2, "RUN without a command"),
        ("COPY a\n", 2, "needs a source and a target"),
        ("COPY --chmod=u+x a b\n", 2, "only octal modes"),
        ("ENV A='x\n", 2, "quote without an end"),
        ("RUN <<EOF\nx\n", 2, "has no end"),
        ("RUN <<EOF\n#!/usr/bin/python3\nEOF\n", 2, "interpreter"),
        ("WORKDIR\n", 2, "WORKDIR without a value"),
        ("SHELL bash\n", 2, "JSON"),
        ("!!!\n", 2, "not an instruction"),
        ("FETCH x\n", 2, "instruction FETCH"),
    ],
)
def test_what_cannot_be_built_is_refused_with_its_line(text: str, line: int, reason: str) -> None:
    with pytest.raises(DockerfileError, match=reason) as refused:
        parse_dockerfile(FROM + text)
    assert refused.value.line == line
    assert str(refused.value).startswith(f"cannot be built: line {line}: ")


def test_files_without_a_usable_base_are_refused() -> None:
    for text in ("", "RUN x", "FROM scratch", "FROM", "FROM a b", "# escape=`\nFROM a"):
        with pytest.raises(DockerfileError):
            parse_dockerfile(text)


WORDS = st.text(st.sampled_from("ab1/._-"), min_size=1, max_size=8)


@given(st.lists(WORDS, min_size=1, max_size=5), st.sampled_from(["", " ", "\n", "  # no\n"]))
def test_a_command_is_the_same_however_its_lines_are_broken(words: list[str], gap: str) -> None:
    words = [word.lstrip("-") or "a" for word in words]
    broken = " \\\n".join(words)
    ((_, _, command),) = runs(f"RUN {broken}\n{gap}")
    assert command.split() == words


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40))
def test_quoted_values_are_read_back(value: str) -> None:
    quoted = value.translate({ord(sign): f"\\{sign}" for sign in '\\"$'})
    if any(end in value for end in "\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029"):
        return
    assert parse_dockerfile(f'{FROM}ENV A="{quoted}"\n').env == {"A": value}


@given(st.text(st.sampled_from("FROM RUN COPY ENV a=\\\n\"'$ {}:-<EOF[],#/."), max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    for whole in (text, FROM + text):
        with contextlib.suppress(DockerfileError):  # any other error fails
            parse_dockerfile(whole)
