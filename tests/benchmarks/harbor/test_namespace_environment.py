"""The environment in Harbor's own trials and jobs, and how it builds tasks."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.harbor.task_boxes import (
    groups_of,
    needs_namespaces,
    processes_with,
    wait_for,
)

os.environ.setdefault("HARBOR_TELEMETRY", "0")
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
pytest.importorskip(
    "harbor", reason="Harbor is not installed: pip install 'task-coevolve[harbor]'"
)

from harbor import Job, JobConfig, Trial, TrialConfig, TrialResult
from harbor.environments.base import SandboxBuildFailedError
from harbor.models.job.config import DatasetConfig
from harbor.models.task.config import EnvironmentConfig as TaskEnvironmentConfig
from harbor.models.task.config import NetworkMode, NetworkPolicy
from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TaskConfig
from harbor.models.trial.paths import TrialPaths

from coevolve.benchmarks.harbor.namespace_environment import NamespaceEnvironment
from coevolve.benchmarks.harbor.root_folders import remove_unfinished
from coevolve.benchmarks.harbor.task_layers import layers_folder

pytestmark = [
    needs_namespaces,
    pytest.mark.filterwarnings("ignore:Task.checksum:DeprecationWarning"),  # Harbor's own use
]
IMPORT_PATH = "coevolve.benchmarks.harbor.namespace_environment:NamespaceEnvironment"
DOCKERFILE = """FROM debian:bookworm-slim
ENV GREETING="hello there"
WORKDIR /app
COPY data.txt ./
RUN cat /proc/sys/kernel/random/uuid > built.txt
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COEVOLVE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def make_task(folder: Path, dockerfile: str = DOCKERFILE, *, settings: str = "") -> Path:
    """A task: copy the word in data.txt to answer.txt."""
    for name, text in {
        "task.toml": (
            'version = "1.0"\n[agent]\ntimeout_sec = 60.0\n[verifier]\ntimeout_sec = 60.0\n'
            f"[environment]\ncpus = 1\nmemory_mb = 512\nstorage_mb = 256\n{settings}"
        ),
        "instruction.md": "Copy the word in /app/data.txt to /app/answer.txt.\n",
        "environment/Dockerfile": dockerfile,
        "environment/data.txt": "word\n",
        "solution/solve.sh": "#!/bin/bash\ncp data.txt answer.txt\n(sleep 3333 &)\n",
        "tests/test.sh": (
            "#!/bin/bash\ncp /app/built.txt /logs/verifier/\n"
            "cmp /app/data.txt /app/answer.txt && echo 1 > /logs/verifier/reward.txt || "
            "echo 0 > /logs/verifier/reward.txt\n"
        ),
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    return folder


def run_trial(task: Path, folder: Path, *, agent: str = "oracle", **kwargs: Any) -> TrialResult:
    config = TrialConfig(
        task=TaskConfig(path=task),
        trials_dir=folder / "trials",
        agent=AgentConfig(name=agent),
        environment=EnvironmentConfig(import_path=IMPORT_PATH, kwargs={"root": "host", **kwargs}),
    )

    async def run() -> TrialResult:
        trial = await Trial.create(config)
        return await trial.run()

    return asyncio.run(run())


def environment(task: Path, folder: Path, **kwargs: Any) -> NamespaceEnvironment:
    paths = TrialPaths(folder / "trial")
    paths.mkdir()  # type: ignore[no-untyped-call]
    return NamespaceEnvironment(
        environment_dir=task / "environment",
        environment_name="example",
        session_id="example__env",
        trial_paths=paths,
        task_env_config=kwargs.pop("config", TaskEnvironmentConfig()),
        **{"root": "host", **kwargs},
    )


def test_the_oracle_passes_and_doing_nothing_fails(tmp_path: Path) -> None:
    task = make_task(tmp_path / "task")
    results = [run_trial(task, tmp_path, agent=agent) for agent in ("oracle", "nop")]
    assert [result.exception_info for result in results] == [None, None]
    rewards = [result.verifier_result and result.verifier_result.rewards for result in results]
    assert rewards == [{"reward": 1.0}, {"reward": 0.0}]
    built = {path.read_text() for path in tmp_path.glob("trials/*/verifier/built.txt")}
    assert len(built) == 1, "both trials share one layer"
    assert list((tmp_path / "cache/harbor/environments").iterdir()) == []


def test_a_job_runs_trials_at_once_and_survives_a_task_that_cannot_be_built(
    tmp_path: Path,
) -> None:
    for name in ("one", "two"):
        make_task(tmp_path / "tasks" / name)
    make_task(tmp_path / "tasks" / "broken", DOCKERFILE + "RUN echo reason >&2; exit 3\n")
    config = JobConfig(
        job_name="job",
        jobs_dir=tmp_path / "jobs",
        n_concurrent_trials=3,
        quiet=True,
        agents=[AgentConfig(name="oracle")],
        environment=EnvironmentConfig(import_path=IMPORT_PATH, kwargs={"root": "host"}),
        datasets=[DatasetConfig(path=tmp_path / "tasks")],
    )

    async def run() -> dict[str, Any]:
        job = await Job.create(config)
        result = await job.run()
        return {trial.task_name.split("/")[-1]: trial for trial in result.trial_results}

    trials = asyncio.run(run())
    for name in ("one", "two"):
        assert trials[name].verifier_result.rewards == {"reward": 1.0}
    info = trials["broken"].exception_info
    assert info.exception_type == "SandboxBuildFailedError"
    assert "line 6: RUN 'echo reason >&2; exit 3' ended with status 3: reason" in (
        info.exception_message
    )
    assert len(list(layers_folder().glob("[!.]*"))) == 1, "the tasks are equal; no half layer"
    assert list(layers_folder().glob(".*.part")) == []


def test_commands_see_what_the_dockerfile_says(tmp_path: Path) -> None:
    text = DOCKERFILE + (
        "RUN useradd -m ann\nCOPY --chown=ann --chmod=640 data.txt sub/\nUSER ann\n"
        'ENTRYPOINT ["/bin/sh", "-c", "touch /tmp/entered; exec \\"$@\\"", "sh"]\n'
    )
    task = make_task(tmp_path / "task", text)
    (task / "environment/.dockerignore").write_text("ignored*\n")

    async def run() -> None:
        one = environment(task, tmp_path, persistent_env={"P": "1"})
        await one.start(force_build=False)
        try:
            said = await one.exec(
                'id -un; pwd; echo "$GREETING $P $E $UV_OFFLINE"', env={"E": "2"}
            )
            assert (said.stdout, said.stderr) == ("ann\n/app\nhello there 1 2 1\n", None)
            said = await one.exec("stat -c '%U %a' sub/data.txt", user="root")
            assert said.stdout == "ann 640\n"
            said = await one.exec("until [ -e /tmp/entered ]; do sleep 0.01; done", timeout_sec=20)
            assert said.return_code == 0
            with pytest.raises(RuntimeError, match="Command timed out after 1 seconds"):
                await one.exec("sleep 50", timeout_sec=1)
            await one.exec("sleep 3334 >/dev/null 2>&1 &")
            await one.end_agent_processes()
            said = await one.exec("pgrep -c sleep; cat /proc/1/comm", user="root")
            assert said.stdout == "1\nsleep\n"
            heard: list[str] = []

            async def listen(text: str, stream: str) -> None:
                heard.append(f"{stream}: {text}")

            with one.scoped_output_callback(listen):
                await one.exec("echo live")
            assert heard == ["stdout: live\n"]
        finally:
            await one.stop(delete=True)
        with pytest.raises(RuntimeError, match="not running"):
            await one.exec("true")

    asyncio.run(run())


def test_a_build_is_repeated_only_on_request_or_for_a_change(tmp_path: Path) -> None:
    task = make_task(tmp_path / "task")

    async def built(*, force: bool) -> str:
        one = environment(task, tmp_path)
        await one.start(force_build=force)
        try:
            return (await one.exec("cat built.txt data.txt")).stdout or ""
        finally:
            await one.stop(delete=True)

    first = asyncio.run(built(force=False))
    assert asyncio.run(built(force=False)) == first
    again = asyncio.run(built(force=True))
    assert again != first
    (task / "environment/data.txt").write_text("other\n")
    assert asyncio.run(built(force=False)).endswith("other\n")


def test_tasks_that_cannot_run_here_are_refused_with_the_reason(tmp_path: Path) -> None:
    task = make_task(tmp_path / "task", "FROM nobody/knows:1\nRUN true\n")

    def refused(**kwargs: Any) -> str:
        with pytest.raises(SandboxBuildFailedError) as error:
            asyncio.run(environment(task, tmp_path, **kwargs).start(force_build=False))
        return str(error.value)

    assert "no root for the image 'nobody/knows:1'" in refused(root=None)
    assert "coevolve harbor prepare debian-bookworm" in refused(
        root=None, roots={"nobody/knows:1": "debian-bookworm"}
    )
    outside = {"type": "bind", "source": "/etc", "target": "/host"}
    assert "/etc" in refused(mounts=[outside])
    (task / "environment/docker-compose.yaml").write_text("services: {}\n")
    assert "docker-compose" in refused()
    with pytest.raises(ValueError, match="network is 'internet'"):
        environment(task, tmp_path, network="internet")


@pytest.mark.parametrize("mode", [NetworkMode.PUBLIC, NetworkMode.NO_NETWORK])
def test_there_is_only_the_loopback_by_default(tmp_path: Path, mode: NetworkMode) -> None:
    task = make_task(tmp_path / "task", "FROM debian\n")

    async def run() -> str:
        one = environment(task, tmp_path, network_policy=NetworkPolicy(network_mode=mode))
        await one.start(force_build=False)
        try:
            return (await one.exec("ls /sys/class/net; cat /etc/resolv.conf")).stdout or ""
        finally:
            await one.stop(delete=True)

    assert asyncio.run(run()) == "lo\n"


def test_an_allowlist_is_refused(tmp_path: Path) -> None:
    task = make_task(tmp_path / "task")
    policy = NetworkPolicy(network_mode=NetworkMode.ALLOWLIST, allowed_hosts=["example.org"])
    with pytest.raises(ValueError, match="allowlist"):
        environment(task, tmp_path, network_policy=policy)


def test_a_prebuilt_image_gets_the_files_of_the_task(tmp_path: Path) -> None:
    task = make_task(tmp_path / "task")
    (task / "environment/Dockerfile").unlink()
    config = TaskEnvironmentConfig(docker_image="some/image:1", workdir="/work")

    async def run() -> str:
        one = environment(task, tmp_path, config=config)
        await one.start(force_build=False)
        try:
            return (await one.exec("pwd; cat data.txt")).stdout or ""
        finally:
            await one.stop(delete=True)

    assert asyncio.run(run()) == "/work\nword\n"


def test_a_forged_or_linked_reward_file_is_not_read_from_this_machine(tmp_path: Path) -> None:
    secret = tmp_path / "reward"
    secret.write_text("1")
    task = make_task(tmp_path / "task")
    (task / "tests/test.sh").write_text(
        f"#!/bin/bash\nmkdir -p {tmp_path}\nln -sf {secret} /logs/verifier/reward.txt\n"
    )
    result = run_trial(task, tmp_path)
    assert result.verifier_result is None
    assert result.exception_info is not None
    assert result.exception_info.exception_type == "RewardFileNotFoundError"


BUILDER = """
import asyncio, json, sys
from pathlib import Path
from coevolve.benchmarks.harbor.dockerfile import read_dockerfile
from coevolve.benchmarks.harbor.root_folders import host_root
from coevolve.benchmarks.harbor.task_layers import build_layer, layer_key
from coevolve.benchmarks.harbor.task_namespace import NamespacePlan, TaskNamespace
async def main(place, folder):
    root = host_root()
    file = place / "Dockerfile"
    recipe = read_dockerfile(file, base_env=root.env)
    layer = await build_layer(root, recipe, place, key=layer_key(root, file, place))
    one = TaskNamespace(NamespacePlan(trees=layer.trees(), workdir="/app"), folder)
    await one.start()
    try:
        await one.exec(("sh", "-c", "echo $$ > own.txt"))
        print(json.dumps([(await one.exec(("cat", "built.txt"))).output, one.name]))
    finally:
        await one.stop()
asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
"""


def test_a_build_whose_process_was_killed_leaves_nothing(tmp_path: Path, cache: Path) -> None:
    task = make_task(tmp_path / "task", "FROM debian\nRUN touch /marked; sleep 7654.5\n")
    argv = (sys.executable, "-c", BUILDER, str(task / "environment"), str(tmp_path / "running"))
    builder = subprocess.Popen(argv)
    assert wait_for(lambda: bool(processes_with("7654.5")))
    builder.kill()
    builder.wait()
    assert wait_for(lambda: not processes_with("7654.5"))
    layers = cache / "harbor/layers"
    assert wait_for(lambda: not list(layers.glob(".*.part/coevolve-env-*")))
    remove_unfinished(layers)
    assert [path.suffix for path in layers.iterdir()] == [".lock"]
    (task / "environment/Dockerfile").write_text(DOCKERFILE)
    assert run_trial(task, tmp_path).exception_info is None


def test_ten_processes_share_one_build(tmp_path: Path, cache: Path) -> None:
    task = make_task(tmp_path / "task")
    argv = (sys.executable, "-c", BUILDER, str(task / "environment"), str(tmp_path / "running"))
    started = [
        subprocess.Popen(argv, stdout=subprocess.PIPE, env={**os.environ}) for _ in range(10)
    ]
    said = [json.loads(process.communicate(timeout=120)[0]) for process in started]
    assert len({text for text, _ in said}) == 1
    assert len({name for _, name in said}) == 10
    assert not [group for _, name in said for group in groups_of(name)]
    assert list((tmp_path / "running").iterdir()) == []
    (layer,) = (cache / "harbor/layers").glob("[!.]*")
    assert not (layer / "upper/root/app/own.txt").exists()
    shutil.rmtree(layer)
