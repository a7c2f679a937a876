"""What a command-line agent is to us: how to start it, what it needs, how to read it."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from coevolve.errors import ConfigError, nearest
from coevolve.proposers.command.meters import Meter, UsageFile

INSTRUCTIONS = "INSTRUCTIONS.md"
USAGE_FILE = "usage.json"
_PLACES = ("{prompt}", "{workspace}", "{instructions}", "{model}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One use of an agent.

    Args:
        prompt: The message to the agent.
        workspace: Its folder, at the path where the agent sees it.
        confined: Whether a sandbox of ours surrounds it, so that it need not ask for leave.
    """

    prompt: str
    workspace: str
    confined: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """The arguments of a program, without itself, and what it reads from standard input."""

    arguments: tuple[str, ...]
    stdin: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """A command-line agent.

    Args:
        name: What messages call it.
        program: What to start: a name on the PATH, or a path.
        command: From a use of the agent to its command line.
        meter: Makes what reads its usage.
        report: File in the workspace that the meter is given in the end; none when empty.
        keys: Variables of the environment that it gets, where they are set.
        variables: Variables of the environment that it always gets.
        home: Files and folders of the home that it gets copies of: credentials, settings.
        installation: Further places of the home where it may be installed.
        version: Arguments with which it says its version; it is not asked where there are none.
        install: How to install it.

    >>> custom(["my-agent", "--task", "{prompt}"]).name
    'my-agent'
    """

    name: str
    program: str
    command: Callable[[Call], Command]
    meter: Callable[[], Meter] = UsageFile
    report: str = ""
    keys: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    home: tuple[str, ...] = ()
    installation: tuple[str, ...] = ()
    version: tuple[str, ...] = ("--version",)
    install: str = ""

    def __post_init__(self) -> None:
        for path in (*self.home, *self.installation):
            if Path(path).is_absolute() or ".." in Path(path).parts or path in ("", "."):
                raise ConfigError(f"{path!r} is no path inside the home folder.")


def custom(
    command: Sequence[str],
    *,
    model: str = "",
    keys: Sequence[str] = (),
    home: Sequence[str] = (),
) -> Agent:
    """Any agent, by its command line.

    Args:
        command: The program and its arguments. In these, {prompt}, {workspace}, {instructions}
            and {model} stand for the message, the folder, the file with the instructions and the
            model. Where {prompt} is nowhere, the message goes to standard input.
        model: What stands for {model}.
        keys: Variables of the environment that it gets, such as the key of its service.
        home: Files and folders of the home that it gets copies of.

    It may leave what it used in `usage.json` in its folder: tokens_in, tokens_out, dollars.

    >>> agent = custom(["my-agent", "--model={model}"], model="small")
    >>> agent.command(Call(prompt="Go.", workspace="/workspace", confined=True))
    Command(arguments=('--model=small',), stdin='Go.')
    """
    if isinstance(command, str) or not command or not all(isinstance(c, str) for c in command):
        example = "['my-agent', '--task', '{prompt}']"
        raise ConfigError(f"command must be a list such as {example}, got {command!r}.")
    program, *arguments = command
    for name in re.findall(r"\{(\w+)\}", " ".join(arguments)):
        if f"{{{name}}}" not in _PLACES and (hint := nearest(name, [p[1:-1] for p in _PLACES])):
            raise ConfigError(f"command says {{{name}}}, which stands for nothing.{hint}")
    if any("{model}" in argument for argument in arguments) != bool(model):
        raise ConfigError(
            "command and model do not fit: write {model} where the command line names it."
            if model
            else "command says {model}, but no model is given; add model = '...'."
        )

    def build(call: Call) -> Command:
        values = (call.prompt, call.workspace, f"{call.workspace}/{INSTRUCTIONS}", model)
        places = dict(zip(_PLACES, values, strict=True))
        filled = tuple(_filled(argument, places) for argument in arguments)
        given = any("{prompt}" in argument for argument in arguments)
        return Command(arguments=filled, stdin="" if given else call.prompt)

    return Agent(
        name=Path(program).name,
        program=program,
        command=build,
        report=USAGE_FILE,
        keys=tuple(keys),
        home=tuple(home),
        version=(),  # it might do its work instead
    )


def _filled(argument: str, places: Mapping[str, str]) -> str:
    """The argument with every placeholder filled once; braces in what fills it stay."""
    for place, value in places.items():
        before, found, after = argument.partition(place)
        if found:
            return _filled(before, places) + value + _filled(after, places)
    return argument
