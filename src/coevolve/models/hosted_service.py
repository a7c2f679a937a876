"""LiteLLM, loaded at the first use; the service it calls; and the meaning of its errors.

If there was no HTTP status, LiteLLM sets one: 500 for a lost connection and for a reply that is
not JSON. Only an error with the headers of a response has a status of the service.

No message contains the key: it is removed from all texts of a service.
"""

import asyncio
import importlib
import inspect
import logging
import os
import re
import ssl
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from coevolve.errors import ConfigError
from coevolve.formatting import one_line
from coevolve.models.model_errors import (
    ContextTooLong,
    ModelError,
    ModelKeyError,
    ModelNotFound,
    ModelReplyError,
    ModelUnavailable,
    RequestRefused,
)
from coevolve.models.provider import ModelRequest
from coevolve.redaction import Redaction
from coevolve.service_words import WAIT_STATUSES, Meaning, meaning_of

_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")
_SETTINGS = {
    "suppress_debug_info": True,
    "telemetry": False,
    # Otherwise counting the tokens of some models fetches a tokenizer from a hub.
    "disable_hf_tokenizer_download": True,
}
_NOISE = (".*`ReadOnly` qualifier.*", "Pydantic serializer warnings.*")
"""Warnings about LiteLLM's own code, which a user cannot change."""


def load() -> Any:
    """The module `litellm`; the first import takes up to three seconds.

    It does not download a price table, read a `.env` file, print or log, and its clients have
    the limits of `reply_limits`.

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
            "hosted models need LiteLLM, which is not installed. Install it with "
            "pip install 'task-coevolve[llm]'."
        ) from error
    for name, value in _SETTINGS.items():
        setattr(library, name, value)
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    for message in _NOISE:
        warnings.filterwarnings("ignore", message=message, category=UserWarning)
    importlib.import_module("coevolve.models.reply_limits").limit_clients()  # it needs httpx
    return library


def check_service(name: str, *, own: bool) -> None:
    """Refuse a model whose service LiteLLM does not know.

    Args:
        name: The model.
        own: Whether it is served at a `base_url`, by any name.

    Raises:
        ConfigError: There is no service, or LiteLLM is not installed.
    """
    library = load()
    try:
        if not own:
            library.get_llm_provider(name)
    except library.BadRequestError:
        raise ConfigError(unknown_service(name)) from None


def unknown_service(name: str) -> str:
    """The message for a model whose service LiteLLM does not know."""
    return (
        f"LiteLLM has no service for {name!r}. The name of a hosted model begins with "
        "its service, such as openrouter/openai/gpt-oss-120b; your own server needs base_url."
    )


async def close(library: Any) -> None:
    """End LiteLLM's log worker and its open connections in the running event loop.

    LiteLLM keeps clients in a cache, under keys that end with the number of the event loop. A
    client of another user of this loop is closed too, and created again at its next call.
    """
    await asyncio.sleep(0)  # calls that just ended have not reached the log worker yet
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
                f"{self.variable or 'the key'} contains white space or other characters that are "
                "not allowed in a key. Check how it was set."
            )
        if self.base_url is not None:
            _check(self.base_url)

    @property
    def host(self) -> str:
        """Host and port of `base_url`."""
        return "" if self.base_url is None else urlsplit(self.base_url).netloc

    @property
    def where(self) -> str:
        """The service, for messages."""
        return self.host or f"the service of {self.name}"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the model for LiteLLM, the most probable first.

        >>> Service(name="openai/gpt-oss-120b", base_url="http://localhost:8000/v1").names
        ('openai/openai/gpt-oss-120b', 'openai/gpt-oss-120b')
        """
        if self.base_url is None:
            return (self.name,)
        own = _OPENAI + self.name
        return (own, self.name) if self.name.startswith(_OPENAI) else (own,)

    @property
    def credential(self) -> str | None:
        """The key for LiteLLM; without one it would send one from the environment."""
        return self.key or (None if self.base_url is None else _NO_KEY)

    def redacted(self, text: str) -> str:
        """A text without the key."""
        return Redaction([self.key]).text(text)

    def said(self, text: str) -> str:
        """A message of the service in one line, without the key."""
        return one_line(self.redacted(text), _LONGEST).rstrip(". ")


def _check(base_url: str) -> None:
    parts = urlsplit(base_url)
    if "@" in parts.netloc or parts.query:
        raise ConfigError(
            f"base_url of {parts.hostname} must not contain a user, password or query. Put the "
            "key into an environment variable."
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(
            f"base_url must be an address such as http://localhost:8000/v1, got {base_url!r}."
        )


_LOST = ("APIConnectionError", "Timeout", "TimeoutError", "ConnectionError", "TransportError")
_OUTPUT = ("max_tokens", "max_completion_tokens", "output tokens", "in the completion")
_KEYLESS = re.compile(r"missing credentials|missing [\w ]*api key|api_key is not set")
_ROOM = re.compile(r"context (?:length|window|size)\D{0,40}(\d+)")
_PREFIX = re.compile(r"^(?:(?:litellm\.)?\w* ?(?:Error|Exception|Timeout)(?:: | - ))+")
_SUFFIX = re.compile(r"\s*(?:Traceback \(most|To drop |Pass model as ).*", re.DOTALL)


class _Trouble(NamedTuple):
    """The contents of an error of LiteLLM."""

    kind: str
    status: int
    headers: Any | None  # of the response of the service, if there was one
    message: str
    words: str  # the whole error in lower case
    parameter: str

    @property
    def meaning(self) -> Meaning | None:
        return meaning_of(self.words, self.status)


def understood(
    error: Exception, service: Service, request: ModelRequest, *, proven: bool = False
) -> ModelError:
    """Our error for an error of LiteLLM.

    A service that is `proven` has answered before, so the settings are right.
    """
    trouble = _trouble(error, service)
    return (
        _of_connection(error, trouble, service)
        or _of_account(trouble, service)
        or _of_length(trouble, service, request)
        or _of_policy(trouble, service)
        or _of_status(trouble, service, proven and _is_composed(request))
    )


def _trouble(error: Exception, service: Service) -> _Trouble:
    status, body = getattr(error, "status_code", None), getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else None
    named = inner.get("param") if isinstance(inner, dict) else None
    headers = getattr(error, "litellm_response_headers", None)
    return _Trouble(
        kind=type(error).__name__,
        status=status if isinstance(status, int) else 0,
        headers=headers or getattr(getattr(error, "response", None), "headers", None) or None,
        message=service.said(_SUFFIX.sub("", _PREFIX.sub("", str(error)))),
        words=f"{error} {body or ''}".lower(),
        parameter=named if isinstance(named, str) else "",
    )


def _of_connection(error: Exception, trouble: _Trouble, service: Service) -> ModelError | None:
    """The error if the request did not reach the service, or the answer did not reach us."""
    chain = list(_chain(error))
    where = service.where
    if ours := next((link for link in chain if isinstance(link, ModelError)), None):
        return type(ours)(service.redacted(str(ours)))
    if any(isinstance(link, ssl.SSLCertVerificationError) for link in chain):
        return ModelNotFound(
            f"the certificate of {where} is not trusted. Install it, or check base_url."
        )
    if missing := next((link for link in chain if isinstance(link, ImportError)), None):
        return ModelNotFound(f"LiteLLM cannot call {service.name}: {missing}. Install the module.")
    if "llm provider not provided" in trouble.words:
        return ModelNotFound(unknown_service(service.name))
    if trouble.headers is None and trouble.kind == "Timeout":
        return late(service)
    # LiteLLM raises its own APIConnectionError for any unknown error, so only causes count.
    if trouble.headers is None and any(map(_is_lost, chain[1:])):
        why = service.said(str(chain[-1]))
        return ModelUnavailable(f"{where} could not be reached, or the connection broke: {why}.")
    return None


def _of_account(trouble: _Trouble, service: Service) -> ModelError | None:
    held = f"the key in {service.variable}" if service.variable else "the key"
    if not service.key and trouble.headers is None and _KEYLESS.search(trouble.words):
        return ModelKeyError(f"there is no key for {service.name}: {trouble.message}.")
    if trouble.status == 402 or trouble.meaning is Meaning.NO_CREDIT:
        return ModelKeyError(
            f"the account behind {held} has no credit left at {service.where}. Add credit, then "
            "resume the run."
        )
    # Some services answer 403 to a prompt that they refuse.
    refused = trouble.status in (401, 403) and trouble.meaning is not Meaning.NOT_ANSWERED
    if refused or trouble.meaning is Meaning.KEY_REFUSED:
        given = held if service.key else "a request without a key"
        return ModelKeyError(
            f"{service.where} refuses {given} (status {trouble.status}). Check "
            f"{service.variable or 'the key'}, and that it may use {service.name}."
        )
    return None


def _of_length(trouble: _Trouble, service: Service, request: ModelRequest) -> ModelError | None:
    named = trouble.kind == "ContextWindowExceededError" or trouble.status == 413
    if not named and trouble.meaning is not Meaning.TOO_LONG:
        return None
    output = any(word in trouble.words for word in _OUTPUT)
    room = _ROOM.search(trouble.words) if output else None
    if room and request.max_tokens >= int(room[1]):  # then no prompt would fit
        return ModelNotFound(
            f"{service.name} has a context of {int(room[1]):,} tokens at {service.where}, and "
            f"max_tokens is {request.max_tokens:,}. Lower max_tokens."
        )
    return ContextTooLong(f"the prompt is too long for {service.name}: {trouble.message}.")


def _of_policy(trouble: _Trouble, service: Service) -> ModelError | None:
    named = trouble.kind in ("ContentPolicyViolationError", "RejectedRequestError")
    if not named and trouble.meaning is not Meaning.NOT_ANSWERED:
        return None
    return RequestRefused(f"{service.where} refuses to answer: {trouble.message}.")


def _is_composed(request: ModelRequest) -> bool:
    """Whether a request has more than a prompt, in a form that a service may refuse."""
    return bool(request.messages or request.stop or request.choices)


def _of_status(trouble: _Trouble, service: Service, composed: bool) -> ModelError:
    where, why, status = service.where, trouble.message, trouble.status
    if trouble.headers is None and status in (0, 422, 500):
        return ModelReplyError(f"{where} sent a reply that cannot be read: {why}.")
    if status in WAIT_STATUSES or status >= 500:
        after = _retry_after(trouble.headers)
        return ModelUnavailable(f"{where} answered {status}: {why}.", retry_after=after)
    named = trouble.parameter.startswith(("messages", "prompt", "stop"))
    if named or (composed and status in (400, 422)):
        return RequestRefused(f"{where} refuses the request: {why}.")
    if status == 404:
        return ModelNotFound(
            f"{where} does not know the model {service.name!r}: {why}. Check the name of the "
            "model and its address, which usually ends in /v1."
        )
    return ModelNotFound(
        f"{where} refuses the settings of {service.name}: {why}. Check the name of the model and "
        "its settings."
    )


def late(service: Service) -> ModelUnavailable:
    """The error if an answer is not complete in time."""
    return ModelUnavailable(f"{service.where} did not answer within {service.timeout:g} s.")


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _is_lost(error: BaseException) -> bool:
    return any(base.__name__ in _LOST for base in type(error).__mro__)


def _retry_after(headers: Any | None) -> float | None:
    """Seconds, from a header with seconds or a date; None without one."""
    given = None if headers is None else headers.get("retry-after")
    if not given or not isinstance(given, str | int | float):
        return None
    try:
        return max(0.0, float(given))
    except (ValueError, OverflowError):
        pass
    try:
        date = parsedate_to_datetime(str(given))
        return max(0.0, (date - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return None
