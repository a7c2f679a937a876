"""An LLM proposer whose model is an endpoint on loopback, through the real gateway."""

import asyncio
import json
from collections.abc import Coroutine, Iterable
from typing import Any

from coevolve.models.gateway import Gateway
from coevolve.models.provider import Sampling
from coevolve.models.rate_limits import Retrying
from coevolve.proposers.base import Broken, Proposal, Proposed, View
from coevolve.proposers.llm import LLMProposer
from coevolve.testing import propose_once
from tests.models.endpoint import Act, Endpoint
from tests.models.fakes import FakeTime
from tests.models.hosting import provider

NEW = "def answer(model, question):\n    return model(question, stop=['.'])\n"
OLD_LINE = '    prompt = f"Question: {question}"'


def candidate(body: str, **said: Any) -> str:
    """A candidate in the documented format."""
    told = {"name": "new", "parent": "plain", "kind": "exploit", "hypothesis": "Stops.", **said}
    return f"## Candidate\n\n```json\n{json.dumps(told)}\n```\n\n{body}\n\n"


def whole(source: str = NEW, path: str = "harness.py", **said: Any) -> str:
    """A candidate with one whole file."""
    return candidate(f"````python path={path}\n{source}````", **said)


def edit(search: str, replace: str, **said: Any) -> str:
    """A candidate that is an edit of its parent."""
    marks = f"<<<<<<< SEARCH\n{search}\n=======\n{replace}\n>>>>>>> REPLACE"
    return candidate(f"````edit path=harness.py\n{marks}\n````", **said)


def proposed(
    view: View, script: Iterable[Act], *, count: int = 1, **given: Any
) -> tuple[Proposed, Endpoint]:
    """What comes of one proposal."""
    return _done(lambda p: propose_once(p, view, count), script, **given)


def repaired(
    view: View, proposal: Proposal, error: str, script: Iterable[Act]
) -> tuple[Proposed, Endpoint]:
    """What comes of one repair."""
    return _done(lambda p: p.repair(view, Broken(proposal=proposal, error=error)), script)


def texts(made: Proposed) -> list[str]:
    """The main files of what was proposed."""
    return [proposal.files["harness.py"].decode() for proposal in made.proposals]


def _done(
    work: Any, script: Iterable[Act], *, window: int | None = None, **given: Any
) -> tuple[Proposed, Endpoint]:
    with Endpoint(script, answer=lambda _: "no more") as endpoint:

        async def ask() -> Proposed:
            gateway = Gateway(
                provider(endpoint, window=window),
                sampling=Sampling(max_tokens=4_000),
                retrying=Retrying(attempts=2, sleep=FakeTime().sleep),
            )
            try:
                doing: Coroutine[Any, Any, Proposed] = work(LLMProposer(gateway, **given))
                return await doing
            finally:
                await gateway.close()

        return asyncio.run(ask()), endpoint
