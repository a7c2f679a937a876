"""The worker's side of a nursery: having built its benchmark, it forks others from itself."""

import contextlib
import gc
import os
import select
import signal
import socket
import struct
import sys
from typing import NamedTuple

import numpy as np

from coevolve.executors.processes import die_with

NUMBER = struct.Struct("=i")
"""What is told of a worker on its status pipe: its process, and later its exit code."""
_PASSED = 4


class Newborn(NamedTuple):
    """What a forked worker has of its own."""

    socket: socket.socket
    flag: int


class Births:
    """Forks a worker at each request, and tells how each of them ends.

    Args:
        requests: A socket on which the descriptors of new workers come in.
    """

    def __init__(self, requests: int) -> None:
        self._requests = socket.socket(fileno=requests)
        self._wake, self._woken = os.pipe()
        os.set_blocking(self._woken, False)
        self._statuses: dict[int, int] = {}

    def bear(self) -> Newborn | None:
        """Fork until nobody asks any more; in each worker, return what it has of its own."""
        signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        poll = select.poll()
        for fd in (self._wake, self._requests.fileno()):
            poll.register(fd, select.POLLIN)
        gc.freeze()  # so that a worker's collections do not copy what it shares
        while True:
            ready = {fd for fd, _ in poll.poll()}
            if self._wake in ready:
                os.read(self._wake, 1 << 12)
                self._reap()
            if self._requests.fileno() in ready:
                _, passed, _, _ = socket.recv_fds(
                    self._requests, 1, _PASSED, socket.MSG_CMSG_CLOEXEC
                )
                if len(passed) != _PASSED:
                    return None
                newborn = self._fork(*passed)
                if newborn is not None:
                    return newborn

    def _fork(self, end: int, log: int, flag: int, status: int) -> Newborn | None:
        """None in this process; a process that cannot be made shows by the end of its status."""
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        parent, pid = os.getpid(), -1
        with contextlib.suppress(OSError):
            pid = os.fork()
        if pid == 0:
            os.close(status)
            return self._become_worker(parent, end, log, flag)
        for fd in (end, log, flag):
            os.close(fd)
        if pid < 0:
            os.close(status)
        else:
            self._statuses[pid] = status
            _tell(status, pid)
        return None

    def _become_worker(self, parent: int, end: int, log: int, flag: int) -> Newborn:
        die_with(parent)
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._requests.close()
        for fd in (self._wake, self._woken, *self._statuses.values()):
            os.close(fd)
        for fd in (1, 2):
            os.dup2(log, fd)
        os.close(log)
        np.random.seed()  # the standard library does the same for its own
        return Newborn(socket.socket(fileno=end), flag)

    def _reap(self) -> None:
        """Tell the exit codes of workers that have ended, before their numbers are free again."""
        for pid, status in list(self._statuses.items()):
            ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is not None:
                by_itself = ended.si_code == os.CLD_EXITED
                _tell(status, ended.si_status if by_itself else -ended.si_status)
                os.close(self._statuses.pop(pid))
                os.waitpid(pid, 0)


def _tell(status: int, number: int) -> None:
    with contextlib.suppress(BrokenPipeError):  # nobody waits for it any more
        os.write(status, NUMBER.pack(number))
