"""Whether task environments without Docker can run on this machine, and with which limits."""

import functools
import os
import platform
import re
import shutil
from pathlib import Path

from coevolve.benchmarks.harbor.namespace_limits import why_no_limits
from coevolve.models.response_cache import cache_folder

_KERNEL = (5, 19)
"""The first Linux whose overlayfs accepts folders with mapped owners."""


def environments_folder() -> Path:
    """Where the folders of running environments are."""
    return cache_folder() / "harbor" / "environments"


@functools.cache
def why_unavailable() -> str:
    """Why environments cannot run here; empty if they can."""
    if platform.system() != "Linux":
        return f"it needs Linux, and this is {platform.system()}"
    if os.geteuid():
        return (
            "it needs root, to map 65,536 user ids and to mount file systems; "
            "run as root, or set environment = 'docker'"
        )
    release = tuple(map(int, re.findall(r"\d+", platform.release())[:2]))
    if release < _KERNEL:
        return f"it needs Linux 5.19 or newer, and this is {platform.release()}"
    if shutil.which("bwrap") is None:
        return "the program bwrap is missing; install the package bubblewrap"
    if "overlay" not in Path("/proc/filesystems").read_text().split():
        return "the kernel has no overlayfs; load it with: modprobe overlay"
    return ""


def missing_limits() -> list[str]:
    """Which limits are missing here, and why."""
    return [text for text in (why_no_limits(), why_no_disk_limit()) if text]


def why_no_disk_limit() -> str:
    """Why the disk of environments cannot be limited here; empty if it can."""
    if shutil.which("mkfs.ext4") is None:
        return "the disk is not limited: mkfs.ext4 is missing; install the package e2fsprogs"
    if not Path("/dev/loop-control").exists():
        return "the disk is not limited: this machine has no loop devices"
    return ""
