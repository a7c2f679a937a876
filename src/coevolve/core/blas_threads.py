"""One thread for the linear algebra of a fit, without a change of the user's setting.

The matrices of a joint model are small. Several threads of BLAS, the library that multiplies them,
take longer to agree than one takes to compute (`benchmarks/core.py`). The setting belongs to the
process. So fits that change it take turns, and each restores what it found; threadpoolctl ignores
changes of other threads meanwhile. A limit that the user has set in another thread with
`threadpool_limits` stays as it is.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import RLock
from typing import Any

_TURN = RLock()


@cache
def _libraries() -> Any:
    """The libraries of the process, once scipy has loaded its own BLAS."""
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()  # type: ignore[no-untyped-call]


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Compute with one thread of BLAS; the setting from before is restored at the end."""
    with _TURN, _libraries().limit(limits=1, user_api="blas"):
        yield
