"""LiteLLM: imported when it is first needed, made quiet, closed when it has served."""

import asyncio
import importlib
import inspect
import logging
import os
import warnings
from typing import Any

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
