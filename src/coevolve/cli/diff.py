"""`coevolve diff`: two candidates side by side."""

import difflib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from coevolve.cli.places import take_run
from coevolve.errors import UnknownCandidateError, nearest

USAGE = "coevolve diff [RUN] A B"
_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_MOST = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """Tasks that both candidates have a score on, by who did better."""

    tasks: int
    first_better: dict[str, tuple[float, float]]
    second_better: dict[str, tuple[float, float]]


def diff(
    words: Annotated[
        list[str], typer.Argument(metavar="[RUN] A B", help="The run, and two candidates of it.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show how two candidates differ: in their files, their estimates and their outcomes."""
    from coevolve.runs.session import read_state
    from coevolve.search.report import report
    from coevolve.store import RunStore

    folder, names = take_run(words, 2, USAGE)
    state = read_state(folder)
    for name in names:
        if name not in state.candidates:
            raise UnknownCandidateError(
                f"{folder} has no candidate {name!r}.{nearest(name, state.candidates)}"
            )
    rows = {row.name: row for row in report(state).candidates}
    with RunStore.read(folder) as store:
        files = [
            {
                path: store.get(address)
                for path, address in state.candidates[n].candidate.files.items()
            }
            for n in names
        ]
    lines = list(unified(files[0], files[1], names))
    shared = shared_tasks(*(_scores(state, name) for name in names))
    if as_json:
        found: dict[str, Any] = {
            "folder": str(folder),
            "candidates": [asdict(rows[name]) for name in names],
            "shared": asdict(shared),
            "diff": "\n".join(lines),
        }
        typer.echo(json.dumps(found, indent=2))
        return
    console = Console(highlight=False)
    for line in lines or ["The files are the same."]:
        console.print(Text(line, _style(line)), soft_wrap=True)
    console.print()
    for text in _beside([rows[name] for name in names], shared):
        console.print(text)


def unified(first: dict[str, bytes], second: dict[str, bytes], names: list[str]) -> Iterator[str]:
    """The unified diff of two sets of files, without line ends."""
    for path in sorted(first.keys() | second.keys()):
        old, new = first.get(path), second.get(path)
        if old == new:
            continue
        before = "/dev/null" if old is None else f"{names[0]}/{path}"
        after = "/dev/null" if new is None else f"{names[1]}/{path}"
        try:
            lines = [(data or b"").decode().splitlines() for data in (old, new)]
        except UnicodeDecodeError:
            yield f"Binary files {before} and {after} differ"
            continue
        yield from difflib.unified_diff(lines[0], lines[1], before, after, lineterm="")


def shared_tasks(first: dict[str, float], second: dict[str, float]) -> Shared:
    """What the candidates made of the tasks both have a score on.

    >>> shared_tasks({"a": 1.0, "b": 0.0, "c": 1.0}, {"a": 0.0, "b": 0.0})
    Shared(tasks=2, first_better={'a': (1.0, 0.0)}, second_better={})
    """
    common = {task: (first[task], second[task]) for task in first if task in second}
    return Shared(
        tasks=len(common),
        first_better={task: pair for task, pair in common.items() if pair[0] > pair[1]},
        second_better={task: pair for task, pair in common.items() if pair[0] < pair[1]},
    )


def _scores(state: Any, name: str) -> dict[str, float]:
    from coevolve.search.run_state import Status

    if state.candidates[name].status != Status.EVALUATED:
        return {}
    found = state.selector.scores(name).items()
    return {task: value for task, value in found if isinstance(value, float)}


def _style(line: str) -> str:
    if line.startswith(("---", "+++", "Binary")):
        return "bold"
    return _STYLES.get(line[:1], "")


def _beside(rows: list[Any], shared: Shared) -> Iterator[Text]:
    from coevolve.cli.words import plural, score, seen

    longest = max(len(row.name) for row in rows)
    for row in rows:
        text = row.status if row.estimate is None else score(row.estimate)
        tasks = "" if row.estimate is None else f", {seen(row.estimate)} tasks"
        parents = f", from {', '.join(row.parents)}" if row.parents else ""
        yield Text.assemble((f"{row.name:<{longest}}", "bold"), f"  {text}{tasks}{parents}")
        if row.hypothesis:
            yield Text(f"{'':<{longest}}  {row.hypothesis}", "bright_black")
    ties = shared.tasks - len(shared.first_better) - len(shared.second_better)
    yield Text(f"\n{plural(shared.tasks, 'task')} with a score of both, {ties} alike")
    for row, better in zip(rows, (shared.first_better, shared.second_better), strict=True):
        listed = ", ".join(list(better)[:_MOST])
        more = f" and {len(better) - _MOST} more" if len(better) > _MOST else ""
        yield Text(f"{row.name:<{longest}}  better on {len(better)}: {listed or 'none'}{more}")
