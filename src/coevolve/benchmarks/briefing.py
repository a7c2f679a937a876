"""What proposers are told of harnesses whose benchmark is a function or a command."""

import ast
import shlex
import warnings
from collections.abc import Iterator, Mapping, Sequence

from coevolve.errors import ConfigError
from coevolve.search.candidate import Files

_HARNESS = """\
A candidate is a folder with a Python file `harness.py`, and more files if it needs them."""
_CALLED = """\
Arguments and answers are JSON. A candidate that raises, hangs or answers what cannot be read \
scores 0 on that task."""
_SANDBOX = """\
Its code runs in a sandbox, within limits of time and memory: no network, no files but its own, \
nothing kept from one task to the next that may be relied on. It may import the standard library \
and what is installed with this Python. Where the run has a language model, \
`coevolve_host.ask("model", prompt="...", max_tokens=100)["text"]` asks it (`import \
coevolve_host` first). The same input should get the same answer: draw from `random.Random(0)` \
and the like."""
_BY_HEART = """\
It must work for tasks nobody has seen: its files may hold no answers to particular tasks."""
_COMMAND = """\
A candidate is a folder of files. For each task, `{command}` is run in that folder, in a sandbox \
{network}; `.` is the folder, TASK the id of the task. It says what the candidate scores, from 0 \
to 1. A candidate that makes it fail scores 0."""


def checked_briefing(briefing: object) -> str:
    """A briefing, if it is a text."""
    if not isinstance(briefing, str):
        raise ConfigError(f"the briefing must be a text, got {briefing!r:.80}.")
    return briefing


def function_briefing(about: str, functions: Sequence[str], starts: Mapping[str, Files]) -> str:
    """What a harness of a function benchmark is, with the functions it must define.

    The signatures are those of the first starting harness.

    >>> files = {"harness.py": b"def total(text: str) -> float: return 0.0"}
    >>> lines = function_briefing("Find totals.", ["total"], {"zero": files}).splitlines()
    >>> lines[0], lines[4]
    ('Find totals.', '- `total(text: str) -> float`')
    """
    source = next(iter(starts.values())).get("harness.py", b"").decode(errors="replace")
    found = dict(_signatures(source))
    listed = [f"- {found.get(name, f'`{name}`')}" for name in functions]
    defines = f"{_HARNESS} It must define:\n\n" + "\n".join(listed) if listed else _HARNESS
    parts = [checked_briefing(about).strip(), defines, _CALLED, _SANDBOX, _BY_HEART]
    return "\n\n".join(part for part in parts if part) + "\n"


def command_briefing(about: str, command: Sequence[str], *, network: bool) -> str:
    """What a candidate of a command benchmark is.

    Args:
        about: What its author says of it.
        command: Of one trial, with TASK in place of a task.
        network: Whether the sandbox has one.
    """
    used = _COMMAND.format(
        command=shlex.join(command), network="with network" if network else "without network"
    )
    parts = [checked_briefing(about).strip(), used, _BY_HEART]
    return "\n\n".join(part for part in parts if part) + "\n"


def _signatures(source: str) -> Iterator[tuple[str, str]]:
    """The functions of a file, each as it is called and with the first line of what it says."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its escapes are no concern of ours
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return  # the benchmark's check will say so
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            gives = f" -> {ast.unparse(node.returns)}" if node.returns else ""
            said = (ast.get_docstring(node) or "").partition("\n")[0]
            shown = f"`{node.name}({ast.unparse(node.args)}){gives}`"
            yield node.name, f"{shown}: {said}" if said else shown
