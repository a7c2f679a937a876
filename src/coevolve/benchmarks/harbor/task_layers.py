"""The layer of a task: what its Dockerfile adds to a root, built once and shared.

Layers are in `$COEVOLVE_CACHE/harbor/layers`, under a name made from the root, the Dockerfile and
the files beside it. One process builds a layer and others wait; a failed build leaves nothing.
"""

import asyncio
import fnmatch
import hashlib
import json
import os
import re
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Self

from coevolve.benchmarks.harbor.dockerfile import Copy, Dockerfile, Folder, Run
from coevolve.benchmarks.harbor.dockerfile_words import DockerfileError
from coevolve.benchmarks.harbor.root_folders import RootFolder, building
from coevolve.benchmarks.harbor.task_namespace import NamespacePlan, TaskNamespace, Tree
from coevolve.models.response_cache import cache_folder

_FORMAT = 1
_FACTS = "layer.json"
_PROXIES = ("http_proxy", "https_proxy", "no_proxy")
_TAIL = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLayer:
    """A built layer, or none: the root, and how commands run on it."""

    root: RootFolder
    folder: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    workdir: str = "/"
    user: str | None = None
    entrypoint: tuple[str, ...] = ()

    def trees(self) -> tuple[Tree, ...]:
        """The parts of an environment's root, with this layer on them."""
        trees = self.root.trees()
        if self.folder is None:
            return trees
        above = ((tree, self.folder / "upper" / tree.name) for tree in trees)
        return tuple(
            replace(tree, layers=(layer,)) if layer.is_dir() else tree for tree, layer in above
        )

    @classmethod
    def read(cls, root: RootFolder, folder: Path) -> Self:
        """A layer in its folder."""
        facts = json.loads((folder / _FACTS).read_text())
        return cls(
            root=root,
            folder=folder,
            env=facts["env"],
            workdir=facts["workdir"],
            user=facts["user"],
            entrypoint=tuple(facts["entrypoint"]),
        )


def layers_folder() -> Path:
    """Where layers are kept."""
    return cache_folder() / "harbor" / "layers"


def layer_key(root: RootFolder, dockerfile: Path, context: Path) -> str:
    """A name that changes with the root, the Dockerfile and the files beside it."""
    digest = hashlib.sha256(f"{_FORMAT}\0{root.identity}\0".encode() + dockerfile.read_bytes())
    for path in sorted(context.rglob("*")):
        facts = path.lstat()
        digest.update(f"\0{path.relative_to(context)}\0{facts.st_mode:o}\0".encode())
        if stat.S_ISLNK(facts.st_mode):
            digest.update(os.fsencode(path.readlink()))
        elif stat.S_ISREG(facts.st_mode):
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:32]


async def build_layer(
    root: RootFolder,
    recipe: Dockerfile,
    context: Path,
    *,
    key: str,
    rebuild: bool = False,
    folder: Path | None = None,
) -> TaskLayer:
    """Build the layer of a Dockerfile, or take it from the cache.

    RUN has the network of this machine: Dockerfiles are the user's own files.

    Raises:
        DockerfileError: A step failed.
    """
    if not recipe.steps:
        facts = {"env": recipe.env, "workdir": recipe.workdir, "user": recipe.user}
        return TaskLayer(root=root, entrypoint=recipe.entrypoint, **facts)  # type: ignore[arg-type]
    target = (folder or layers_folder()) / key
    if rebuild and target.exists():
        old = target.with_name(f".{target.name}.{os.getpid()}.old")
        target.rename(old)
        shutil.rmtree(old, ignore_errors=True)
    if not (target / _FACTS).exists():
        building_now = building(target)
        # A thread of its own: those of the event loop may all wait here for one that builds.
        waiting = ThreadPoolExecutor(1, thread_name_prefix="coevolve-layer")
        try:
            loop = asyncio.get_running_loop()
            made = await loop.run_in_executor(waiting, building_now.__enter__)
        finally:
            waiting.shutdown(wait=False)
        try:
            if made is not None:
                await _build(root, recipe, context, made)
        except BaseException as error:
            if not building_now.__exit__(type(error), error, error.__traceback__):
                raise
        else:
            building_now.__exit__(None, None, None)
    return TaskLayer.read(root, target)


async def _build(root: RootFolder, recipe: Dockerfile, context: Path, made: Path) -> None:
    plan = NamespacePlan(trees=root.trees(), network="host", hostname="build", keep=True)
    namespace = TaskNamespace(plan, made)
    await namespace.start()
    try:
        for step in recipe.steps:
            await _step(namespace, step, context)
    finally:
        await asyncio.shield(namespace.stop())
    (namespace.folder / "upper").rename(made / "upper")
    shutil.rmtree(namespace.folder)
    facts = {
        "env": dict(recipe.env),
        "workdir": recipe.workdir,
        "user": recipe.user,
        "entrypoint": list(recipe.entrypoint),
    }
    (made / _FACTS).write_text(json.dumps(facts, indent=1))


async def _step(namespace: TaskNamespace, step: Run | Copy | Folder, context: Path) -> None:
    if isinstance(step, Run):
        proxies = {
            name: value
            for name, value in os.environ.items()
            if name.lower() in _PROXIES and name not in step.env
        }
        done = await namespace.exec(
            step.argv, cwd=step.workdir, env={**proxies, **step.env}, user=step.user
        )
        if done.code:
            tail = done.output[-_TAIL:].strip()
            command = " ".join(step.argv[2:] or step.argv)[:100]
            raise DockerfileError(
                step.line, f"RUN {command!r} ended with status {done.code}: {tail}"
            )
    elif isinstance(step, Folder):
        make = '[ -d "$1" ] || { mkdir -p "$1" && chown "$2" "$1"; }'
        argv = ("/bin/sh", "-c", make, "sh", step.path, step.user or "0:0")
        done = await namespace.exec(argv, cwd="/")
        if done.code:
            raise DockerfileError(step.line, f"WORKDIR {step.path}: {done.output.strip()}")
    elif step.text is not None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "text")
            file.write_text(step.text)
            file.chmod(0o644)
            await namespace.put_file(file, step.target, owner=step.owner, mode=step.mode)
    else:
        await _copy(namespace, step, context)


async def _copy(namespace: TaskNamespace, step: Copy, context: Path) -> None:
    ignored = _ignored(context)
    for source in step.sources:
        for path in _matches(step, source, context):
            if step.unpack and path.is_file() and tarfile.is_tarfile(path):
                raise DockerfileError(step.line, f"ADD of the archive {source} (unpack it in RUN)")
            if path.is_dir():
                with tempfile.TemporaryDirectory() as folder:
                    part = Path(folder, "part")
                    shutil.copytree(
                        path,
                        part,
                        symlinks=True,
                        ignore=lambda place, names: [
                            name
                            for name in names
                            if ignored(str(Path(place, name).relative_to(context)))
                        ],
                    )
                    target = step.target.rstrip("/") or "/"
                    await namespace.put_folder(part, target, owner=step.owner, mode=step.mode)
            else:
                await namespace.put_file(path, step.target, owner=step.owner, mode=step.mode)


def _matches(step: Copy, source: str, context: Path) -> Iterator[Path]:
    pattern = str(PurePosixPath("/", source)).lstrip("/") or "."
    if ".." in PurePosixPath(pattern).parts:
        raise DockerfileError(step.line, f"COPY {source} is outside the folder of the Dockerfile")
    if pattern == ".":
        yield context
        return
    literal = context / pattern
    found = [literal] if literal.exists() else sorted(context.glob(pattern))
    top = context.resolve()
    found = [path for path in found if path.resolve().is_relative_to(top)]
    if not found:
        raise DockerfileError(step.line, f"COPY {source}: there is no such file")
    yield from found


def _ignored(context: Path):  # type: ignore[no-untyped-def]
    """Whether `.dockerignore` leaves out a path."""
    file = context / ".dockerignore"
    rules: list[tuple[bool, re.Pattern[str]]] = []
    if file.exists():
        for line in file.read_text().splitlines():
            text = line.strip()
            if not text or text.startswith("#"):
                continue
            keep = text.startswith("!")
            pattern = text.removeprefix("!").strip().strip("/")
            anywhere = pattern.startswith("**/")
            inner = fnmatch.translate(pattern.removeprefix("**/")).removesuffix(r"\Z")
            prefix = "(?:.*/)?" if anywhere else ""
            rules.append((keep, re.compile(f"{prefix}{inner}(?:/.*)?\\Z", re.DOTALL)))

    def left_out(path: str) -> bool:
        result = False
        for keep, pattern in rules:
            if pattern.match(path):
                result = not keep
        return result

    return left_out
