"""System calls that Python has no functions for: mounts, capabilities, filters.

It is a part of `namespace_keeper` and uses the standard library only.
"""

import ctypes
import fcntl
import os
import socket
import struct

_libc = ctypes.CDLL(None, use_errno=True)
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 1, 2, 4, 8
_MS_REC, _MS_PRIVATE = 1 << 14, 1 << 18
_MNT_DETACH = 2
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_HERE, _AT_EMPTY_PATH, _CLONE_TREE, _MOVE_EMPTY_PATH = -100, 0x1000, 1, 4
_ATTR_NOSUID, _ATTR_IDMAP = 0x2, 0x100000
_PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_CAPBSET_DROP = 4, 22, 24
_SECCOMP_FILTER = 2
_CAPABILITY_VERSION = 0x20080522
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1


class KeeperError(Exception):
    """The environment cannot do what was requested; the text says why."""


def _check(result: int, what: str) -> int:
    if result < 0:
        raise KeeperError(f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


def mount(source: str, target: str, kind: str, flags: int = 0, data: str = "") -> None:
    """Mount a file system."""
    encoded = (source.encode(), target.encode(), kind.encode())
    result = _libc.mount(*encoded, ctypes.c_ulong(flags), data.encode() or None)
    _check(result, f"mount {kind or source} at {target}")


def _change_mount(place: int, path: bytes, *, add: int = 0, clear: int = 0, users: int = 0) -> int:
    attributes = struct.pack("=QQQQ", add, clear, 0, users)
    flags = 0 if path else _AT_EMPTY_PATH
    return int(_libc.syscall(_MOUNT_SETATTR, place, path, flags, attributes, len(attributes)))


def mount_mapped(source: str, target: str, users: int) -> None:
    """Mount a folder with the ids of a user namespace: owner 0 becomes its root."""
    tree = _libc.syscall(_OPEN_TREE, _HERE, source.encode(), _CLONE_TREE | os.O_CLOEXEC)
    _check(tree, f"clone the mount of {source}")
    what = f"map the owners of {source} (this needs Linux 5.19 and ext4, XFS, Btrfs or tmpfs)"
    _check(_change_mount(tree, b"", add=_ATTR_IDMAP, users=users), what)
    moved = _libc.syscall(_MOVE_MOUNT, tree, b"", _HERE, target.encode(), _MOVE_EMPTY_PATH)
    _check(moved, f"mount {source} at {target}")
    os.close(tree)


def escaped(path: str) -> str:
    """A path for the options of an overlay."""
    return "".join(f"\\{sign}" if sign in ":,\\" else sign for sign in path)


def loopback_up() -> None:
    """Switch on the loopback of the present network namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh14x", b"lo", _IFF_UP)
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, request)


def make_mounts_private() -> None:
    """Keep the mounts of this process from others, and those of others from it."""
    mount("none", "/", "", _MS_REC | _MS_PRIVATE)


def mount_sysfs(place: str) -> None:
    """Mount the devices of the present network namespace, read-only."""
    mount("sysfs", place, "sysfs", _MS_RDONLY | _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)


def mount_memory(place: str) -> None:
    """Mount an empty file system in memory."""
    mount("tmpfs", place, "tmpfs", _MS_NODEV, "mode=755")


def unmount(place: str) -> None:
    """Unmount all below a place, if something is mounted there."""
    _libc.umount2(place.encode(), _MNT_DETACH)


def allow_set_user_id(place: str) -> None:
    """Let programs below a mount change the user, as `su` does."""
    result = _change_mount(_HERE, place.encode(), clear=_ATTR_NOSUID)
    _check(result, f"allow set-user-id programs in {place}")


def hide_memory() -> None:
    """Keep other processes from reading the memory and the descriptors of this one."""
    _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def limit_powers(code: bytes, capabilities: list[int]) -> None:
    """Install a filter of system calls, and give up other capabilities for good."""
    if code:
        program = ctypes.create_string_buffer(code, len(code))
        header = struct.pack("=H6xQ", len(code) // 8, ctypes.addressof(program))
        result = _libc.prctl(_PR_SET_SECCOMP, _SECCOMP_FILTER, header, 0, 0)
        _check(result, "install the filter of system calls")
    for number in range(64):
        if number not in capabilities and _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0) < 0:
            break  # the kernel has no such capability, nor higher ones


def set_capabilities(numbers: list[int]) -> None:
    """Have these capabilities and no others."""
    mask = sum(1 << number for number in numbers)
    low, high = mask & 0xFFFFFFFF, mask >> 32
    header = struct.pack("=Ii", _CAPABILITY_VERSION, 0)
    data = struct.pack("=6I", low, low, 0, high, high, 0)
    _check(_libc.capset(header, data), "limit the capabilities")
