"""`coevolve diff`: two candidates side by side."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from coevolve.cli.command_arguments import AsJson, take_run
from coevolve.cli.console_output import Screen, echo_json
from coevolve.errors import UnknownCandidateError, nearest
from coevolve.formatting import estimate, plural, tasks_seen

if TYPE_CHECKING:
    from coevolve.views.details import Comparison

USAGE = "coevolve diff [RUN] A B"
_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_MOST = 12


def diff(
    words: Annotated[
        list[str], typer.Argument(metavar="[RUN] A B", help="The run, and two candidates of it.")
    ],
    as_json: AsJson = False,
) -> None:
    """Compare two candidates: their files, estimates and outcomes."""
    from coevolve.runs.session import read_state
    from coevolve.store import RunStore
    from coevolve.views.details import compare

    folder, (first, second) = take_run(words, 2, USAGE)
    state = read_state(folder)
    for name in (first, second):
        if name not in state.candidates:
            raise UnknownCandidateError(
                f"{folder} has no candidate {name!r}.{nearest(name, state.candidates)}"
            )
    with RunStore.read(folder) as store:
        found = compare(first, second, state, store)
    if as_json:
        echo_json({"folder": str(folder), **found.to_json()})
        return
    console = Screen()
    for line in found.diff or ["The files are identical."]:
        console.print(Text(line, _style(line)), soft_wrap=True)
    console.print()
    for text in _beside(found):
        console.print(text)


def _style(line: str) -> str:
    if line.startswith(("---", "+++", "Binary")):
        return "bold"
    return _STYLES.get(line[:1], "")


def _beside(found: "Comparison") -> Iterator[Text]:
    rows, shared = found.candidates, found.shared
    longest = max(len(row.name) for row in rows)
    for row in rows:
        text = row.status if row.estimate is None else estimate(row.estimate)
        tasks = "" if row.estimate is None else f", {tasks_seen(row.estimate)} tasks"
        parents = f", from {', '.join(row.parents)}" if row.parents else ""
        yield Text.assemble((f"{row.name:<{longest}}", "bold"), f"  {text}{tasks}{parents}")
        if row.hypothesis:
            yield Text(f"{'':<{longest}}  {row.hypothesis}", "bright_black")
    ties = shared.tasks - len(shared.first_better) - len(shared.second_better)
    tasks = plural(shared.tasks, "shared task")
    yield Text(f"\n{tasks}, {ties} with the same score")
    for row, better in zip(rows, (shared.first_better, shared.second_better), strict=True):
        listed = ", ".join(list(better)[:_MOST])
        more = f" and {len(better) - _MOST} more" if len(better) > _MOST else ""
        yield Text(f"{row.name:<{longest}}  better on {len(better)}: {listed or 'none'}{more}")
