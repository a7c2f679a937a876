"""From `[proposer]` to who writes candidates."""

import json
from pathlib import Path
from typing import Any

import pytest

from coevolve.errors import ConfigError
from coevolve.proposers.best_of_n import BestOfN
from coevolve.proposers.command import CommandProposer
from coevolve.proposers.command.agent_settings import AgentSettings
from coevolve.proposers.llm import LLMProposer
from coevolve.proposers.offline import OfflineProposer
from coevolve.runs import RunConfig, build_proposer
from coevolve.runs.building import build_benchmark, build_rules, priced
from coevolve.runs.session import create_run, read_state
from tests.cli.projects import write_doubling

TEXTCLASS = {"benchmark": {"kind": "textclass"}, "model": {"name": "embedded"}}
OWN = """
class Mine:
    def __init__(self, word="x"):
        self.word = word

    async def propose(self, view, count):
        return []


def nothing():
    return 3
"""


def config(proposer: dict[str, Any], folder: Any = None, **tables: Any) -> RunConfig:
    given = {"benchmark": {"kind": "synthetic"}, **tables}
    data = {"search": {"rounds": 2}, "proposer": proposer, **given}
    return RunConfig.from_json(data, folder=folder)


class TestBuilding:
    def test_one_line_names_each_kind(self, tmp_path: Path) -> None:
        offline = config({"kind": "offline"}, **TEXTCLASS)
        assert isinstance(build_proposer(offline, tmp_path), OfflineProposer)
        llm = config({"kind": "llm", "model": {"name": "embedded"}})
        assert isinstance(build_proposer(llm, tmp_path), LLMProposer)
        agent = config({"kind": "command", "agent": "codex"})
        made = build_proposer(agent, tmp_path)
        assert isinstance(made, CommandProposer)
        assert made.name == "codex"

    def test_a_model_that_no_service_has_is_refused_before_there_is_a_run(
        self, tmp_path: Path
    ) -> None:
        llm = config({"kind": "llm", "model": {"name": "gtp-5"}})
        with pytest.raises(ConfigError, match="LiteLLM has no service for 'gtp-5'"):
            build_proposer(llm, tmp_path)

    def test_any_of_them_can_be_the_control(self, tmp_path: Path) -> None:
        control = config({"kind": "offline", "best_of_n": True}, **TEXTCLASS)
        assert isinstance(build_proposer(control, tmp_path), BestOfN)

    def test_a_factory_of_ones_own(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("sys.path", [*__import__("sys").path])
        (tmp_path / "own_proposer_of_test.py").write_text(OWN)
        kind = "own_proposer_of_test:Mine"
        table = {"kind": kind, "arguments": {"word": "y"}}
        made = build_proposer(config(table, tmp_path), tmp_path)
        assert made.word == "y"  # type: ignore[attr-defined]
        with pytest.raises(ConfigError, match="of type int, which has no propose"):
            build_proposer(config({"kind": "own_proposer_of_test:nothing"}, tmp_path), tmp_path)
        table = {"kind": kind, "arguments": {"wrod": "y"}}
        with pytest.raises(ConfigError, match=r"cannot be built: .*wrod"):
            build_proposer(config(table, tmp_path), tmp_path)

    def test_a_key_of_the_model_that_is_not_set_is_named(self, tmp_path: Path) -> None:
        model = {"name": "openai/gpt-x", "key": "NO_SUCH_KEY"}
        with pytest.raises(ConfigError, match=r"'proposer\.model\.key' names .*'NO_SUCH_KEY'"):
            build_proposer(config({"kind": "llm", "model": model}), tmp_path)

    def test_an_agent_that_is_not_here_costs_no_phase_0(self, tmp_path: Path) -> None:
        file = write_doubling(tmp_path)
        given = '[proposer]\nkind = "function"\nfile = "propose.py"\n'
        agent = '[proposer]\nkind = "command"\nagent = "codex"\nprogram = "no-such-codex"\n'
        file.write_text(file.read_text().replace(given, agent))
        with pytest.raises(ConfigError, match="no-such-codex"):
            create_run(file)
        assert not (tmp_path / "runs").exists()

    def test_agents_have_a_minute_to_be_stopped_in(self) -> None:
        assert config({"kind": "command", "agent": "codex"}).proposer.patience == 2460
        assert config({"kind": "llm", "model": {"name": "embedded"}}).proposer.patience == 3600


@pytest.mark.parametrize(
    ("proposer", "message"),
    [
        ({"kind": "offline"}, "needs building blocks, but benchmark.kind 'synthetic' has none"),
        ({"kind": "command"}, "set either agent to one of claude-code, codex"),
        ({"kind": "command", "agent": "codex", "command": ["x"]}, "set either agent"),
        ({"kind": "command", "agent": "claude"}, "Did you mean 'claude-code'?"),
        ({"kind": "command", "command": ["x"], "effort": "high"}, "effort has no effect with"),
        ({"kind": "command", "agent": "codex", "home": [".x"]}, "home has no effect with agent"),
        ({"kind": "command", "agent": "codex", "keys": ["sk-abc"]}, "not the key itself"),
        ({"kind": "llm", "model": {"name": "embedded", "trial_calls": 3}}, "which has no trials"),
        ({"kind": "llm", "model": {"nam": "embedded"}}, "Did you mean 'proposer.model.name'?"),
        ({"kind": "llm"}, "'proposer.model' is missing"),
    ],
)
def test_what_cannot_be_is_said(proposer: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config(proposer)
    assert message in str(caught.value)


def test_refusing_leaks_needs_a_benchmark_that_says_what_it_asks(tmp_path: Path) -> None:
    file = write_doubling(tmp_path)
    file.write_text(file.read_text().replace("rounds = 3", 'rounds = 3\nleaks = "refuse"'))
    with pytest.raises(ConfigError, match=r"search\.leaks = 'refuse' has no effect"):
        create_run(file)
    assert not (tmp_path / "runs").exists()


class TestRules:
    def rules(self, leaks: str) -> Any:
        made = RunConfig.from_json(
            {
                "search": {"rounds": 2, "leaks": leaks},
                "proposer": {"kind": "offline"},
                **TEXTCLASS,
            }
        )
        return build_rules(made, build_benchmark(made, Path()), None)

    def question(self) -> str:
        from coevolve.benchmarks.textclass import TextClassification

        secrets = TextClassification(("service-desk",)).secrets()
        return next(iter(secrets.values())).text

    def test_a_candidate_that_quotes_a_task_is_found(self) -> None:
        rules = self.rules("report")
        source = f"KNOWN = {{{json.dumps(self.question())}: 'label'}}"
        (leak,) = rules.leaks({"harness.py": source.encode()})
        assert "harness.py" in leak
        assert self.question() not in leak
        assert rules.refusal([leak]) == ""
        assert "it must not know" in self.rules("refuse").refusal([leak])

    def test_the_briefing_says_what_a_harness_is(self) -> None:
        briefing = self.rules("report").briefing
        assert "learn" in briefing
        assert "predict" in briefing


def test_a_run_records_that_its_proposer_mends(tmp_path: Path) -> None:
    file = write_doubling(tmp_path)
    assert read_state(create_run(file)).settings.repair is False
    given = '[proposer]\nkind = "function"\nfile = "propose.py"\n'
    model = '[proposer]\nkind = "llm"\n[proposer.model]\nname = "embedded"\n'
    other = tmp_path / "other.toml"
    other.write_text(file.read_text().replace(given, model).replace("doubling", "other"))
    assert read_state(create_run(other)).settings.repair is True


MODEL = {"name": "openai/gpt-4o", "base_url": "http://127.0.0.1:9/v1"}


class TestMoney:
    def build(self, model: dict[str, Any], tmp_path: Path) -> Any:
        made = config({"kind": "llm", "model": model}, budget={"dollars": 1.0})
        return build_proposer(made, tmp_path)

    def test_prices_that_are_known_are_taken(self, tmp_path: Path) -> None:
        made = config({"kind": "llm", "model": MODEL}, budget={"dollars": 1.0})
        table = priced(made).to_json()["proposer"]["model"]
        assert table["price_in"] > 0
        self.build(MODEL, tmp_path)

    def test_a_cap_of_dollars_needs_prices(self, tmp_path: Path) -> None:
        unknown = {**MODEL, "name": "openai/no-such-model"}
        with pytest.raises(ConfigError, match=r"price_in and price_out in \[proposer\.model\]"):
            self.build(unknown, tmp_path)
        self.build({**unknown, "price_in": 1.0, "price_out": 1.0}, tmp_path)


def test_the_path_of_an_agent_starts_from_the_project(tmp_path: Path) -> None:
    made = config({"kind": "command", "command": ["./tools/agent", "{prompt}"]}).proposer
    assert isinstance(made, AgentSettings)
    assert made.preset(tmp_path).program == str(tmp_path / "tools/agent")
    named = config({"kind": "command", "command": ["agent"]}).proposer
    assert isinstance(named, AgentSettings)
    assert named.preset(tmp_path).program == "agent"


def test_a_path_to_an_agent_may_start_from_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    made = AgentSettings(kind="command", command=("~/bin/agent",))
    assert made.preset(tmp_path).program == str(tmp_path / "home/bin/agent")
