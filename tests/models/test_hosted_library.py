"""LiteLLM is loaded late, stays quiet, and leaves nothing open."""

import asyncio
import gc
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from coevolve.errors import ConfigError
from coevolve.models.hosted import HostedProvider
from coevolve.models.hosted_service import load
from coevolve.models.model_errors import ModelKeyError, ModelUnavailable
from tests.effort import effort
from tests.models.endpoint import Act, Endpoint, refuses, says
from tests.models.hosting import KEY, asked, provider, request

ROOT = Path(__file__).parents[2]
DEV = effort((), ("-X", "dev"))
"""Importing LiteLLM takes seconds longer in the development mode."""
ANTHROPIC = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5",
    "content": [{"type": "text", "text": "yes"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 9, "output_tokens": 1},
}


def _python(code: str, *arguments: str, cwd: Path = ROOT, **variables: str) -> str:
    """What a fresh interpreter prints; any warning is an error there."""
    done = subprocess.run(
        [sys.executable, *DEV, "-W", "error", "-c", textwrap.dedent(code), *arguments],
        cwd=cwd,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}", **variables},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    noise = "\n".join(line for line in done.stderr.splitlines() if not _is_slow(line))
    assert (done.returncode, noise) == (0, "")
    return done.stdout


def _is_slow(line: str) -> bool:
    return line.startswith("Executing <")  # asyncio in dev mode, on a busy machine


def test_litellm_is_not_imported_before_it_is_needed() -> None:
    code = """
    import sys
    from coevolve.models.hosted import HostedProvider
    HostedProvider("served", base_url="http://localhost:1/v1", key="k").identity
    print("litellm" in sys.modules)
    """
    assert _python(code) == "False\n"


def test_absent_litellm_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "litellm", None)
    with pytest.raises(ConfigError, match=r"pip install 'task-coevolve\[llm\]'"):
        load()


def test_nothing_is_printed_read_or_left_open(tmp_path: Path) -> None:
    pytest.importorskip("litellm", reason="needs LiteLLM, of the extra llm")
    (tmp_path / ".env").write_text("FROM_A_FILE=1\n")
    code = """
    import asyncio, gc, os, sys
    from coevolve.models.model_errors import ModelError
    from coevolve.models.hosted import HostedProvider
    from coevolve.models.provider import ModelRequest

    async def ask(host):
        for _ in range(4):
            try:
                await host.complete(ModelRequest(prompt="Hello", max_tokens=5))
            except ModelError:
                pass
        await host.close()
        print(len(asyncio.all_tasks()))

    asyncio.run(ask(HostedProvider("served", base_url=sys.argv[1], key="k", timeout=20)))
    asyncio.run(ask(HostedProvider("anthropic/claude-sonnet-4-5", key="k", timeout=20)))
    gc.collect()
    print("FROM_A_FILE" in os.environ)
    """
    wrong = [Act(body={"choices": 5}), refuses(401), refuses(500)]
    with Endpoint([*wrong, says("yes"), *wrong, Act(body=ANTHROPIC)]) as endpoint:
        base = endpoint.base_url.removesuffix("/v1")
        printed = _python(code, endpoint.base_url, cwd=tmp_path, ANTHROPIC_API_BASE=base)
        assert len(endpoint.seen) == 8
    assert printed == "1\n1\nFalse\n"


def test_every_event_loop_gets_connections_of_its_own() -> None:
    with Endpoint() as endpoint:
        for _ in range(3):
            assert asked(provider(endpoint), request())[0].text == "ok"
            gc.collect()


def test_provider_continues_when_another_in_its_loop_is_closed() -> None:
    with Endpoint() as endpoint:

        async def both() -> None:
            one, two = provider(endpoint), provider(endpoint)
            await asyncio.gather(one.complete(request()), two.complete(request()))
            await one.close()
            assert (await two.complete(request())).text == "ok"
            await two.close()

        asyncio.run(both())


def test_provider_that_was_never_asked_has_nothing_to_close() -> None:
    asyncio.run(HostedProvider("served", base_url="http://localhost:1/v1").close())


def test_services_of_other_makers_are_reached_and_closed_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("litellm", reason="needs LiteLLM, of the extra llm")
    script = [Act(body=ANTHROPIC), refuses(429, retry_after=3), refuses(401, f"bad: {KEY}")]
    with Endpoint(script) as endpoint:
        monkeypatch.setenv("ANTHROPIC_API_BASE", endpoint.base_url.removesuffix("/v1"))
        name = "anthropic/claude-sonnet-4-5"
        [reply] = asked(HostedProvider(name, key=KEY), request(stop=("\n",), sample=2))
        assert (reply.text, reply.tokens_in, reply.tokens_out) == ("yes", 9, 1)
        with pytest.raises(ModelUnavailable) as limited:
            asked(HostedProvider(name, key=KEY), request())
        assert limited.value.retry_after == 3
        with pytest.raises(ModelKeyError) as refused:
            asked(HostedProvider(name, key=KEY), request())
        assert KEY not in str(refused.value)
    assert [seen.headers["x-api-key"] for seen in endpoint.seen] == [KEY] * 3
    assert endpoint.seen[0].body["stop_sequences"] == ["\n"]
