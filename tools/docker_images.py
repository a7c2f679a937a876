"""Images of a private engine that pulls nothing: stand-ins for those that tasks and Harbor name.

- `debian:bookworm-slim` is made by debootstrap. It contains what our tasks install and has no apt
  sources, so `apt-get update && apt-get install` in a Dockerfile succeeds without a network.
- Harbor asks an image of Alpine whether the kernel can filter networks. It is named by its digest.
- Harbor's container that filters the network of a task gets our Debian with nftables, and Harbor's
  own scripts. Its proxy is left out: it is needed for lists of allowed hosts only.
"""

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from docker_packages import EngineError, Say

from coevolve.benchmarks.harbor.root_preparation import apt_sources

SUITE = "bookworm"
BASE = "debian:bookworm-slim"
PACKAGES = ("git", "make", "nftables", "procps", "python3", "sqlite3", "tmux")
"""What the Dockerfiles of our tasks install, and nftables."""
_PROXY = "RUN printf '#!/bin/sh\\nexec sleep infinity\\n' > /bin/gost && chmod 755 /bin/gost"

_PRIORITY = "RUN sed -i 's/priority dstnat/priority -100/' /usr/local/bin/network-policy"
"""Bookworm's nftables does not know this name of the number."""

type Docker = Callable[..., subprocess.CompletedProcess[str]]


def import_images(docker: Docker, cache: Path, programs: Path, say: Say) -> str:
    """Give an engine all images; the identity of the base image.

    Raises:
        EngineError: One cannot be made.
    """
    archive = _base_archive(cache, programs, say)
    say(f"importing {BASE}")
    with archive.open("rb") as file:
        base = docker("import", "-", BASE, stdin=file.fileno()).stdout.strip()
    _build_filter(docker)
    return base


def _base_archive(cache: Path, programs: Path, say: Say) -> Path:
    """The files of the base image, made once."""
    key = hashlib.sha256(repr((SUITE, PACKAGES)).encode()).hexdigest()[:12]
    target = cache / f"base-{key}.tar"
    if target.exists():
        return target
    say(f"making {BASE} with debootstrap, which takes a minute or more")
    work = cache / f"base-{key}-{os.getpid()}.part"
    work.mkdir()
    try:
        _bootstrap(work / "root", programs)
        made = work / "made.tar"
        done = subprocess.run(
            ("tar", "-C", str(work / "root"), "--exclude=./dev/*", "-cf", str(made), "."),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise EngineError(f"tar failed: {done.stderr.strip()[-500:]}")
        made.rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


def _bootstrap(root: Path, programs: Path) -> None:
    address = next(source.address for source in apt_sources() if SUITE in source.suites)
    own = programs / "usr/sbin/debootstrap"
    variables = dict(os.environ)
    if own.exists():
        variables["DEBOOTSTRAP_DIR"] = str(programs / "usr/share/debootstrap")
    command = str(own) if own.exists() else "debootstrap"
    include = f"--include={','.join(PACKAGES)}"
    done = subprocess.run(
        (command, "--variant=minbase", include, SUITE, str(root), address),
        capture_output=True,
        text=True,
        check=False,
        env=variables,
    )
    if done.returncode:
        raise EngineError(f"debootstrap failed: {(done.stdout + done.stderr).strip()[-800:]}")
    (root / "etc/apt/sources.list").write_text("")
    for pattern in ("var/cache/apt/archives/*.deb", "var/lib/apt/lists/*_*", "var/log/*.log"):
        for path in root.glob(pattern):
            path.unlink()


def _build_filter(docker: Docker) -> None:
    """Build the container that filters networks from Harbor's own scripts, under Harbor's name."""
    from harbor.environments.docker.docker import DockerEnvironment
    from harbor.environments.docker.utils import _compute_image_name
    from harbor.utils.container_cache import docker_build_context_hash

    context = DockerEnvironment._EGRESS_CONTROL_SIDECAR_CONTEXT_PATH
    dockerfile = context / "Dockerfile"
    platform = docker("version", "--format", "{{.Server.Os}}/{{.Server.Arch}}").stdout.strip()
    key = docker_build_context_hash(
        context=context, dockerfile_path=dockerfile, build_args={}, platform=platform
    )
    name = _compute_image_name(DockerEnvironment._EGRESS_CONTROL_SIDECAR_DOCKER_NAME, key)
    lines = dockerfile.read_text().splitlines()
    copies = [line for line in lines if not line.startswith("FROM ")]
    with tempfile.TemporaryDirectory() as folder:
        own = Path(folder, "Dockerfile")
        own.write_text("\n".join([f"FROM {BASE}", _PROXY, *copies, _PRIORITY]) + "\n")
        docker("build", "--quiet", "--tag", name, "--file", str(own), str(context))


def name_by_digest(data: Path, image: str) -> None:
    """Let the base image stand for Harbor's image of Alpine, in the files of an engine at rest.

    Docker gives an image a digest only when it is pulled.
    """
    from harbor.environments.docker.docker import DockerEnvironment

    given = DockerEnvironment._EGRESS_CONTROL_KERNEL_PROBE_IMAGE
    name, _, digest = given.partition("@")
    repository = name.partition(":")[0]
    (file,) = data.glob("image/*/repositories.json")
    known: dict[str, Any] = json.loads(file.read_text())
    known["Repositories"].setdefault(repository, {})[f"{repository}@{digest}"] = image
    file.write_text(json.dumps(known))
