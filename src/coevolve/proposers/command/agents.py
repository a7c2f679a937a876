"""Command-line agents: how to start each, what it needs, and the presets we know.

Each was tried with its real program against a server on the same machine that played its model:
claude 2.1.325, codex-cli 0.166.0, gemini 0.61.0, opencode 1.18.33, mini-swe-agent 2.4.6. Behind
our sandbox an agent is told not to ask for leave. Without it, it is told to keep to edits of its
folder, where it knows how to.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from coevolve.errors import ConfigError, nearest
from coevolve.proposers.command.usage_meters import (
    ClaudeMeter,
    CodexMeter,
    GeminiMeter,
    Meter,
    OpenCodeMeter,
    TrajectoryMeter,
    UsageFile,
)

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


TRAJECTORY = ".agent/trajectory.json"
_OPENAI = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "OPENAI_ORG_ID")
_ANTHROPIC = ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN")
_GOOGLE = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
SERVICES = (*_ANTHROPIC, *_OPENAI, *_GOOGLE, "OPENROUTER_API_KEY", "DEEPSEEK_API_KEY")
"""Keys and addresses of services, for agents that know many of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a preset can be told; see `preset`."""

    model: str = ""
    effort: str = ""
    tools: tuple[str, ...] = ()
    dollars: float | None = None
    arguments: tuple[str, ...] = ()


def preset(
    name: str,
    *,
    program: str = "",
    model: str = "",
    effort: str = "",
    tools: Sequence[str] = (),
    dollars: float | None = None,
    arguments: Sequence[str] = (),
) -> Agent:
    """The agent of this name.

    Args:
        name: "claude-code", "codex", "gemini", "opencode" or "mini-swe-agent".
        program: What to start, if not the name that the agent usually has.
        model: Which model; the agent's own choice when empty.
        effort: How hard it shall think, in the agent's words, such as "high".
        tools: The only tools it may use, by the agent's names for them.
        dollars: Most that one proposal may cost.
        arguments: Further arguments, as they are.

    Raises:
        ConfigError: There is no such preset, or its agent has no such option.

    >>> preset("codex", model="gpt-6").command(Call(prompt="Go.", workspace="", confined=True))
    ... # doctest: +ELLIPSIS
    Command(arguments=('exec', '--json', ...), stdin='Go.')
    """
    if name not in PRESETS:
        raise ConfigError(
            f"there is no agent {name!r}; known are {', '.join(PRESETS)}, and any other as a "
            f"command.{nearest(name, PRESETS)}"
        )
    make, lacking = PRESETS[name]
    if dollars is not None and not dollars > 0:
        raise ConfigError(f"dollars must be positive, got {dollars!r}.")
    options = Options(
        model=model,
        effort=effort,
        tools=tuple(tools),
        dollars=dollars,
        arguments=tuple(arguments),
    )
    for option in lacking:
        if getattr(options, option):
            raise ConfigError(
                f"{name} has no option for {option}; leave it out, or say it in `arguments` if "
                "your version has one."
            )
    return make(options, program)


def _claude_code(options: Options, program: str) -> Agent:
    fixed = ("-p", "--output-format", "stream-json", "--verbose", "--no-session-persistence")

    def command(call: Call) -> Command:
        leave = (
            ("--dangerously-skip-permissions",)
            if call.confined
            else ("--permission-mode", "acceptEdits")
        )
        chosen = (
            *_given("--model", options.model),
            *_given("--effort", options.effort),
            *_given("--tools", ",".join(options.tools)),
            *_given("--max-budget-usd", _plain(options.dollars)),
        )
        return Command(arguments=(*fixed, *leave, *chosen, *options.arguments), stdin=call.prompt)

    return Agent(
        name="claude-code",
        program=program or "claude",
        command=command,
        meter=ClaudeMeter,
        keys=(*_ANTHROPIC, "CLAUDE_CODE_OAUTH_TOKEN"),
        variables={"DISABLE_AUTOUPDATER": "1", "IS_SANDBOX": "1"},  # else root may not skip
        home=(".claude.json", ".claude/.credentials.json", ".claude/settings.json"),
        installation=(".claude/local", ".local/share/claude/versions"),
        install="npm install -g @anthropic-ai/claude-code",
    )


def _codex(options: Options, program: str) -> Agent:
    fixed = ("exec", "--json", "--skip-git-repo-check", "--ephemeral")
    effort = f'model_reasoning_effort="{options.effort}"' if options.effort else ""

    def command(call: Call) -> Command:
        leave = (
            ("--dangerously-bypass-approvals-and-sandbox",)
            if call.confined
            else ("--sandbox", "workspace-write")
        )
        chosen = (*_given("--model", options.model), *_given("--config", effort))
        arguments = (*fixed, *leave, *chosen, *options.arguments, "-")
        return Command(arguments=arguments, stdin=call.prompt)

    return Agent(
        name="codex",
        program=program or "codex",
        command=command,
        meter=CodexMeter,
        keys=("CODEX_API_KEY",),  # it takes OPENAI_API_KEY from its own login only
        home=(".codex/auth.json", ".codex/config.toml"),
        install="npm install -g @openai/codex",
    )


def _gemini(options: Options, program: str) -> Agent:
    fixed = ("--output-format", "stream-json", "--skip-trust")

    def command(call: Call) -> Command:
        leave = ("--approval-mode", "yolo" if call.confined else "auto_edit")
        arguments = (*fixed, *leave, *_given("--model", options.model), *options.arguments)
        return Command(arguments=arguments, stdin=call.prompt)

    cloud = ("GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION", "GOOGLE_GENAI_USE_VERTEXAI")
    login = ("GOOGLE_GENAI_USE_GCA", "GOOGLE_GEMINI_BASE_URL")
    folder = ("settings.json", ".env", "oauth_creds.json", "google_accounts.json")
    return Agent(
        name="gemini",
        program=program or "gemini",
        command=command,
        meter=GeminiMeter,
        keys=(*_GOOGLE, *cloud, *login),
        home=tuple(f".gemini/{name}" for name in folder),
        install="npm install -g @google/gemini-cli",
    )


def _opencode(options: Options, program: str) -> Agent:
    def command(call: Call) -> Command:
        leave = ("--auto",) if call.confined else ()
        chosen = (*_given("--model", options.model), *_given("--variant", options.effort))
        arguments = ("run", "--format", "json", *leave, *chosen, *options.arguments)
        return Command(arguments=arguments, stdin=call.prompt)

    settings = tuple(f".config/opencode/{name}" for name in ("opencode.json", "opencode.jsonc"))
    return Agent(
        name="opencode",
        program=program or "opencode",
        command=command,
        meter=OpenCodeMeter,
        keys=SERVICES,
        variables={"OPENCODE_DISABLE_AUTOUPDATE": "1"},
        home=(*settings, ".local/share/opencode/auth.json"),
        installation=(".opencode/bin",),
        install="npm install -g opencode-ai",
    )


def _mini_swe_agent(options: Options, program: str) -> Agent:
    effort = f"model.model_kwargs.reasoning_effort={options.effort}"

    def command(call: Call) -> Command:
        chosen = (
            *_given("--model", options.model),
            *_given("--cost-limit", _plain(options.dollars)),
            *(("--config", "mini.yaml", "--config", effort) if options.effort else ()),
        )
        last = ("--output", f"{call.workspace}/{TRAJECTORY}", "--task", call.prompt)
        arguments = ("--yolo", "--exit-immediately", *chosen, *options.arguments, *last)
        return Command(arguments=arguments)

    return Agent(
        name="mini-swe-agent",
        program=program or "mini",
        command=command,
        meter=TrajectoryMeter,
        report=TRAJECTORY,
        keys=(*SERVICES, "MSWEA_MODEL_NAME", "LITELLM_LOCAL_MODEL_COST_MAP"),
        # A model without a known price would stop it, and its first start would ask questions.
        variables={"MSWEA_CONFIGURED": "true", "MSWEA_COST_TRACKING": "ignore_errors"},
        home=(".config/mini-swe-agent/.env",),
        version=("--help",),
        install="pip install mini-swe-agent 'litellm[mcp]'",  # which tool calls need
    )


type _Make = Callable[[Options, str], Agent]

PRESETS: dict[str, tuple[_Make, tuple[str, ...]]] = {
    "claude-code": (_claude_code, ()),
    "codex": (_codex, ("tools", "dollars")),
    "gemini": (_gemini, ("effort", "tools", "dollars")),
    "opencode": (_opencode, ("tools", "dollars")),
    "mini-swe-agent": (_mini_swe_agent, ("tools",)),
}
"""How each preset is made, and the options its agent lacks."""


def _given(flag: str, value: str) -> tuple[str, ...]:
    return (flag, value) if value else ()


def _plain(dollars: float | None) -> str:
    return "" if dollars is None else f"{dollars:.10g}"
