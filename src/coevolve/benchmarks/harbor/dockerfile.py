"""A reader of Dockerfiles that need one base image and no engine.

It understands FROM (one stage), RUN, COPY and ADD of local files, ENV, ARG, WORKDIR, USER, SHELL
and ENTRYPOINT. It skips instructions that do not change files. Anything else raises a
`DockerfileError` with the line. The format: https://docs.docker.com/reference/dockerfile/.
"""

import json
import platform
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from coevolve.benchmarks.harbor.dockerfile_words import (
    DockerfileError,
    expand,
    pieces,
    unquoted,
)
from coevolve.errors import InputError

_SKIPPED = {"LABEL", "EXPOSE", "CMD", "HEALTHCHECK", "MAINTAINER", "STOPSIGNAL", "VOLUME"}
_INSTRUCTION = re.compile(r"\s*([A-Za-z]+)(?:\s+(.*))?\Z", re.DOTALL)
_FLAG = re.compile(r"--([a-z-]+)(?:=(\S*))?\s+")
_HEREDOC = re.compile(r"<<(-?)(['\"]?)([A-Za-z_][A-Za-z0-9_]*)\2")
_DIRECTIVE = re.compile(r"#\s*([a-z]+)\s*=\s*(\S+)\s*\Z")
_URL = re.compile(r"[a-z]+://|git@", re.IGNORECASE)
_SHELL = ("/bin/sh", "-c")
_ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
_PLATFORM = {
    f"{side}{name}": value
    for side in ("TARGET", "BUILD")
    for name, value in (
        ("PLATFORM", f"linux/{_ARCHITECTURE}"),
        ("OS", "linux"),
        ("ARCH", _ARCHITECTURE),
    )
}
"""Arguments that the engine sets if a Dockerfile declares them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A command to run while the environment is built."""

    line: int
    argv: tuple[str, ...]
    env: Mapping[str, str]
    workdir: str
    user: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """Files to copy from the folder of the Dockerfile; `text` is a file written in it."""

    line: int
    sources: tuple[str, ...]
    target: str
    text: str | None = None
    owner: str | None = None
    mode: int | None = None
    unpack: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A working folder to make."""

    line: int
    path: str
    user: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dockerfile:
    """What a Dockerfile says: a base image, steps, and how commands run in the result."""

    base: str
    steps: tuple[Run | Copy | Folder, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    workdir: str = "/"
    user: str | None = None
    entrypoint: tuple[str, ...] = ()


def read_dockerfile(path: Path, *, base_env: Mapping[str, str] | None = None) -> Dockerfile:
    """Read a Dockerfile.

    Args:
        path: The file.
        base_env: Variables of the base image, which later lines may use.

    Raises:
        DockerfileError: It cannot be built here.
    """
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the Dockerfile {path} cannot be read: {error}") from error
    return parse_dockerfile(text, base_env=base_env)


def parse_dockerfile(text: str, *, base_env: Mapping[str, str] | None = None) -> Dockerfile:
    r"""Read the text of a Dockerfile; see `read_dockerfile`.

    >>> parse_dockerfile("FROM debian:12\nWORKDIR /app\nRUN make").steps[1].argv
    ('/bin/sh', '-c', 'make')
    """
    state = _State(env=dict(base_env or {}))
    for line, name, value, documents in _instructions(text):
        state.read(line, name, value, documents)
    if not state.base:
        raise DockerfileError(1, "there is no FROM")
    return Dockerfile(
        base=state.base,
        steps=tuple(state.steps),
        env=state.env,
        workdir=state.workdir,
        user=state.user,
        entrypoint=state.entrypoint,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Document:
    """A here-document of an instruction."""

    word: str
    text: str
    literal: bool


def _instructions(text: str) -> Iterator[tuple[int, str, str, list[_Document]]]:
    """Line, name, value and here-documents of each instruction."""
    lines = text.removeprefix("\ufeff").split("\n")
    number = 0
    directives = True
    while number < len(lines):
        first = number + 1
        line = lines[number].rstrip("\r")
        number += 1
        if directives and (directive := _DIRECTIVE.match(line.strip())):
            if directive[1] == "escape" and directive[2] != "\\":
                raise DockerfileError(first, f"escape={directive[2]} is not supported")
            continue
        directives = False
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        whole = ""
        while True:
            bare = line.rstrip()
            if not bare.endswith("\\"):
                whole += line
                break
            whole += bare[:-1]
            while number < len(lines) and (
                not lines[number].strip() or lines[number].lstrip().startswith("#")
            ):
                number += 1
            if number == len(lines):
                break
            line = lines[number].rstrip("\r")
            number += 1
        found = _INSTRUCTION.match(whole)
        if found is None:
            raise DockerfileError(first, f"not an instruction: {whole.strip()[:60]!r}")
        name, value = found[1].upper(), (found[2] or "").strip()
        documents: list[_Document] = []
        if name in ("RUN", "COPY", "ADD"):
            for dash, quote, word in _HEREDOC.findall(value):
                body, number = _document(lines, number, word, bool(dash), first)
                documents.append(_Document(word=word, text=body, literal=bool(quote)))
        yield first, name, value, documents


def _document(lines: list[str], number: int, word: str, tabs: bool, first: int) -> tuple[str, int]:
    body: list[str] = []
    while number < len(lines):
        line = lines[number].rstrip("\r")
        number += 1
        stripped = line.lstrip("\t") if tabs else line
        if stripped == word:
            return "".join(f"{row}\n" for row in body), number
        body.append(stripped)
    raise DockerfileError(first, f"the here-document {word} has no end")


class _State:
    """What the instructions up to a line have set."""

    def __init__(self, *, env: dict[str, str]) -> None:
        self.base = ""
        self.env = env
        self.args: dict[str, str] = {}
        self.steps: list[Run | Copy | Folder] = []
        self.workdir = "/"
        self.user: str | None = None
        self.shell: tuple[str, ...] = _SHELL
        self.entrypoint: tuple[str, ...] = ()

    def read(self, line: int, name: str, value: str, documents: list[_Document]) -> None:
        if name in _SKIPPED:
            return
        if not self.base and name not in ("FROM", "ARG"):
            raise DockerfileError(line, f"{name} before FROM")
        flags, value = _flags(value)
        if name not in ("FROM", "RUN", "COPY", "ADD") and flags:
            raise DockerfileError(line, f"{name} --{next(iter(flags))} is not supported")
        if name in ("COPY", "ADD"):
            self._copy(line, name, value, flags, documents)
        elif name == "RUN":
            self._run(line, value, flags, documents)
        elif name == "FROM":
            self._from(line, value, flags)
        else:
            method = getattr(self, f"_{name.lower()}", None)
            if method is None:
                raise DockerfileError(line, f"the instruction {name} is not supported")
            if not value:
                raise DockerfileError(line, f"{name} without a value")
            method(line, value)

    def _from(self, line: int, value: str, flags: dict[str, str]) -> None:
        if self.base:
            raise DockerfileError(line, "a second FROM (only one stage can be built)")
        if flags.keys() - {"platform"}:
            raise DockerfileError(line, f"FROM --{next(iter(flags))} is not supported")
        words = expand(value, self.args).split()
        named = len(words) == 3 and words[1].upper() == "AS"
        if not (len(words) == 1 or named):
            raise DockerfileError(line, f"FROM {value!r} does not name an image")
        if words[0] == "scratch":
            raise DockerfileError(line, "FROM scratch is not supported (it has no programs)")
        self.base = words[0]
        self.args = {}

    def _arg(self, line: int, value: str) -> None:
        for word in pieces(value):
            name, has_default, default = word.partition("=")
            if has_default:
                self.args[name] = unquoted(line, default, self._known())
            elif name in _PLATFORM:
                self.args[name] = _PLATFORM[name]

    def _env(self, line: int, value: str) -> None:
        known = self._known()
        first = value.split(None, 1)[0]
        if "=" not in first:
            name, _, rest = value.partition(" ")
            self.env[name] = unquoted(line, rest.strip(), known)
            return
        for word in pieces(value):
            name, equals, text = word.partition("=")
            if not equals or not name:
                raise DockerfileError(line, f"ENV {word!r} has no value")
            self.env[name] = unquoted(line, text, known)

    def _workdir(self, line: int, value: str) -> None:
        path = unquoted(line, value, self._known())
        self.workdir = _normal(PurePosixPath(self.workdir, path))
        self.steps.append(Folder(line=line, path=self.workdir, user=self.user))

    def _user(self, line: int, value: str) -> None:
        self.user = unquoted(line, value, self._known())

    def _shell(self, line: int, value: str) -> None:
        words = _json_words(value)
        if not words:
            raise DockerfileError(line, "SHELL needs a list in JSON form")
        self.shell = words

    def _entrypoint(self, line: int, value: str) -> None:
        words = _json_words(value)
        self.entrypoint = (*self.shell, value) if words is None else words

    def _run(
        self, line: int, value: str, flags: dict[str, str], documents: list[_Document]
    ) -> None:
        for name, setting in flags.items():
            cached = name == "mount" and "type=cache" in setting.split(",")
            if not cached and (name, setting) != ("network", "default"):
                raise DockerfileError(line, f"RUN --{name}={setting} is not supported")
        words = _json_words(value)
        if words is None:
            command = value
            if documents and _HEREDOC.fullmatch(value):
                command = documents[0].text
                if command.startswith("#!"):
                    raise DockerfileError(line, "a here-document with an interpreter (#!)")
            elif documents:
                command += "\n" + "".join(f"{each.text}{each.word}\n" for each in documents)
            words = (*self.shell, command)
        if not words or not words[-1].strip():
            raise DockerfileError(line, "RUN without a command")
        self.steps.append(
            Run(line=line, argv=words, env=self._known(), workdir=self.workdir, user=self.user)
        )

    def _copy(
        self,
        line: int,
        name: str,
        value: str,
        flags: dict[str, str],
        documents: list[_Document],
    ) -> None:
        if unknown := flags.keys() - {"chown", "chmod", "link"}:
            raise DockerfileError(line, f"{name} --{sorted(unknown)[0]} is not supported")
        known = self._known()
        mode = None
        if "chmod" in flags:
            text = expand(flags["chmod"], known)
            if not re.fullmatch("[0-7]{3,4}", text):
                raise DockerfileError(line, f"{name} --chmod={text} (only octal modes)")
            mode = int(text, 8)
        owner = expand(flags["chown"], known) if "chown" in flags else None
        words = _json_words(value)
        if words is None:
            words = tuple(unquoted(line, word, known) for word in pieces(value))
        if len(words) < 2:
            raise DockerfileError(line, f"{name} needs a source and a target")
        *sources, last = words
        target = _normal(PurePosixPath(self.workdir, last))
        if last.endswith(("/", "/.")) or last == "." or len(sources) > 1:
            target = target.rstrip("/") + "/"
        if documents:
            if len(sources) != 1 or len(documents) != 1:
                raise DockerfileError(line, f"{name} of several here-documents is not supported")
            text = documents[0].text
            text = text if documents[0].literal else expand(text, known)
            if target.endswith("/"):
                target += documents[0].word
            step = Copy(line=line, sources=(), target=target, text=text, owner=owner, mode=mode)
            self.steps.append(step)
            return
        if name == "ADD" and any(_URL.match(source) for source in sources):
            raise DockerfileError(line, "ADD of an address (only local files)")
        self.steps.append(
            Copy(
                line=line,
                sources=tuple(sources),
                target=target,
                owner=owner,
                mode=mode,
                unpack=name == "ADD",
            )
        )

    def _known(self) -> dict[str, str]:
        return {**self.args, **self.env}


def _flags(value: str) -> tuple[dict[str, str], str]:
    """The `--name=value` words at the beginning, and the rest."""
    flags: dict[str, str] = {}
    while found := _FLAG.match(f"{value} "):
        flags[found[1]] = found[2] or ""
        value = value[found.end() :].lstrip()
    return flags, value


def _json_words(value: str) -> tuple[str, ...] | None:
    """The words of the JSON form; None for the other form."""
    if not value.startswith("["):
        return None
    try:
        words = json.loads(value)
    except ValueError:
        return None
    return tuple(words) if all(isinstance(word, str) for word in words) else None


def _normal(path: PurePosixPath) -> str:
    """A path without `..`, which is resolved by name as Docker does."""
    parts: list[str] = []
    for part in path.parts[1:]:
        if part == "..":
            parts = parts[:-1]
        else:
            parts.append(part)
    return "/" + "/".join(parts)
