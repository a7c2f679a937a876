"""LiteLLM, loaded when first needed, and the service it asks: model, address, key."""

import asyncio
import importlib
import inspect
import logging
import os
import warnings
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from coevolve.errors import ConfigError

_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")
_SETTINGS = {
    "suppress_debug_info": True,
    "telemetry": False,
    # Otherwise counting the tokens of some models fetches a tokenizer from a hub.
    "disable_hf_tokenizer_download": True,
}
_NOISE = (".*`ReadOnly` qualifier.*", "Pydantic serializer warnings.*")
"""Warnings about LiteLLM's own code, not about anything a user could change."""


def load() -> Any:
    """The module `litellm`, which takes a second or three the first time.

    It is kept from what it does otherwise: fetch a price table, read a `.env` file, print, log.

    Raises:
        ConfigError: It is not installed.
    """
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
    try:
        library: Any = importlib.import_module("litellm")
    except ModuleNotFoundError as error:
        if error.name != "litellm":
            raise
        raise ConfigError(
            "hosted models need LiteLLM, which is not installed here. Install it with "
            "pip install 'task-coevolve[llm]'."
        ) from error
    for name, value in _SETTINGS.items():
        setattr(library, name, value)
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    for message in _NOISE:
        warnings.filterwarnings("ignore", message=message, category=UserWarning)
    return library


def check_service(name: str, *, own: bool) -> None:
    """Refuse a model that LiteLLM has no service for.

    Args:
        name: The model.
        own: Whether it is served at an address of one's own, by any name.

    Raises:
        ConfigError: There is none, or LiteLLM is not installed.
    """
    library = load()
    try:
        if not own:
            library.get_llm_provider(name)
    except library.BadRequestError:
        raise ConfigError(unknown_service(name)) from None


def unknown_service(name: str) -> str:
    """What is wrong with the name of a model that LiteLLM has no service for."""
    return (
        f"LiteLLM knows no service for {name!r}. Names of hosted models begin with one, such as "
        "openrouter/openai/gpt-oss-120b; a server of your own needs base_url."
    )


async def close(library: Any) -> None:
    """End what LiteLLM has in the running event loop: its log worker, its open connections.

    LiteLLM keeps clients in a cache, under keys that end with the number of the event loop. A
    client of another user of this loop goes too, and is made again at its next call.
    """
    await asyncio.sleep(0)  # calls that just ended have yet to reach the log worker
    worker = importlib.import_module("litellm.litellm_core_utils.logging_worker")
    await worker.GLOBAL_LOGGING_WORKER.flush()
    await worker.GLOBAL_LOGGING_WORKER.stop()
    cache = library.in_memory_llm_clients_cache
    mark = f"-{id(asyncio.get_running_loop())}"
    for key in [key for key in cache.cache_dict if key.endswith(mark)]:
        cache.ttl_dict.pop(key, None)
        await _end(cache.cache_dict.pop(key))


async def _end(client: Any) -> None:
    ending = getattr(client, "aclose", None) or getattr(client, "close", None)
    ended = None if ending is None else ending()
    if inspect.isawaitable(ended):
        await ended


_LONGEST = 300
_OPENAI = "openai/"
_NO_KEY = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A model at a service.

    Args:
        name: The model.
        base_url: The address of an OpenAI-compatible server; None for a hosted model.
        key: The key; empty for none.
        variable: The name of the environment variable that holds the key, if known.
        timeout: Seconds to wait for it.

    >>> Service(name="served", base_url="http://localhost:8000/v1", key="sk-1").where
    'localhost:8000'
    """

    name: str
    base_url: str | None = None
    key: str = field(default="", repr=False)
    variable: str = ""
    timeout: float = 600.0

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise ConfigError(f"a model must have a name, got {self.name!r}.")
        if not self.timeout > 0:
            raise ConfigError(f"timeout must be positive, got {self.timeout!r}.")
        if not (self.key.isascii() and self.key.isprintable()) or " " in self.key:
            raise ConfigError(
                f"{self.variable or 'the key'} has white space or other characters in it that no "
                "key has. Check how it was set."
            )
        if self.base_url is not None:
            _check(self.base_url)

    @property
    def host(self) -> str:
        """Host and port of a server of one's own."""
        return "" if self.base_url is None else urlsplit(self.base_url).netloc

    @property
    def where(self) -> str:
        """The service, for people."""
        return self.host or f"the service of {self.name}"

    @property
    def names(self) -> tuple[str, ...]:
        """What LiteLLM is to call the model, likeliest first.

        >>> Service(name="openai/gpt-oss-120b", base_url="http://localhost:8000/v1").names
        ('openai/openai/gpt-oss-120b', 'openai/gpt-oss-120b')
        """
        if self.base_url is None:
            return (self.name,)
        own = _OPENAI + self.name
        return (own, self.name) if self.name.startswith(_OPENAI) else (own,)

    @property
    def credential(self) -> str | None:
        """What LiteLLM gets for a key; without any it would send one from the environment."""
        return self.key or (None if self.base_url is None else _NO_KEY)

    def struck(self, text: str) -> str:
        """A text in one line, of some length, without the key."""
        clean = text.replace(self.key, "***") if self.key else text
        return " ".join(clean.split())[:_LONGEST].rstrip(". ")


def _check(base_url: str) -> None:
    parts = urlsplit(base_url)
    if "@" in parts.netloc or parts.query:
        raise ConfigError(
            f"base_url of {parts.hostname} must hold no user, password or query. Put the key into "
            "an environment variable."
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(
            f"base_url must be an address such as http://localhost:8000/v1, got {base_url!r}."
        )
