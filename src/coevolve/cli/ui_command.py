"""`coevolve ui`: web pages of runs, live while they work."""

import contextlib
import secrets
import socket
import webbrowser
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer

from coevolve.cli.console_output import echo
from coevolve.errors import InputError

PORT = 8100
_SHORTEST = 8
"""Characters of a token; a shorter one can be guessed."""
_TRIED = 20
"""Ports that are tried after the first one is taken."""


def ui(
    places: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RUN|FOLDER",
            help="Run folders, TOML files of runs, folders with runs, or files that "
            "`coevolve replay --json` wrote. Default: the runs of the current folder.",
            show_default=False,
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            help=f"The port; 0 takes any free one. Default: {PORT}, or the next free one.",
            min=0,
            max=65_535,
            show_default=False,
        ),
    ] = None,
    host: Annotated[
        str,
        typer.Option(help="The address to listen on; other machines need a token to see pages."),
    ] = "127.0.0.1",
    token: Annotated[
        str | None,
        typer.Option(
            help="The token that a browser needs. Default: a new one if --host is not loopback.",
            envvar="COEVOLVE_UI_TOKEN",
            show_default=False,
        ),
    ] = None,
    open_browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in a browser.")
    ] = False,
) -> None:
    """Show runs in a browser: progress, matrix, candidates, costs; live while they work."""
    try:
        from coevolve.dashboard import Access, PageServer
    except ImportError as error:
        raise InputError(
            f"the pages need {error.name}: pip install 'task-coevolve[ui]'."
        ) from None
    from coevolve.dashboard.page_access import LOOPBACK, is_loopback

    local = is_loopback(host)
    if token is not None and (len(token) < _SHORTEST or not token.isprintable()):
        raise InputError(
            f"--token must have at least {_SHORTEST} characters, all of them visible, "
            f"got {len(token)}; leave it out for a new one."
        )
    secret = token or ("" if local else secrets.token_urlsafe(16))
    listening = _listening(host, port)
    hosts = LOOPBACK | {host.lower()} | (frozenset() if local else _own_names())
    server = PageServer(_places(places), Access(frozenset(hosts), secret))
    name = "localhost" if host == "0.0.0.0" or host == "::" else host
    shown = f"[{name}]" if ":" in name else name
    url = f"http://{shown}:{listening.getsockname()[1]}/"
    url += f"?token={quote(secret)}" if secret else ""
    echo(f"Open {url}")
    if name != host:
        echo(f"On other machines, write this machine's name in place of {name}.")
    echo("Stop with Ctrl-C. The pages only read; they never change a run.")
    if open_browser:
        webbrowser.open(url)
    with listening:
        server.run(sockets=[listening])


def _places(given: list[Path] | None) -> list[Path]:
    """Folders and replays; a TOML file stands for its run."""
    from coevolve.cli.command_arguments import find_run

    return [
        find_run(path) if path.suffix == ".toml" and path.is_file() else path
        for path in given or [Path()]
    ]


def _listening(host: str, port: int | None) -> socket.socket:
    """A socket on a port, or on the next free one if none was asked for."""
    ports = [port] if port is not None else [*range(PORT, PORT + _TRIED), 0]
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    last: OSError | None = None
    for one in ports:
        found = socket.socket(family, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((host, one))
            found.listen(128)
        except OSError as error:
            found.close()
            last = error
        else:
            found.set_inheritable(True)
            return found
    reason = "unknown" if last is None else last.strerror or str(last)
    raise InputError(f"cannot listen on {host} port {port or PORT}: {reason}.")


def _own_names() -> frozenset[str]:
    """The names by which other machines may ask this one."""
    name = socket.gethostname().lower()
    found = {name, socket.getfqdn().lower()}
    with contextlib.suppress(OSError):  # a name that does not resolve has no addresses
        found |= {str(row[4][0]).lower() for row in socket.getaddrinfo(name, None)}
    return frozenset(found)
