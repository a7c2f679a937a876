"""Models of services, and of servers of one's own, through LiteLLM."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from coevolve.models.hosted_replies import asking, chosen, read, schema, understood, until
from coevolve.models.hosted_service import Service, close, load
from coevolve.models.model_errors import ModelError, ModelNotFound, RequestRefused
from coevolve.models.provider import JSON, ModelReply, ModelRequest


def arguments(
    library: Any, service: Service, name: str, request: ModelRequest, *, strict: bool
) -> dict[str, Any]:
    """The arguments of a call by one of the names of a service."""
    turns = request.conversation()
    asked = asking(turns, request.choices) if request.choices else turns
    settings = _settings(library, name, request, own=service.base_url is not None)
    if strict and request.choices and (form := schema(request.choices)):
        settings["response_format"] = form
    if service.base_url is not None:  # LiteLLM's table knows nothing of it: the server decides
        settings["allowed_openai_params"] = list(settings)
    return {
        "model": name,
        "messages": [turn._asdict() for turn in asked],
        "api_key": service.credential,
        "base_url": service.base_url,
        "timeout": service.timeout,
        "num_retries": 0,  # the gateway asks again
        "max_retries": 0,
        "drop_params": False,
        **settings,
    }


def _settings(library: Any, name: str, request: ModelRequest, *, own: bool) -> dict[str, Any]:
    takes = ("stop", "seed") if own else _takes(library, name)
    settings: dict[str, Any] = {"max_tokens": request.max_tokens}
    if request.temperature is not None:
        settings["temperature"] = request.temperature
    if request.reasoning_effort is not None:
        settings["reasoning_effort"] = request.reasoning_effort
    if request.stop and "stop" in takes:
        settings["stop"] = list(request.stop)
    if "seed" in takes:
        settings["seed"] = request.sample
    return settings


def _takes(library: Any, name: str) -> Sequence[str]:
    """The parameters that LiteLLM knows a hosted model to take."""
    try:
        bare, provider, *_ = library.get_llm_provider(name)
    except library.BadRequestError:  # the call itself will say what is wrong with the name
        return ()
    return library.get_supported_openai_params(bare, custom_llm_provider=provider) or ()


_OPEN = ("temperature", "max_tokens")
"""The settings that a harness may set as well as the configuration."""


class HostedProvider:
    """A model that LiteLLM reaches: a hosted one by its name, or any OpenAI-compatible server.

    With `base_url` the name is what the server calls the model; an `openai/` before it is tried
    as part of the name first (it is one, for gpt-oss), then without. Without `base_url` the name
    is LiteLLM's, such as `openrouter/openai/gpt-oss-120b`.

    What the model thinks before it answers is no part of the answer. `sample` is sent as the seed,
    and `stop`, where the model takes them; the answer ends before a stop in any case. Everything
    else that a model does not take, such as a temperature or a `reasoning_effort`, is an error
    and never left out: a run must not differ from its configuration.

    Choices are listed at the end of the prompt. Where the endpoint is known to obey a JSON schema
    it cannot answer anything else; elsewhere the reply is matched to the choices, and returned as
    it is if it means none or several. Servers of one's own are not known to obey: many ignore a
    schema, or obey it by halves, so `strict_choices` says whether yours does.

    Args:
        name: The model.
        base_url: The address of an OpenAI-compatible server, up to `/v1`.
        key: The key itself; nothing shows it.
        key_variable: The name of the environment variable it came from, for messages.
        timeout: Seconds to wait for a sign of the service.
        window: Tokens that fit into the model; LiteLLM's table knows those of hosted models.
        strict_choices: Whether the endpoint obeys a JSON schema; None asks LiteLLM's table.

    >>> HostedProvider("served", base_url="http://localhost:8000/v1", key="sk-1")
    HostedProvider('served', base_url='http://localhost:8000/v1')
    """

    gives_scores = False

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        key: str = "",
        key_variable: str = "",
        timeout: float = 600.0,
        window: int | None = None,
        strict_choices: bool | None = None,
    ) -> None:
        self._service = Service(
            name=name, base_url=base_url, key=key, variable=key_variable, timeout=timeout
        )
        self._names = self._service.names
        self._window, self._strict = window, strict_choices
        self._taken: dict[str, set[object]] = {setting: set() for setting in _OPEN}
        self._library: Any = None

    def __repr__(self) -> str:
        return f"HostedProvider({self._service.name!r}, base_url={self._service.base_url!r})"

    @property
    def identity(self) -> Mapping[str, JSON]:
        """The model, and where it is served."""
        strict = {} if self._strict is None else {"strict_choices": self._strict}
        return {"name": self._service.name, "host": self._service.host, **strict}

    @property
    def window(self) -> int | None:
        """What was given, or what LiteLLM's table says of a hosted model."""
        if self._window is None and self._service.base_url is None:
            table, name = load().model_cost, self._service.name
            row = table.get(name) or table.get(name.partition("/")[2]) or {}
            self._window = row.get("max_input_tokens")
        return self._window

    async def complete(self, request: ModelRequest, /) -> ModelReply:
        """The answer to a request."""
        if request.scores:
            raise RequestRefused(
                f"{self._service.name} gives no scores: services do not tell how likely an answer "
                "is that they did not give. Ask for one of the choices instead."
            )
        outcome = await self._tried(await self._loaded(), request)
        if isinstance(outcome, ModelError):
            raise outcome  # here, where nothing in sight holds the key
        for setting, values in self._taken.items():
            values.add(getattr(request, setting))
        return await self._counted(outcome, request)

    async def count(self, texts: Sequence[str], /) -> list[int]:
        """Tokens of each text, by the tokenizer LiteLLM has for the model; often an estimate."""
        library, name = await self._loaded(), self._service.name

        def counts() -> list[int]:
            return [library.token_counter(model=name, text=text) for text in texts]

        return await asyncio.to_thread(counts)

    async def close(self) -> None:
        """Close the connections."""
        if self._library is not None:
            await close(self._library)

    async def _loaded(self) -> Any:
        if self._library is None:  # in a thread, since it takes seconds
            self._library = await asyncio.to_thread(load)
        return self._library

    async def _tried(self, library: Any, request: ModelRequest) -> ModelReply | ModelError:
        """The answer by the first name that the service knows; from then on by that name."""
        *likely, last = self._names
        for name in likely:
            outcome = await self._attempt(library, name, request)
            if isinstance(outcome, ModelReply):
                self._names = (name,)
            if not isinstance(outcome, ModelNotFound):
                return outcome
        return await self._attempt(library, last, request)

    async def _attempt(
        self, library: Any, name: str, request: ModelRequest
    ) -> ModelReply | ModelError:
        strict = self._strict
        if strict is None:
            hosted = self._service.base_url is None
            strict = hosted and bool(library.supports_response_schema(name))
        try:
            answer = await library.acompletion(
                **arguments(library, self._service, name, request, strict=strict)
            )
            reply = read(answer, self._service.where)
        except ModelError as error:
            return error
        except Exception as error:
            proven = any(self._taken.values())
            return self._blamed(understood(error, self._service, request, proven=proven), request)
        text = until(reply.text, request.stop)
        return replace(reply, text=chosen(text, request.choices) if request.choices else text)

    def _blamed(self, error: ModelError, request: ModelRequest) -> ModelError:
        """The error, unless a harness set what is refused: other values have been taken."""
        for setting, values in self._taken.items():
            others = values - {getattr(request, setting)}
            if isinstance(error, ModelNotFound) and setting in str(error) and others:
                return RequestRefused(str(error))
        return error

    async def _counted(self, reply: ModelReply, request: ModelRequest) -> ModelReply:
        """The reply with tokens, by our own count where the service does not tell."""
        if reply.tokens_in:
            return reply
        *asked, said = await self.count([*request.texts(), reply.text])
        return replace(reply, tokens_in=sum(asked), tokens_out=reply.tokens_out or said)
