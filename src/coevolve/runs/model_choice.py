"""Another model for the same configuration, as a text that users write."""

import tomllib
from pathlib import Path
from typing import Any

from coevolve.errors import InputError
from coevolve.runs.config import RunConfig

OF_ONE_MODEL = (
    "base_url",
    "key",
    "window",
    "strict_choices",
    "reasoning_effort",
    "price_in",
    "price_out",
    "price_kept",
    "record",
    "replay",
    "arguments",
)
"""Keys of `[model]` that another model does not take over: above all, never address and key."""


def with_model(config: RunConfig, text: str, base: Path) -> RunConfig:
    """The configuration with another model.

    Args:
        config: The configuration.
        text: The name of a model, or keys of `[model]` with their values:
            "name=openai/gpt-5-mini, temperature=0.7". Keys without a name change the configured
            model.
        base: The folder of the project.

    Raises:
        InputError: The text cannot be read.
        ConfigError: The configuration does not allow the model.
    """
    keys = read_model(text)
    table = {} if config.model is None else config.model.model_dump(exclude_none=True)
    if config.model is None and "name" not in keys:
        raise InputError("the configuration has no [model], so --model needs name=.")
    name = keys.get("name", table.get("name"))
    if name != table.get("name"):
        table = {key: value for key, value in table.items() if key not in OF_ONE_MODEL}
    data = {**config.to_json(), "model": {**table, **keys}}
    return RunConfig.from_json(data, source=f"--model {name}", folder=base)


def read_model(text: str) -> dict[str, Any]:
    """The keys of `[model]` in a text.

    >>> read_model("embedded"), read_model("name=llama3:8b, base_url=http://localhost:11434/v1")
    ({'name': 'embedded'}, {'name': 'llama3:8b', 'base_url': 'http://localhost:11434/v1'})
    >>> read_model("temperature=0.7,max_tokens=64")
    {'temperature': 0.7, 'max_tokens': 64}
    """
    if not text.strip():
        raise InputError("the name of a model must not be empty.")
    if "=" not in text:
        return {"name": text.strip()}
    found: dict[str, Any] = {}
    for part in text.split(","):
        key, equals, value = (word.strip() for word in part.partition("="))
        if not (key.isidentifier() and equals and value):
            raise InputError(
                f"{part.strip()!r} of a model is not KEY=VALUE; write a name, or keys of [model] "
                "such as name=openai/gpt-5-mini,temperature=0.7."
            )
        if key in found:
            raise InputError(f"a model has {key!r} twice; give it once.")
        found[key] = _value(value)
    return found


def _value(text: str) -> Any:
    """A value as TOML reads it; a text needs no quotes."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
