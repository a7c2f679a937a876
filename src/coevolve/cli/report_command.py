"""`coevolve report`: a run as one file for readers, and the check of such a file."""

import contextlib
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from coevolve.cli.command_arguments import AsJson, Run, find_run
from coevolve.cli.console_output import echo, echo_json
from coevolve.errors import InputError
from coevolve.formatting import plural

if TYPE_CHECKING:
    from coevolve.figures import Figure
    from coevolve.figures.palette import Theme
    from coevolve.reports import RunDocument

MISMATCH = 1
"""Exit code if a report does not say what the journal says."""


class ReportFormat(StrEnum):
    """Formats of a report."""

    HTML = "html"
    MARKDOWN = "markdown"


class PictureTheme(StrEnum):
    """Backgrounds of the figures that --figures writes."""

    LIGHT = "light"
    DARK = "dark"


_ENDINGS = {
    ".html": ReportFormat.HTML,
    ".htm": ReportFormat.HTML,
    ".md": ReportFormat.MARKDOWN,
    ".markdown": ReportFormat.MARKDOWN,
}


def report(
    run: Run = None,
    to: Annotated[
        Path | None,
        typer.Option(
            help="The file to write or to verify.", show_default="NAME-report.html, or .md"
        ),
    ] = None,
    form: Annotated[
        ReportFormat | None,
        typer.Option("--format", help="The format.", show_default="that of --to, or html"),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(
            help="Also write every figure as SVG and PNG to this folder, for papers.",
            show_default="with Markdown: beside the report",
        ),
    ] = None,
    theme: Annotated[
        PictureTheme, typer.Option(help="The background of these figures.")
    ] = PictureTheme.LIGHT,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Write nothing: compute every number of the report again from the journal, and "
            "fail if one differs.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write a report of a run with all figures and their numbers, or verify one."""
    from coevolve.runs.session import read_opening

    folder = find_run(run)
    name, evaluation = read_opening(folder)
    if evaluation:
        raise InputError(
            f"{folder} is an evaluation, not a run; a report is about a search. Repeat its "
            "`coevolve evaluate` to see the scores."
        )
    form = form or _format_of(to)
    path = to or Path(f"{name}-report{'.md' if form is ReportFormat.MARKDOWN else '.html'}")
    if verify:
        if figures is not None:
            raise InputError("--verify writes nothing; leave out --figures.")
        _verify(folder, path, as_json)
    else:
        _write(folder, path, form, figures, theme.value, as_json)


def _format_of(to: Path | None) -> ReportFormat:
    if to is None:
        return ReportFormat.HTML
    if to.suffix.lower() not in _ENDINGS:
        raise InputError(f"--to {str(to)!r} has no known suffix; use .html or .md, or --format.")
    return _ENDINGS[to.suffix.lower()]


def _document(folder: Path, until: int | None = None) -> "RunDocument":
    """The document of a run, from its journal up to an event."""
    from coevolve import __version__
    from coevolve.reports import run_document
    from coevolve.runs.session import find_protocol
    from coevolve.store import RunStore
    from coevolve.views.timeline import Timeline

    find_protocol(folder)
    with RunStore.read(folder) as store:
        return run_document(Timeline.of(store, until), store, version=__version__)


def _write(
    folder: Path,
    path: Path,
    form: ReportFormat,
    figures: Path | None,
    theme: "Theme",
    as_json: bool,
) -> None:
    from coevolve.reports import html_report, markdown_report

    made = _document(folder)
    if form is ReportFormat.MARKDOWN and figures is None:
        figures = path.with_name(f"{path.stem}-figures")
    written = [] if figures is None else _write_figures(made.figures, figures, theme)
    if form is ReportFormat.MARKDOWN and figures is not None:
        beside = _relative(figures, path.parent)
        text = markdown_report(
            made.numbers, {name: f"{beside}/{name}.svg" for name in made.figures}
        )
    else:
        text = html_report(made.numbers, {name: one.svg for name, one in made.figures.items()})
    _put(path, text.encode("utf-8"))
    if as_json:
        found: dict[str, Any] = {
            "folder": str(folder),
            "file": str(path),
            "format": form.value,
            "bytes": len(text.encode("utf-8")),
            "figures": [str(one) for one in written],
        }
        echo_json(found)
        return
    echo(f"Wrote the report of {folder} to {path}.")
    if written:
        echo(f"Wrote {plural(len(written), 'file')} of figures to {figures}.")
        if not _can_draw_png():
            echo("Only SVG: PNG images need resvg-py: pip install 'task-coevolve[figures]'.")


def _relative(figures: Path, base: Path) -> str:
    """The path of the figures from the folder of the report, as in a link."""
    from os.path import relpath
    from urllib.parse import quote

    return quote(Path(relpath(figures, base)).as_posix())


def _write_figures(figures: "dict[str, Figure]", folder: Path, theme: "Theme") -> list[Path]:
    written = []
    for name, figure in figures.items():
        files = {"svg": figure.standalone(theme).encode("utf-8")}
        if _can_draw_png():
            files["png"] = figure.png(theme=theme)
        for kind, data in files.items():
            _put(folder / f"{name}.{kind}", data)
            written.append(folder / f"{name}.{kind}")
    return written


def _can_draw_png() -> bool:
    """Whether the package for PNG images is installed; Markdown needs SVG alone."""
    return find_spec("resvg_py") is not None


def _put(path: Path, data: bytes) -> None:
    """Write a file at once, so that a reader never finds half of it."""
    part = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(data)
        part.replace(path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}.") from error
    finally:
        with contextlib.suppress(OSError):  # it does not exist if the folder is not writable
            part.unlink()


def _verify(folder: Path, path: Path, as_json: bool) -> None:
    from coevolve.reports import check_report
    from coevolve.reports.report_check import embedded_numbers, events_of

    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise InputError(
            f"cannot read {path}: {why}. Name the report with --to, or write one first: coevolve "
            f"report {folder}"
        ) from error
    numbers = embedded_numbers(text)
    again = _document(folder, events_of(text))
    found = check_report(text, again)
    same = numbers.get("version") == again.numbers["version"]
    if as_json:
        rows = [
            {"where": one.where, "reported": one.reported, "recorded": one.recorded}
            for one in found
        ]
        echo_json({"file": str(path), "mismatches": rows, "text_compared": same})
    else:
        for one in found:
            echo(str(one))
        if not same:
            echo(
                f"Another version of coevolve wrote the report ({numbers.get('version')}), so "
                "only its numbers were compared, not its wording."
            )
        what = (
            f"{path} does not say what the journal of {folder} says."
            if found
            else (f"Every number of {path} follows from the journal of {folder}.")
        )
        echo(what)
    if found:
        _fail()


def _fail() -> NoReturn:
    raise typer.Exit(MISMATCH)
