"""What a task may do in its environment, what it may not, and that nothing is left of it."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from coevolve.benchmarks.harbor import namespace_limits
from coevolve.benchmarks.harbor.namespace_leftovers import new_name, sweep_leftovers
from coevolve.benchmarks.harbor.namespace_limits import NamespaceLimits, group_parents
from coevolve.benchmarks.harbor.transfer_archives import NamespaceError, TransferError
from tests.benchmarks.harbor.task_boxes import (
    Box,
    box,
    groups_of,
    mounts_of,
    needs_namespaces,
    processes_with,
    wait_for,
)

pytestmark = needs_namespaces
SECRET = "a secret of this machine"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    """An environment for tests that leave nothing in it."""
    folder = tmp_path_factory.mktemp("shared")
    with box(folder, hostname="example", workdir="/app") as one:
        yield one


def test_a_command_runs_as_root_in_the_working_folder(shared: Box) -> None:
    facts = shared.says("id -u; pwd; echo $HOME; umask; hostname").split()
    assert facts == ["0", "/app", "/root", "0022", "example"]
    assert shared.run("echo out; echo error >&2; exit 3") == (3, "out\nerror\n")
    assert shared.says("echo $A", env={"A": "b c", "PATH": "/bin"}) == "b c"
    assert shared.says("pwd", cwd="/usr") == "/usr"


def test_names_of_the_machine_resolve(shared: Box) -> None:
    ask = "from socket import gethostbyname as g; print(g('localhost'), g('example'))"
    assert shared.says(f'python3 -c "{ask}"') == "127.0.0.1 127.0.1.1"


def test_services_work_on_the_loopback(shared: Box) -> None:
    get = "import urllib.request as u; print(u.urlopen('http://localhost:80').status)"
    command = (
        "cd /usr/share/base-passwd; python3 -m http.server 80 >/dev/null 2>&1 & "
        f'for i in $(seq 100); do python3 -c "{get}" 2>/dev/null && break; sleep 0.05; done; '
        "kill %1"
    )
    assert shared.says(command) == "200"


def test_users_and_owners_as_in_a_container(shared: Box) -> None:
    made = shared.says(
        "useradd -m ann && su ann -c 'id -un; echo x > ~/x; stat -c %U ~/x' && "
        "touch /tmp/o && chown 65535:1234 /tmp/o && stat -c %u:%g /tmp/o"
    )
    assert made == "ann\nann\n65535:1234"
    assert shared.says("id -un; echo $HOME; echo seen > /dev/stdout", user="ann") == (
        "ann\n/home/ann\nseen"
    )
    assert shared.says("id -u; id -g", user="1234:99") == "1234\n99"
    # A program with the set-user-id bit changes the user, as su and sudo need it.
    shared.says("cp /usr/bin/id /tmp/id && chmod u+s /tmp/id")
    assert shared.says("/tmp/id -u", user="ann") == "0"


def test_capabilities_are_those_of_docker(shared: Box) -> None:
    status = shared.says("grep -E 'Cap(Eff|Bnd)' /proc/self/status").split()
    assert status == ["CapEff:", "00000000a80425fb", "CapBnd:", "00000000a80425fb"]
    assert "0000000000000000" in shared.says("grep CapEff /proc/self/status", user="nobody")


def test_tmux_works_with_letters_of_every_language(shared: Box) -> None:
    shared.says(
        "tmux new-session -d -s work -x 100 -y 20; tmux send-keys -t work 'echo gr\\ü\\ß' C-m"
    )
    assert wait_for(lambda: "\ngrüß" in shared.says("tmux capture-pane -p -t work"))
    shared.says("tmux kill-server")


def test_folders_and_devices_as_in_a_container(shared: Box) -> None:
    modes = shared.says("stat -c '%a' / /root /tmp /dev/shm /var/tmp").split()
    assert modes == ["755", "700", "1777", "1777", "1777"]
    assert shared.says("df -m --output=size /dev/shm | tail -1") == "64"
    assert shared.says("head -c 3 /dev/zero | wc -c; script -qc tty /dev/null").startswith("3\n")
    assert shared.says("ls /sys/class/net") == "lo"


def test_errors_come_back_as_data(shared: Box) -> None:
    assert shared.run("true", user="nobody-here")[0] == 126
    assert "no matching entries" in shared.run("true", user="nobody-here")[1]
    assert shared.run("true", cwd="/missing")[0] == 126
    assert shared.run("x" * 200_000) == (126, "bash: Argument list too long\n")
    assert shared.run("echo \0")[0] == 126
    assert shared.run("true", env={"A=B": "c"})[0] == 126
    assert shared.run("echo \ud800")[0] == 126
    missing = shared.wait(shared.namespace.exec(("no-such-program",)))
    assert (missing.code, missing.output) == (127, "no-such-program: not found\n")
    assert shared.run("kill -9 $$") == (137, "")


def test_background_processes_do_not_hold_a_command_and_survive_it(shared: Box) -> None:
    before = time.monotonic()
    shared.says("(for i in $(seq 600); do echo $i; sleep 0.1; done) & echo $! > /tmp/pid")
    assert time.monotonic() - before < 30
    shared.says("sleep 0.5; kill -0 $(cat /tmp/pid); kill $(cat /tmp/pid)")


def test_a_time_out_kills_the_process_group(shared: Box) -> None:
    with pytest.raises(TimeoutError):
        shared.run("sleep 4321 | cat", timeout=0.3)
    assert wait_for(lambda: shared.run("pgrep -f 'sleep 432[1]'")[0] == 1)


def test_cancelling_kills_the_process_group(shared: Box) -> None:
    async def cancelled() -> None:
        work = asyncio.create_task(shared.namespace.exec(("sleep", "4322")))
        await asyncio.sleep(0.3)
        work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await work

    shared.wait(cancelled())
    assert wait_for(lambda: not processes_with("sleep\x004322"))


def test_commands_run_at_the_same_time(shared: Box) -> None:
    async def both() -> list[str]:
        first = shared.namespace.exec(("bash", "-c", "mkfifo /tmp/f; read x < /tmp/f; echo $x"))
        second = shared.namespace.exec(
            ("bash", "-c", "until [ -p /tmp/f ]; do sleep 0.01; done; echo hello > /tmp/f")
        )
        done = await asyncio.wait_for(asyncio.gather(first, second), 20)
        return [each.output for each in done]

    assert shared.wait(both()) == ["hello\n", ""]


def test_output_is_bounded(tmp_path: Path) -> None:
    with box(tmp_path, output_mb=1) as one:
        code, output = one.run("head -c 30000000 /dev/zero | tr '\\0' y; echo end")
        assert code == 0
        assert len(output) < (1 << 20) + 100
        assert output.endswith("more bytes of output were dropped]\n")


@pytest.mark.parametrize(
    "attempt",
    [
        "mount -t tmpfs none /mnt",
        "unshare -Ur true",
        "unshare -m true",
        "nsenter -t 1 -m true",
        "mknod /tmp/disk b 254 0",
        "echo 1 > /proc/sys/kernel/panic",
        "echo 1 > /proc/sys/net/ipv4/ip_forward",
        "echo b > /proc/sysrq-trigger",
        "kill -0 $PPID && [ $PPID != 0 ]",
        "dmesg",
        "hostname other",
        "date -s 2001-01-01",
        "cat /proc/kcore",
        "ls /proc/1/root/work /proc/1/root/home/*",
        "cat /dev/mem /dev/vda /dev/sda",
        "timeout 2 bash -c 'echo > /dev/tcp/192.0.2.1/80'",
        "echo x > /sys/kernel/uevent_helper",
        "chroot /proc/1/root/.. ls /work",
    ],
)
def test_the_machine_is_out_of_reach(shared: Box, attempt: str) -> None:
    code, output = shared.run(attempt)
    assert code != 0, output


def test_files_services_and_processes_of_the_machine_are_out_of_reach(
    shared: Box, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text(SECRET)
    tmp_path.chmod(0o755)
    server = subprocess.Popen(
        (sys.executable, "-m", "http.server", "0", "--bind", "127.0.0.1"),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert server.stdout is not None
        port = server.stdout.readline().decode().split("port ")[1].split()[0]
        assert shared.run(f"cat {tmp_path}/secret")[0] != 0
        assert shared.run(f"echo > /dev/tcp/127.0.0.1/{port}")[0] != 0
        assert shared.run(f"kill -0 {server.pid}")[0] != 0
        listed = shared.says("ps -eo args")
        assert "--bind" not in listed
        assert "pytest" not in listed
        environ = shared.says("cat /proc/*/environ | tr '\\0' '\\n' | grep -c PYTEST || true")
        assert environ == "0"
    finally:
        server.kill()
        server.communicate()


def test_environments_do_not_see_each_other(shared: Box, tmp_path: Path) -> None:
    with box(tmp_path) as other:
        other.says("echo mine > /tmp/mine; sleep 5555 >/dev/null 2>&1 & ")
        other.says("touch /usr/local/changed")
        assert shared.run("ls /tmp/mine /usr/local/changed")[0] != 0
        assert shared.run("pgrep -f 'sleep 555[5]'")[0] == 1
        assert not Path("/usr/local/changed").exists()


def test_ending_all_processes_spares_the_environment(tmp_path: Path) -> None:
    with box(tmp_path) as one:
        one.says("setsid sleep 6666 >/dev/null 2>&1 & tmux new-session -d 'sleep 6667'; sleep 0.1")
        one.says("trap '' TERM HUP INT; (while :; do sleep 0.01; done) >/dev/null 2>&1 &")
        one.wait(one.namespace.end_processes())
        listed = one.says("ps -eo args=").splitlines()
        alive = [line for line in listed if not line.startswith("[")]  # without ended ones
        assert alive == ["sleep infinity", "ps -eo args="]


def test_memory_is_limited(tmp_path: Path) -> None:
    if not {"", "memory"} & group_parents().keys():
        pytest.skip("control groups for memory are not writable here")
    with box(tmp_path, limits=NamespaceLimits(memory_mb=128)) as one:
        code, _ = one.run("exec python3 -c 'x = bytearray(400 << 20)'")
        assert code == 137
        assert one.says("echo alive") == "alive"


def test_processes_are_limited(tmp_path: Path) -> None:
    if not {"", "pids"} & group_parents().keys():
        pytest.skip("control groups for processes are not writable here")
    with box(tmp_path, limits=NamespaceLimits(processes=40)) as one:
        spawn = "import os, time\nfor i in range(90):\n os.fork() or time.sleep(60)"
        code, output = one.run(f'timeout 20 python3 -c "{spawn}"')
        assert code != 0
        assert "temporarily unavailable" in output
        one.wait(one.namespace.end_processes())
        assert one.says("echo alive") == "alive"


def test_single_processes_are_limited_without_control_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(namespace_limits, "group_parents", dict)
    with box(tmp_path, limits=NamespaceLimits(memory_mb=128, processes=300)) as one:
        code, output = one.run("python3 -c 'x = bytearray(400 << 20)'")
        assert code == 1
        assert "MemoryError" in output
        assert one.says("ulimit -u") == "300"


def test_the_disk_is_limited(tmp_path: Path) -> None:
    with box(tmp_path, limits=NamespaceLimits(disk_mb=32)) as one:
        code, output = one.run("head -c 60000000 /dev/zero > /usr/local/big")
        assert code != 0
        assert "No space left" in output
        assert one.says("rm /usr/local/big; echo more > /root/more; cat /root/more") == "more"


def test_files_go_in_and_out(shared: Box, tmp_path: Path) -> None:
    source = tmp_path / "in"
    (source / "sub").mkdir(parents=True)
    (source / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (source / "run.sh").chmod(0o750)
    (source / "sub" / "ü.bin").write_bytes(bytes(range(256)) * 5000)
    (source / "link").symlink_to("run.sh")
    (source / "twin").hardlink_to(source / "run.sh")
    os.mkfifo(source / "pipe")
    names = shared.namespace
    shared.wait(names.put_folder(source, "/new/place"))
    assert shared.says("/new/place/run.sh; /new/place/link; stat -c %a:%u /new/place/twin") == (
        "ran\nran\n750:0"
    )
    shared.wait(names.put_file(source / "run.sh", "/new/"))
    shared.wait(names.put_file(source / "run.sh", "/new/place/sub"))
    shared.wait(names.put_file(source / "run.sh", "/new/name.sh"))
    assert shared.says("ls /new").split() == ["name.sh", "place", "run.sh"]
    assert shared.says("ls /new/place/sub").split() == ["run.sh", "ü.bin"]
    out = tmp_path / "out"
    shared.wait(names.get_folder("/new/place", out))
    assert (out / "sub" / "ü.bin").read_bytes() == bytes(range(256)) * 5000
    assert (out / "run.sh").stat().st_mode & 0o777 == 0o750
    shared.wait(names.get_file("/new/place/run.sh", tmp_path / "one"))
    assert (tmp_path / "one").read_text() == "#!/bin/sh\necho ran\n"
    with pytest.raises(TransferError, match="No such file"):
        shared.wait(names.get_file("/new/missing", tmp_path / "none"))
    with pytest.raises(TransferError, match="not a folder"):
        shared.wait(names.get_folder("/new/missing", tmp_path / "none"))


def test_links_of_a_task_do_not_lead_to_files_of_the_machine(shared: Box, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    tmp_path.chmod(0o755)
    shared.says(f"mkdir -p /logs; cd /logs; ln -sf {secret} reward.txt; ln -sf / all; mkfifo pipe")
    target = tmp_path / "out"
    shared.wait(shared.namespace.get_folder("/logs", target))
    assert list(target.iterdir()) == []
    with pytest.raises(TransferError):
        shared.wait(shared.namespace.get_file("/logs/reward.txt", tmp_path / "got"))
    assert not (tmp_path / "got").exists()
    # An upload through a link lands in the environment, not on the machine.
    shared.says(f"ln -sfn {tmp_path} /logs/up")
    shared.run(f"mkdir -p {tmp_path}")
    shared.wait(shared.namespace.put_file(secret, "/logs/up/new"))
    assert not (tmp_path / "new").exists()
    # A link that lies where a file is written is replaced, not followed.
    (target / "note").symlink_to(secret)
    shared.says("rm -rf /logs; mkdir /logs; echo changed > /logs/note")
    shared.wait(shared.namespace.get_folder("/logs", target))
    assert secret.read_text() == SECRET
    assert (target / "note").read_text() == "changed\n"


def test_a_replaced_tar_does_not_change_what_is_copied(tmp_path: Path) -> None:
    with box(tmp_path) as one:
        one.says("echo 0 > /reward; printf '#!/bin/sh\\necho forged' > /usr/bin/tar")
        one.wait(one.namespace.get_file("/reward", tmp_path / "reward"))
        assert (tmp_path / "reward").read_text() == "0\n"


def test_too_much_is_left_out(shared: Box, tmp_path: Path) -> None:
    shared.says("mkdir -p /big; truncate -s 1T /big/a; echo 1 > /big/b")
    note = shared.wait(shared.namespace.get_folder("/big", tmp_path / "big"))
    assert "the limit is 64 MB" in note
    assert [path.name for path in (tmp_path / "big").iterdir()] == ["b"]
    with pytest.raises(TransferError, match="too large"):
        shared.wait(shared.namespace.get_file("/big/a", tmp_path / "a"))


def test_nothing_is_left_after_a_stop(tmp_path: Path) -> None:
    with box(tmp_path, limits=NamespaceLimits(memory_mb=256, disk_mb=64)) as one:
        one.says("setsid sleep 7777.5 >/dev/null 2>&1 & sleep 0.1")
        assert processes_with("7777.5")
        assert groups_of(one.namespace.name) or not group_parents()
        name = one.namespace.name
    assert not processes_with("7777.5")
    assert not groups_of(name)
    assert list((tmp_path / "environments").iterdir()) == []
    assert not mounts_of(tmp_path)
    assert (
        str(tmp_path)
        not in subprocess.run(
            ("losetup", "-a"), capture_output=True, text=True, check=False
        ).stdout
    )


def test_an_environment_that_is_killed_from_outside_says_so(tmp_path: Path) -> None:
    with box(tmp_path) as one:
        one.says("sleep 8888.5 >/dev/null 2>&1 &")
        (pid,) = processes_with("8888.5")
        status = Path(f"/proc/{pid}/status").read_text()
        parent = int(status.split("PPid:\t")[1].split()[0])
        os.kill(parent, signal.SIGKILL)
        assert wait_for(lambda: not processes_with("8888.5"))
        with pytest.raises(NamespaceError, match="has ended"):
            one.run("true")


def test_a_command_in_an_environment_that_is_killed_has_no_exit_status(tmp_path: Path) -> None:
    with box(tmp_path) as one:

        async def killed() -> None:
            work = asyncio.create_task(one.namespace.exec(("sleep", "8887.5")))
            while not processes_with("8887.5"):
                await asyncio.sleep(0.02)
            (member,) = processes_with("8887.5")
            for pid in _first_processes(member):
                os.kill(pid, signal.SIGKILL)
            await work

        with pytest.raises(NamespaceError, match="has ended"):
            one.wait(killed())


def test_a_stop_does_not_wait_for_a_command_under_way(tmp_path: Path) -> None:
    with box(tmp_path) as one:

        async def stopped() -> None:
            work = asyncio.create_task(one.namespace.exec(("sleep", "8886.5")))
            while not processes_with("8886.5"):
                await asyncio.sleep(0.02)
            keeper = one.namespace._keeper
            await one.namespace.stop()
            assert keeper is not None
            assert keeper.returncode == 0, "it was not killed for taking too long"
            with pytest.raises(NamespaceError):
                await work

        one.wait(stopped())


def test_nothing_is_left_after_a_stop_when_the_keeper_was_killed(tmp_path: Path) -> None:
    with box(tmp_path, limits=NamespaceLimits(memory_mb=256, disk_mb=64)) as one:
        one.says("sleep 8889.5 >/dev/null 2>&1 &")
        name = one.namespace.name
        assert one.namespace._keeper is not None
        one.namespace._keeper.kill()
        assert wait_for(lambda: not processes_with("8889.5"))
        with pytest.raises(NamespaceError, match="has ended"):
            one.run("true")
    assert not groups_of(name)
    assert list((tmp_path / "environments").iterdir()) == []


OWNER = """
import asyncio, sys
from pathlib import Path
from coevolve.benchmarks.harbor.namespace_limits import NamespaceLimits
from coevolve.benchmarks.harbor.root_folders import host_root
from coevolve.benchmarks.harbor.task_namespace import NamespacePlan, TaskNamespace
async def main(folder):
    limits = NamespaceLimits(memory_mb=256, disk_mb=64)
    plan = NamespacePlan(trees=host_root(folder / "roots").trees(), limits=limits)
    one = TaskNamespace(plan, folder / "environments")
    await one.start()
    await one.exec(("sh", "-c", "setsid sleep 9999.25 >/dev/null 2>&1 &"))
    print(one.name, one._keeper.pid, flush=True)
    await one.exec(("sleep", "9999.25"))
asyncio.run(main(Path(sys.argv[1])))
"""


@pytest.mark.parametrize("keeper_too", [False, True])
def test_nothing_is_left_after_the_owner_was_killed(tmp_path: Path, keeper_too: bool) -> None:
    # The folder has a name of its own, since other tests look for such processes, too.
    owner = subprocess.Popen((sys.executable, "-c", OWNER, str(tmp_path)), stdout=subprocess.PIPE)
    assert owner.stdout is not None
    name, keeper = owner.stdout.readline().decode().split()
    environments = tmp_path / "environments"
    ours = {int(pid) for group in groups_of(name) for pid in _members(group)}
    assert ours or not group_parents()
    if keeper_too:
        os.kill(int(keeper), signal.SIGKILL)
    owner.kill()
    owner.communicate()
    if keeper_too:
        assert wait_for(lambda: not any(map(_alive, ours)))
        assert [path.name for path in environments.iterdir()] == [name]
        assert name in sweep_leftovers(environments)
    assert wait_for(lambda: not list(environments.iterdir()) and not groups_of(name))
    assert not any(map(_alive, ours))
    assert not mounts_of(tmp_path)


def test_a_sweep_spares_environments_in_use(tmp_path: Path) -> None:
    with box(tmp_path) as one:
        (tmp_path / "environments" / "unrelated").mkdir()
        assert one.namespace.name not in sweep_leftovers(tmp_path / "environments")
        assert one.says("echo alive") == "alive"
        assert (tmp_path / "environments" / "unrelated").exists()
    assert new_name() != new_name()


def _first_processes(member: int) -> list[int]:
    """The first process of the namespace that a process is in."""
    space = os.readlink(f"/proc/{member}/ns/pid")  # noqa: PTH115
    found = []
    for path in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):
            numbers = path.read_text().split("NSpid:\t")[1].splitlines()[0].split()
            same = os.readlink(path.parent / "ns/pid") == space  # noqa: PTH115
            if same and len(numbers) > 1 and numbers[-1] == "1":
                found.append(int(path.parent.name))
    return found


def _members(group: Path) -> list[str]:
    return (group / "cgroup.procs").read_text().split()


def _alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return b"\nState:\tZ" not in Path(f"/proc/{pid}/status").read_bytes()
    return False
