"""What an agent in the sandbox can and cannot do in a trial."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from coevolve.search.trials import Blame
from tests.benchmarks.harbor.trials import (
    ENVIRONMENT,
    SOLVE,
    Bench,
    FakeModel,
    agent,
    needs_trials,
    write_task,
)

OWN_CALL = pytest.mark.filterwarnings("ignore:Task.checksum will be deprecated")  # Harbor calls it
pytestmark = [needs_trials, OWN_CALL]


@pytest.fixture
def bench(tmp_path: Path, environment_cache: Path) -> Bench:
    write_task(tmp_path / "tasks" / "one")
    return Bench(tmp_path)


def said(tried: Any) -> str:
    """What the agent noted in its answer file."""
    return "\n".join(path.read_text() for path in sorted(tried.folder.glob("*/agent/notes.json")))


NOTE = "(self.logs_dir / 'notes.json').write_text(json.dumps({}))"


def test_work_in_the_environment_is_scored_by_its_tests(bench: Bench) -> None:
    assert bench.tried(agent(SOLVE)).score == 1.0
    assert bench.tried(agent("pass")).score == 0.0


def test_the_model_of_the_run_answers(bench: Bench) -> None:
    bench.model = FakeModel(lambda messages: {"text": "done"})
    bench.benchmark._client = bench.model  # type: ignore[assignment]
    tried = bench.tried(
        agent(
            """
import litellm
reply = await litellm.acompletion(model="any", messages=[{"role": "user", "content": instruction}])
text = reply.choices[0].message.content
await environment.exec(f"echo {text} > /app/answer.txt")
"""
        )
    )
    assert tried.score == 1.0
    (request,) = bench.model.requests
    assert request["messages"][0]["content"] == "Write done into /app/answer.txt."
    assert tried.trace["model_calls"] == 1


def test_tools_and_their_calls_pass(bench: Bench) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "go", "arguments": '{"a": 1}'}}
    bench.model = FakeModel(lambda messages: {"finish": "tool_calls", "tool_calls": [call]})
    bench.benchmark._client = bench.model  # type: ignore[assignment]
    tried = bench.tried(
        agent(
            """
import litellm
tool = {"type": "function", "function": {"name": "go", "parameters": {"type": "object"}}}
reply = await litellm.acompletion(
    model="any", messages=[{"role": "user", "content": "x"}], tools=[tool], tool_choice="auto"
)
made = reply.choices[0].message.tool_calls[0].function
assert (made.name, json.loads(made.arguments)) == ("go", {"a": 1})
"""
            + SOLVE
        )
    )
    assert tried.score == 1.0, tried
    assert bench.model.requests[0]["tools"][0]["function"]["name"] == "go"


def test_a_prompt_that_is_too_long_can_be_shortened_by_the_agent(bench: Bench) -> None:
    bench.model = FakeModel(lambda messages: {"overflow": True, "reason": "too long"})
    bench.benchmark._client = bench.model  # type: ignore[assignment]
    tried = bench.tried(
        agent(
            """
import litellm
try:
    await litellm.acompletion(model="any", messages=[{"role": "user", "content": "x"}])
except litellm.ContextWindowExceededError:
"""
            + "    "
            + SOLVE
        )
    )
    assert tried.score == 1.0, tried


def test_commands_run_at_the_same_time(bench: Bench) -> None:
    tried = bench.tried(
        agent(
            """
each = "mkdir -p /tmp/m && touch /tmp/m/{0} && for i in $(seq 200); do " \\
    "[ -e /tmp/m/{1} ] && exit 0; sleep 0.05; done; exit 1"
both = await asyncio.gather(
    environment.exec(each.format("a", "b")), environment.exec(each.format("b", "a"))
)
assert [one.return_code for one in both] == [0, 0], both
"""
            + SOLVE
        )
    )
    assert tried.score == 1.0, tried


def test_a_command_that_is_given_up_does_not_hold_up_the_next(bench: Bench) -> None:
    tried = bench.tried(
        agent(
            """
try:
    await asyncio.wait_for(environment.exec("sleep 1000"), 0.5)
except asyncio.TimeoutError:
"""
            + "    "
            + SOLVE
        )
    )
    assert tried.score == 1.0, tried


def test_time_is_up_and_the_work_so_far_counts(tmp_path: Path, environment_cache: Path) -> None:
    short = "[agent]\ntimeout_sec = 6.0\n[verifier]\ntimeout_sec = 30.0\n"
    write_task(tmp_path / "tasks" / "one", **{"task.toml": short})
    tried = Bench(tmp_path).tried(agent(SOLVE + "\nwhile True: pass"))
    assert (tried.score, tried.trace["ended"]) == (1.0, "AgentTimeoutError")


@pytest.mark.parametrize(
    "body", ["raise ValueError('broken')", "os._exit(3)", "bytearray(8 << 30)"]
)
def test_an_agent_that_fails_is_at_fault_and_its_work_counts(bench: Bench, body: str) -> None:
    tried = bench.tried(agent(SOLVE + "\n" + body))
    assert (tried.score, tried.trace["ended"]) == (1.0, "NonZeroAgentExitCodeError")
    assert bench.tried(agent(body)).score == 0.0


def test_a_forged_reward_does_not_count_and_is_flagged(bench: Bench) -> None:
    tried = bench.tried(
        agent(
            """
await environment.exec("mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt")
await environment.exec(
    "setsid nohup sh -c 'while true; do echo 1 > /logs/verifier/reward.txt; done' "
    ">/dev/null 2>&1 &"
)
await environment.exec("echo '{\\"reward\\": 1}' > /logs/verifier/reward.json")
"""
        )
    )
    assert tried.score == 0.0
    assert tried.trace["suspicious"] == 3
    assert "reward.txt" in tried.trace["suspicious_commands"][0]


def test_a_forged_reward_that_cannot_be_removed_scores_0(bench: Bench) -> None:
    forged = (
        "for name in rm find; do printf '#!/bin/sh\\n' > /usr/local/bin/$name; "
        "chmod 755 /usr/local/bin/$name; done; mkdir -p /logs/verifier; "
        "echo '{\"reward\": 1}' > /logs/verifier/reward.json"
    )
    tried = bench.tried(agent(f"await environment.exec({forged!r})"))
    assert tried.fault is not None
    assert (tried.fault.blame, tried.fault.kind) == (Blame.CANDIDATE, "VerifierOutputParseError")


def test_a_service_that_the_task_asks_for_runs_on(tmp_path: Path, environment_cache: Path) -> None:
    alive = (
        "#!/bin/bash\n[ -e /proc/$(cat /app/pid) ]; echo $((1 - $?)) > /logs/verifier/reward.txt\n"
    )
    for name in ("web", "other"):
        write_task(tmp_path / "tasks" / name, **{"tests/test.sh": alive})
    start = "await environment.exec('setsid sleep 300 >/dev/null 2>&1 & echo $! > /app/pid')"
    bench = Bench(tmp_path, services=["w*"])
    assert bench.tried(agent(start), "web").score == 1.0
    assert bench.tried(agent(start), "other").score == 0.0


def test_tests_planted_by_the_agent_are_not_run(bench: Bench) -> None:
    tried = bench.tried(
        agent(
            """
await environment.exec("mkdir -p /tests && ln -s /tmp /tests/link")
await environment.exec("rm -rf /logs/verifier; ln -s /tmp /logs/verifier")
await environment.exec("echo 1 > /tmp/reward.txt")
"""
        )
    )
    assert tried.score == 0.0


def test_tests_with_an_environment_of_their_own_stay_in_it(
    tmp_path: Path, environment_cache: Path
) -> None:
    separate = (
        'artifacts = ["/app/answer.txt"]\n[agent]\ntimeout_sec = 60.0\n'
        '[verifier]\ntimeout_sec = 60.0\nenvironment_mode = "separate"\n'
    )
    own = "FROM debian:bookworm-slim\nRUN mkdir -p /app /tests; touch /tests/built\n"
    test = (
        "#!/bin/bash\n[ -e /tests/built ] && grep -qx done /app/answer.txt && found=1\n"
        "echo ${found:-0} > /logs/verifier/reward.txt\n"
    )
    files = {"task.toml": separate, "tests/Dockerfile": own, "tests/test.sh": test}
    write_task(tmp_path / "tasks" / "one", **files)
    bench = Bench(tmp_path)
    assert bench.tried(agent(SOLVE)).score == 1.0
    assert bench.tried(agent("pass")).score == 0.0


def test_the_agent_sees_no_key_no_network_no_host_and_no_tests(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-the-operator")
    secret = tmp_path / "secret.txt"
    secret.write_text("only for the operator")
    tried = bench.tried(
        agent(
            f"""
import socket
found = {{}}
found["environ"] = "secret" in str(dict(os.environ))
found["file"] = os.path.exists({str(secret)!r})
found["task"] = os.path.exists({str(tmp_path / "tasks")!r})
found["docker"] = os.path.exists("/var/run/docker.sock")
try:
    socket.create_connection(("127.0.0.1", 22), 1)
    found["network"] = True
except OSError as error:
    found["network"] = not ("unreachable" in str(error) or "refused" in str(error))
inside = await environment.exec("env; cat {secret}; ls /tests; cat /proc/1/environ")
found["inside"] = "secret-of" in inside.stdout or "only for" in inside.stdout
found["tests"] = "test.sh" in inside.stdout
"""
            + NOTE.format("found")
        )
    )
    noted = json.loads(said(tried))
    assert not any(noted.values()), noted


def test_a_link_in_the_environment_does_not_lead_out_of_it(bench: Bench, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("only for the operator")
    tried = bench.tried(
        agent(
            f"""
await environment.exec("ln -s {secret} /app/link")
try:
    await environment.download_file("/app/link", "/tmp/got")
    got = open("/tmp/got").read()
except Exception as error:
    got = "refused"
"""
            + NOTE.format("got")
        )
    )
    assert json.loads(said(tried)) == "refused"
    assert "only for the operator" not in "".join(
        path.read_text(errors="replace")
        for path in tried.folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    )


def test_output_without_end_is_cut(bench: Bench) -> None:
    tried = bench.tried(
        agent(
            """
done = await environment.exec("head -c 40000000 /dev/zero | tr '\\\\0' 'x'; echo end")
assert len(done.stdout) < 1_100_000, len(done.stdout)
"""
            + SOLVE
        )
    )
    assert tried.score == 1.0, tried


def test_an_error_that_the_agent_provokes_is_its_own(bench: Bench) -> None:
    tried = bench.tried(
        agent(
            """
try:
    await environment.exec("true " + "x" * 900_000)
    await environment.exec("x" * 2_000_000)
    raise AssertionError("a command of 2 MB was run")
except (RuntimeError, OSError):
"""
            + "    "
            + SOLVE
        )
    )
    assert tried.score == 1.0, tried


def test_a_verifier_that_hangs_on_what_the_agent_left_scores_0(
    tmp_path: Path, environment_cache: Path
) -> None:
    seconds = 20 if ENVIRONMENT == "docker" else 5  # each command in Docker takes some time
    toml = f"[agent]\ntimeout_sec = 60.0\n[verifier]\ntimeout_sec = {seconds}.0\n"
    script = "#!/bin/bash\n[ -e /app/hang ] && sleep 1000\necho 1 > /logs/verifier/reward.txt\n"
    write_task(tmp_path / "tasks" / "one", **{"task.toml": toml, "tests/test.sh": script})
    bench = Bench(tmp_path)
    assert bench.tried(agent("pass")).score == 1.0
    tried = bench.tried(agent("await environment.exec('touch /app/hang')"))
    assert tried.fault is not None
    assert (tried.fault.blame, tried.fault.kind) == (Blame.CANDIDATE, "VerifierTimeoutError")


def test_a_setup_that_hangs_is_the_agents_fault(tmp_path: Path, environment_cache: Path) -> None:
    write_task(tmp_path / "tasks" / "one")
    bench = Bench(tmp_path, setup_timeout_multiplier=8 / 360)
    tried = bench.tried(agent("pass", setup="await asyncio.sleep(1000)"))
    assert tried.fault is not None
    assert (tried.fault.blame, tried.fault.kind) == (Blame.CANDIDATE, "AgentSetupTimeoutError")


def test_a_model_that_does_not_answer_is_not_the_agents_fault(bench: Bench) -> None:
    from coevolve.executors.failures import InfrastructureError

    def broken(messages: object) -> dict[str, Any]:
        raise InfrastructureError("the service is down", shared=True)

    bench.model = FakeModel(broken)
    bench.benchmark._client = bench.model  # type: ignore[assignment]
    tried = bench.tried(
        agent(
            """
import litellm
try:
    await litellm.acompletion(model="any", messages=[{"role": "user", "content": "x"}])
except Exception:
    pass
"""
        )
    )
    assert tried.fault is not None
    assert (tried.fault.blame, tried.fault.shared) == (Blame.INFRASTRUCTURE, True)


def test_a_task_that_cannot_be_built_stops_the_run(
    tmp_path: Path, environment_cache: Path
) -> None:
    write_task(
        tmp_path / "tasks" / "one",
        **{"environment/Dockerfile": "FROM debian:bookworm-slim\nRUN exit 7\n"},
    )
    tried = Bench(tmp_path).tried(agent(SOLVE))
    assert tried.fault is not None
    expected = Blame.OPERATOR if ENVIRONMENT == "namespace" else Blame.INFRASTRUCTURE
    assert tried.fault.blame is expected, tried.fault


def test_nothing_of_a_trial_is_left(bench: Bench) -> None:
    bench.tried(agent("await environment.exec('setsid sleep 4321 >/dev/null 2>&1 &')\n" + SOLVE))
    assert [line for line in command_lines() if "sleep\x004321" in line] == []


def command_lines() -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(path.read_text(errors="replace"))
    return found


def test_trials_share_a_sandbox_that_has_imported_the_agent(bench: Bench) -> None:
    with bench.harness(agent(SOLVE)) as harness:
        sandboxes = []
        for _ in range(2):
            assert bench.benchmark.run(harness, "one", 0).value == 1.0
            sandboxes.append(harness._sandbox)
            harness.end_trial()
    assert sandboxes[0] is sandboxes[1] is not None
