"""What a candidate may use: time, memory, processes, files, output."""

import math
from dataclasses import dataclass, fields

from coevolve.errors import InputError

MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a candidate may use; past a limit it is stopped, and the fault is its own.

    Args:
        seconds: Wall clock of one call, without the time its services take.
        cpu_seconds: CPU time of one call over all its processes; None is twice `seconds`.
        memory_mb: Address space of each process, and resident memory of all of them together.
        processes: Processes and threads at any time.
        file_mb: Size of one file it writes, and of its private /tmp.
        output_mb: What one call may print.
        answer_mb: Size of one answer, or of one request to a service, as JSON.
        startup_seconds: Wall clock for importing the candidate, before its first call.
        asks: Requests to services in one call.

    >>> Limits(seconds=10).cpu
    20
    """

    seconds: float = 60
    cpu_seconds: float | None = None
    memory_mb: int = 2048
    processes: int = 32
    file_mb: int = 64
    output_mb: float = 10
    answer_mb: float = 4
    startup_seconds: float = 20
    asks: int = 1000

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None and field.name == "cpu_seconds":
                continue
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not (number and math.isfinite(value) and value > 0):
                raise InputError(f"limit {field.name} must be a positive number, got {value!r}.")

    @property
    def cpu(self) -> float:
        """CPU seconds of one call, given or derived."""
        return self.cpu_seconds if self.cpu_seconds is not None else 2 * self.seconds

    @property
    def memory_bytes(self) -> int:
        return int(self.memory_mb * MEGABYTE)

    @property
    def file_bytes(self) -> int:
        return int(self.file_mb * MEGABYTE)

    @property
    def output_bytes(self) -> int:
        return int(self.output_mb * MEGABYTE)

    @property
    def answer_bytes(self) -> int:
        return int(self.answer_mb * MEGABYTE)
