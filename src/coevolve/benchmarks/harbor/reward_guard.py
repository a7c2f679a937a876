"""Protects the verification from the agent, and flags commands that attack it.

The verifier of most tasks runs in the environment in which the agent worked. So before it runs,
every process that the agent left is ended, and the folders of the tests and of the reward are
created again. Other files of the agent stay, because they are its result.
"""

import re
from dataclasses import dataclass, field
from typing import Any, override

from harbor.models.trial.paths import EnvironmentPaths
from harbor.models.verifier.result import VerifierResult
from harbor.verifier.verifier import Verifier, VerifierOutputParseError

MOST_FLAGGED = 20
"""Commands that are kept for the trace."""
_FORGED = 97
"""The exit status of our commands if the agent stands in the way; a failure gives another one."""
_TOUCHED = re.compile(
    r"/logs/verifier|\breward\.(?:txt|json)|(?<![\w./-])/(?:tests|solution)(?![\w.-])"
    r"|ld\.so\.preload|LD_PRELOAD|sitecustomize|usercustomize"
)


@dataclass(slots=True)
class Suspicions:
    """Commands that name files of the verifier.

    >>> found = Suspicions()
    >>> for command in ("ls /app", "echo 1 > /logs/verifier/reward.txt"):
    ...     found.look(command)
    >>> found.count, found.shown
    (1, ['echo 1 > /logs/verifier/reward.txt'])
    """

    count: int = 0
    shown: list[str] = field(default_factory=list)

    def look(self, command: object) -> None:
        """Count a command if it is suspicious, and keep the first ones."""
        if isinstance(command, str) and _TOUCHED.search(command):
            self.count += 1
            if len(self.shown) < MOST_FLAGGED:
                self.shown.append(command[:300])


class GuardedVerifier(Verifier):
    """Harbor's verifier, after the agent's processes and forged files are gone.

    Args:
        end_processes: Whether to end the agent's processes; tasks that ask for a service need
            them.
        named: The arguments of Harbor's verifier.
    """

    def __init__(self, *, end_processes: bool = True, **named: Any) -> None:
        super().__init__(**named)
        self._end_processes = end_processes
        # Tests may be part of an environment of their own, where no agent was.
        self._tests_stay = self.environment.session_id not in _with_agent

    @override
    async def verify(self) -> VerifierResult:
        if self._end_processes:
            await end_agent_processes(self.environment)
        await self._renew_folders()
        if self._end_processes:  # the programs just used may be the agent's
            await end_agent_processes(self.environment)
        await self._check_folders()
        result = await super().verify()
        return self._checked(result)

    async def _renew_folders(self) -> None:
        """Create the folders of tests and reward again; the agent may have put links there."""
        paths = EnvironmentPaths.for_os(self.environment.os)
        verifier, tests = str(paths.verifier_dir), str(paths.tests_dir)
        remove = "" if self._tests_stay else f"rm -rf {tests}; "
        # A mounted folder can be emptied, but not removed.
        command = (
            f"{remove}[ -L {verifier} ] && rm -f {verifier}; mkdir -p {verifier} && "
            f"find {verifier} -mindepth 1 -delete; chown root:root {verifier}; "
            f"chmod 777 {verifier}"
        )
        await self.environment.exec(command, user="root", cwd="/")
        for path in (self.trial_paths.reward_text_path, self.trial_paths.reward_json_path):
            path.unlink(missing_ok=True)

    async def _check_folders(self) -> None:
        """Make sure that nothing forged is left, with nothing but what the shell itself can do.

        Raises:
            VerifierOutputParseError: The agent has replaced programs that remove files.
            RuntimeError: The environment has failed.
        """
        paths = EnvironmentPaths.for_os(self.environment.os)
        verifier = paths.verifier_dir
        rewards = (self.trial_paths.reward_text_path, self.trial_paths.reward_json_path)
        forged = [str(verifier / path.name) for path in rewards]
        if not self._tests_stay:
            forged.append(str(paths.tests_dir))
        command = (
            f'for f in {" ".join(forged)}; do if [ -e "$f" ] || [ -L "$f" ]; then echo "$f"; '
            f"exit {_FORGED}; fi; done; if [ -L {verifier} ]; then exit {_FORGED}; fi"
        )
        await _succeeded(
            self.environment, command, "what the agent put in the place of tests or reward stays"
        )

    def _checked(self, result: VerifierResult) -> VerifierResult:
        rewards = result.rewards or {}
        for name, value in rewards.items():
            if not 0 <= float(value) <= 1:
                raise VerifierOutputParseError(
                    f"reward {name!r} is {value!r}; it must be between 0 and 1"
                )
        return result


_with_agent: set[str] = set()
"""The sessions of environments in which an agent works."""
_before: dict[str, str] = {}
"""Processes that were there before the agent, by the session of the environment."""

# A process is known by its number and the time of its start, field 22 of its `stat`. Only what
# the shell itself can do is used. Zombies are left out.
_EACH = (
    "set -f; for f in $(set +f; echo /proc/[0-9]*/stat); do "
    "read -r l < $f || continue; p=${l%% *}; set -- ${l##*) }; "
    '[ "$1" = Z ] && continue; '
)
_LIST = f'{{ {_EACH} echo "$p:${{20}}"; done; }} 2>/dev/null; true'
_END = f"""known=" KNOWN "; mine=" $$ $PPID "
SECONDS=0; while [ "$SECONDS" -lt 20 ]; do
  left=
  {{ {_EACH} case "$known" in *" $p:${{20}} "*) continue;; esac
  case "$mine" in *" $p "*) continue;; esac
  [ "$p" = 1 ] || {{ left=1; kill -9 "$p"; }}; done; }} 2>/dev/null
  [ "$left" ] || exit 0
done
exit FORGED
""".replace("FORGED", str(_FORGED))


async def remember_processes(environment: Any) -> None:
    """Record the processes of an environment before the agent starts; they are not ended later."""
    _with_agent.add(environment.session_id)
    if hasattr(environment, "end_agent_processes"):
        return
    done = await environment.exec(_LIST, user="root", cwd="/")
    found = re.findall(r"\d+:\d+", done.stdout or "")
    _before[environment.session_id] = " ".join(found)


def forget_processes(trial: str) -> None:
    """Forget what was recorded for the environments of a trial."""
    _with_agent.difference_update([name for name in _with_agent if name.startswith(trial)])
    for session in [name for name in _before if name.startswith(trial)]:
        del _before[session]


async def end_agent_processes(environment: Any) -> None:
    """End every process in an environment that the agent started.

    Raises:
        VerifierOutputParseError: They cannot be ended, so a reward could be forged.
        RuntimeError: The environment has failed.
    """
    own = getattr(environment, "end_agent_processes", None)
    if own is not None:
        await own()
        return
    known = _before.get(environment.session_id)
    if known is None:  # the agent was not in this environment
        return
    command = _END.replace("KNOWN", known)
    await _succeeded(environment, command, "processes of the agent cannot be ended")


async def _succeeded(environment: Any, command: str, meaning: str) -> None:
    """Run a command of ours before the verification.

    Raises:
        VerifierOutputParseError: It says that the agent stands in the way.
        RuntimeError: It could not be run, as in a container that was killed.
    """
    done = await environment.exec(command, user="root", cwd="/")
    if not done.return_code:
        return
    said = (done.stdout or "")[-300:].strip()
    if done.return_code == _FORGED:
        raise VerifierOutputParseError(f"{meaning} before the verification: {said}")
    raise RuntimeError(f"the environment failed before the verification: {said}")
