"""A request as LiteLLM's `acompletion` takes it."""

from collections.abc import Sequence
from typing import Any

from coevolve.models.hosted_choices import asking, schema
from coevolve.models.hosted_service import Service
from coevolve.models.request import ModelRequest


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
