"""A filter that denies system calls which a candidate never needs but an attacker does.

Namespaces hide files, processes and the network. The filter denies what remains: socket
families without namespaces (AF_VSOCK of a virtual machine reaches its host), memory that no limit
counts, and the parts of the kernel where most escapes were found.

A filter is a list of instructions of eight bytes: code, jump if true, jump if false, constant; see
https://docs.kernel.org/userspace-api/seccomp_filter.html.
"""

import functools
import os
import platform
import struct
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _DENY, _UNKNOWN = 0x7FFF0000, 0x00050001, 0x00050026  # yes, EPERM, ENOSYS
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16}
_NEW_NAMESPACES = 0x7E020000
_FOREIGN_CALLS = 0x40000000  # the x32 numbers of x86-64


class Machine(NamedTuple):
    """An architecture: its number in the kernel, and the numbers of its system calls."""

    audit: int
    socket: int
    clone: int
    denied: tuple[int, ...]


_CLONE3 = 435
_EVERYWHERE = (
    *range(425, 428),  # io_uring: its own way to sockets and files
    *range(428, 434),  # open_tree, move_mount, fsopen, fsconfig, fsmount, fspick
    438,  # pidfd_getfd
    442,  # mount_setattr
    447,  # memfd_secret
)
_MACHINES = {
    "x86_64": Machine(
        audit=0xC000003E,
        socket=41,
        clone=56,
        denied=(
            *(101, 310, 311, 312),  # ptrace, process_vm_readv, process_vm_writev, kcmp
            *(155, 161, 165, 166, 272, 308),  # pivot_root, chroot, (u)mount, unshare, setns
            *(303, 304),  # name_to_handle_at, open_by_handle_at
            *(298, 300, 321, 323),  # perf_event_open, fanotify_init, bpf, userfaultfd
            *(248, 249, 250),  # add_key, request_key, keyctl
            *(29, 68, 319),  # shmget, msgget, memfd_create: memory outside every limit
            *(64, 240),  # semget, mq_open: outlive the processes of a trial
            *(103, 154, 163, 167, 168, 169, 172, 173),  # syslog, modify_ldt, acct, swap, io ports
            *(175, 176, 246, 313, 320),  # modules, kexec
        ),
    ),
    "aarch64": Machine(
        audit=0xC00000B7,
        socket=198,
        clone=220,
        denied=(
            *(117, 270, 271, 272),
            *(39, 40, 41, 51, 97, 268),
            *(264, 265),
            *(241, 262, 280, 282),
            *(217, 218, 219),
            *(186, 194, 279),
            *(180, 190),
            *(89, 116, 142, 224, 225),
            *(104, 105, 106, 273, 294),
        ),
    ),
}

_IN_CONTAINERS = {
    # ptrace, process_vm_readv, process_vm_writev, kcmp, chroot, shmget, msgget, memfd_create,
    # semget, mq_open
    "x86_64": {101, 310, 311, 312, 161, 29, 68, 319, 64, 240},
    "aarch64": {117, 270, 271, 272, 51, 194, 186, 279, 190, 180},
}


def filter_fd() -> tuple[int, ...]:
    """A descriptor from which bwrap reads the filter; empty on an unknown architecture."""
    code = program(platform.machine())
    if not code:
        return ()
    reader, writer = os.pipe()
    with os.fdopen(writer, "wb") as pipe:
        pipe.write(code)
    return (reader,)


@functools.cache
def container_filter() -> bytes:
    """A filter for trusted programs in a container, about as strict as that of Docker.

    It allows debuggers, shared memory and message queues, and denies new namespaces and mounts.
    """
    known = _MACHINES.get(platform.machine())
    if known is None:
        return b""
    allowed = _IN_CONTAINERS[platform.machine()]
    denied = tuple(number for number in known.denied if number not in allowed)
    families = {**_FAMILIES, "AF_PACKET": 17}
    return b"".join(_instructions(known._replace(denied=denied), families))


@functools.cache
def program(machine: str) -> bytes:
    """The filter for an architecture, empty if unknown.

    >>> len(program("x86_64")) % 8, program("s390x")
    (0, b'')
    """
    known = _MACHINES.get(machine)
    return b"" if known is None else b"".join(_instructions(known))


def _instructions(
    machine: Machine, families: Mapping[str, int] = MappingProxyType(_FAMILIES)
) -> Iterator[bytes]:
    yield _step(_LOAD, _ARCHITECTURE)
    yield _step(_EQUAL, machine.audit, 1, 0)
    yield _step(_RETURN, _DENY)
    yield _step(_LOAD, _NUMBER)
    yield from _unless(_AT_LEAST, _FOREIGN_CALLS, _DENY)
    yield from _unless(_EQUAL, _CLONE3, _UNKNOWN)  # the C library then uses clone
    for number in (*machine.denied, *_EVERYWHERE):
        yield from _unless(_EQUAL, number, _DENY)
    yield _step(_EQUAL, machine.clone, 0, 4)
    yield _step(_LOAD, _FIRST_ARGUMENT)
    yield from _unless(_ANY_BIT, _NEW_NAMESPACES, _DENY)
    yield _step(_RETURN, _ALLOW)
    yield _step(_EQUAL, machine.socket, 0, len(families) + 2)
    yield _step(_LOAD, _FIRST_ARGUMENT)
    for left, family in zip(range(len(families), 0, -1), families.values(), strict=True):
        yield _step(_EQUAL, family, left, 0)
    yield _step(_RETURN, _DENY)
    yield _step(_RETURN, _ALLOW)


def _unless(test: int, constant: int, verdict: int) -> Iterator[bytes]:
    """End with the verdict if the test holds, else continue."""
    yield _step(test, constant, 0, 1)
    yield _step(_RETURN, verdict)


def _step(code: int, constant: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, constant)
