"""Harbor's Docker environment with agents that are not trusted, and a search in it."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

import coevolve
from tests.benchmarks.harbor.terminal_tasks import EXAMPLE, example_module
from tests.benchmarks.harbor.trials import (
    SOLVE,
    Bench,
    agent,
    needs_trials,
    write_task,
)

pytestmark = [
    needs_trials,
    pytest.mark.filterwarnings("ignore"),  # Harbor and LiteLLM warn about their own calls
]


@pytest.fixture
def bench(tmp_path: Path, environment_cache: Path) -> Bench:
    write_task(tmp_path / "tasks" / "one")
    return Bench(tmp_path)


def test_links_in_the_folders_for_logs_lead_nowhere(bench: Bench, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("only for the operator")
    links = " && ".join(
        f"ln -sf {secret} /logs/{place}"
        for place in ("agent/notes.json", "agent/trajectory.json", "artifacts/x", "verifier/y")
    )
    body = (
        f"await environment.exec({links!r})\n"
        "(self.logs_dir / 'notes.json').write_text('{\"overwritten\": 1}')\n"
    )
    tried = bench.tried(agent(body + SOLVE))
    assert tried.score == 1.0, tried
    assert secret.read_text() == "only for the operator"
    for path in tried.folder.rglob("*"):
        assert not path.is_symlink(), path
        if path.is_file():
            assert "only for the operator" not in path.read_text(errors="replace"), path


def test_what_is_copied_out_is_what_the_engine_says(bench: Bench) -> None:
    forged = (
        "for name in tar cat base64; do "
        "printf '#!/bin/sh\\necho forged\\n' > /usr/local/bin/$name; "
        "chmod 755 /usr/local/bin/$name; done; mkdir -p /logs/artifacts/sub; "
        "echo real > /logs/artifacts/sub/file; ln -s file /logs/artifacts/sub/link; "
        "mkfifo /logs/artifacts/pipe"
    )
    tried = bench.tried(agent(f"await environment.exec({forged!r})\n" + SOLVE))
    assert tried.score == 1.0, tried
    found = [path for path in tried.folder.rglob("artifacts/**/*") if path.is_file()]
    assert {path.read_text() for path in found if path.name == "file"} == {"real\n"}
    assert [path.name for path in found if path.name in ("link", "pipe")] == []


def test_a_flood_of_output_does_not_fill_our_memory(bench: Bench) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    flood = "await environment.exec('head -c 700000000 /dev/zero')\n"
    assert bench.tried(agent(flood + SOLVE)).score == 1.0
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 300_000, f"{grown >> 10} MB more"


def test_large_files_are_read_whole(bench: Bench) -> None:
    body = """
await environment.exec("seq 1 1600000 > /app/large")
await environment.download_file("/app/large", "/tmp/large")
got = open("/tmp/large").read().split()
assert got == [str(n) for n in range(1, 1600001)], len(got)
"""
    assert bench.tried(agent(body + SOLVE)).score == 1.0


def test_processes_of_the_image_stay_when_those_of_the_agent_end(
    tmp_path: Path, environment_cache: Path
) -> None:
    dockerfile = (
        "FROM debian:bookworm-slim\nWORKDIR /app\n"
        'ENTRYPOINT ["/bin/sh", "-c", "sleep 5555 & exec \\"$@\\"", "sh"]\n'
    )
    test = (
        "#!/bin/bash\nps -eo args > /logs/verifier/ps.txt\n"
        "ps -eo args | grep -qx 'sleep 5555' && ! ps -eo args | grep -qx 'sleep 6666' "
        "&& echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt\n"
    )
    write_task(
        tmp_path / "tasks" / "one",
        **{"environment/Dockerfile": dockerfile, "tests/test.sh": test},
    )
    body = "await environment.exec('for i in 1 2 3; do setsid sleep 6666 >/dev/null 2>&1 & done')"
    assert Bench(tmp_path).tried(agent(body)).score == 1.0


def test_a_search_runs_from_start_to_end(
    tmp_path: Path, environment_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["sqlite-orders", "log-errors", "relink-releases"]
    text = (EXAMPLE / "offline.toml").read_text()
    with example_module("scripted_model").ScriptedModel() as server:
        for old, new in {
            "fraction = 0.4": "fraction = 0.5",
            'path = "tasks"': f'path = "{EXAMPLE}/tasks"\ntasks = {names}',
            'environment = "namespace"': 'environment = "docker"',
            'environment_options = { root = "host" }': "",
            'file = "propose.py"': f'file = "{EXAMPLE}/propose.py"',
            "http://127.0.0.1:8765/v1": server.url,
        }.items():
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        (tmp_path / "search.toml").write_text(text)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        command = (sys.executable, "-m", "coevolve", "run", "search.toml")
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=900
        )
    assert done.returncode == 0, done.stdout + done.stderr
    run = coevolve.open(tmp_path / "runs" / "offline")
    scores = {(row["candidate"], row["task"]): row["score"] for row in run.outcomes()}
    assert len({candidate for candidate, _ in scores}) == 8, "two starts and six rounds"
    assert [row for row in run.outcomes() if row["fault"] or row["score"] is None] == []
    assert scores["terminus-2", "log-errors"] == 0.0
    assert run.result.best.name not in ("terminus-2", "environment-snapshot")
