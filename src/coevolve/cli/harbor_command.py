"""`coevolve harbor`: Harbor tasks, and environments for them without Docker."""

from pathlib import Path
from typing import Annotated, Any

import typer

from coevolve.cli.command_arguments import AsJson
from coevolve.cli.console_output import echo, echo_error, echo_json

harbor = typer.Typer(
    name="harbor",
    no_args_is_help=True,
    help="Download Harbor tasks, and prepare environments that need no Docker.",
)


@harbor.command()
def download(
    dataset: Annotated[
        str, typer.Argument(help="The name of a data set, such as terminal-bench-2.1.")
    ],
    version: Annotated[
        str | None, typer.Option(help="The version, or a revision such as sha256:....")
    ] = None,
    registry: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A registry file, instead of Harbor's.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Download the tasks of a data set, unless they are in the cache."""
    from coevolve.benchmarks.harbor.task_folders import downloaded, read_tasks_folder, revision

    folder = downloaded(dataset, version, registry)
    tasks, found = sorted(read_tasks_folder(folder)), revision(folder)
    if as_json:
        echo_json({"folder": str(folder), "revision": found, "tasks": tasks})
    else:
        echo(f"{len(tasks)} tasks in {folder}")
        if found is not None:
            echo(f'Revision {found}. To pin it, set version = "{found}" in [benchmark].')


@harbor.command()
def prepare(
    roots: Annotated[
        list[str] | None,
        typer.Argument(help="Roots to prepare. Without any, list all roots."),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE|FOLDER",
            help="Create one root from an archive of `docker export`, or from a folder.",
        ),
    ] = None,
    mirror: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Address of the packages. Default: the machine's."),
    ] = None,
    keyring: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The keys that sign the mirror's packages."),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A variable of the image, with --from."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Prepare root folders from packages or from an exported container."""
    from coevolve.benchmarks.harbor.root_folders import roots_folder
    from coevolve.benchmarks.harbor.root_preparation import import_root, known_roots, prepare_root
    from coevolve.errors import InputError

    if not roots:
        here = sorted(path.parent.name for path in roots_folder().glob("*/root.json"))
        if as_json:
            echo_json({"known": known_roots(), "here": here})
        else:
            echo(f"can be prepared: {', '.join(known_roots())}")
            echo(f"ready, in {roots_folder()}: {', '.join(here) or 'none'}")
        return
    if source is not None:
        if len(roots) != 1:
            raise InputError(f"--from creates one root, but {len(roots)} names were given.")
        if wrong := [word for word in env or () if "=" not in word]:
            raise InputError(f"--env {wrong[0]!r} is not NAME=VALUE.")
        pairs = dict(word.partition("=")[::2] for word in env or ())
        made = [import_root(roots[0], source, env=pairs)]
    elif env:
        raise InputError("--env needs --from.")
    else:
        made = [
            prepare_root(name, mirror=mirror, keyring=keyring, say=echo_error) for name in roots
        ]
    if as_json:
        echo_json([{"root": root.name, "folder": str(root.files)} for root in made])
        return
    for root in made:
        echo(f"{root.name}: {root.files}")


@harbor.command()
def check(
    tasks: Annotated[Path, typer.Argument(help="A task folder, or a folder of them.")],
    root: Annotated[
        str | None, typer.Option(help="The root for all tasks. Default: by base image.")
    ] = None,
    build: Annotated[bool, typer.Option("--build", help="Also build the tasks.")] = False,
    as_json: AsJson = False,
) -> None:
    """List which tasks can be built here, and why others cannot."""
    from coevolve.benchmarks.harbor.namespace_support import missing_limits, why_unavailable
    from coevolve.benchmarks.harbor.task_check import check_tasks

    unavailable = why_unavailable()
    rows = check_tasks(tasks, root=root, build=build and not unavailable)
    failed = [row for row in rows if row.reason]
    if as_json:
        listed: list[dict[str, Any]] = [
            {"task": row.task, "image": row.image, "root": row.root, "reason": row.reason}
            for row in rows
        ]
        limits = missing_limits()
        echo_json({"unavailable": unavailable, "missing_limits": limits, "tasks": listed})
    else:
        for row in rows:
            root_text = f" on {row.root}" if row.root else ""
            echo(f"{row.task}: {row.reason or f'{row.result}{root_text}'}")
        echo(f"{len(rows) - len(failed)} of {len(rows)} tasks can be built.")
        if unavailable:
            echo_error(f"The environment without Docker cannot run here: {unavailable}.")
        for text in missing_limits():
            echo_error(text)
    if failed or unavailable:
        raise typer.Exit(1)
