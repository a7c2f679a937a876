"""Interrupting a call of a candidate from another thread."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from coevolve.errors import CoevolveError
from coevolve.search.trials import Blame, Fault


class CallInterrupted(CoevolveError):  # noqa: N818
    """`Harness.interrupt` ended the call, which is not the candidate's fault.

    A benchmark that interrupts a call catches it. If it does not, the cause is unknown: the
    benchmark may have interrupted a candidate that took too long.

    >>> CallInterrupted("stopped").fault.blame
    <Blame.DOUBTFUL: 'doubtful'>
    """

    @property
    def fault(self) -> Fault:
        """The fault as the engine records it."""
        return Fault(blame=Blame.DOUBTFUL, kind="interrupted", reason=str(self))


class Interruption:
    """Whether the running call of a harness is to end now; any thread may set it.

    >>> Interruption().set()  # nothing is running
    False
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._running = self._set = False
        self._actions: list[Callable[[], object]] = []

    @property
    def is_set(self) -> bool:
        """Whether the call was interrupted."""
        return self._set

    def error(self) -> CallInterrupted:
        """The error of the call."""
        return CallInterrupted("the call was interrupted.")

    def set(self) -> bool:
        """Interrupt the call, if one is running; whether one is.

        The actions run under the lock, so none runs once its `acting` has ended.
        """
        with self._lock:
            if self._running and not self._set:
                self._set = True
                for action in list(self._actions):
                    action()
            return self._running

    @contextmanager
    def running(self) -> Iterator[None]:
        """A call is running; if it is interrupted, it ends with `CallInterrupted`."""
        with self._lock:
            self._running, self._set = True, False
        try:
            yield
        except Exception as error:
            if self._ended():
                raise self.error() from error
            raise
        except BaseException:
            self._ended()
            raise
        if self._ended():
            raise self.error()

    @contextmanager
    def acting(self, action: Callable[[], object]) -> Iterator[None]:
        """Run an action when the call is interrupted, or now if it was."""
        with self._lock:
            self._actions.append(action)
            if self._set:
                action()
        try:
            yield
        finally:
            with self._lock:
                self._actions.remove(action)

    def _ended(self) -> bool:
        with self._lock:
            self._running = False
            return self._set
