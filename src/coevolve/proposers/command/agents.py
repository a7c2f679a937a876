"""Command-line agents: how to start each, what it needs, and the presets we know.

Each was tested with its real program against a local server in place of its model: claude 2.1.325,
codex-cli 0.166.0, gemini 0.61.0, opencode 1.18.33, mini-swe-agent 2.4.6. Inside our sandbox, an
agent does not ask for permission. Without the sandbox, it may only edit files in its folder, if it
has such an option.
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
TRAJECTORY = ".agent/trajectory.json"
_OPENAI = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "OPENAI_ORG_ID")
_ANTHROPIC = ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN")
_GOOGLE = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
SERVICES = (*_ANTHROPIC, *_OPENAI, *_GOOGLE, "OPENROUTER_API_KEY", "DEEPSEEK_API_KEY")
"""Keys and addresses of services, for agents that support many of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One use of an agent.

    Args:
        prompt: The message to the agent.
        workspace: The path of its folder as the agent sees it.
        confined: Whether it runs in our sandbox, where it need not ask for permission.
    """

    prompt: str
    workspace: str
    confined: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """The arguments of a program, and its standard input."""

    arguments: tuple[str, ...]
    stdin: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """A command-line agent.

    Args:
        name: Its name in messages.
        program: The program to start: a name on the PATH, or a path.
        command: Makes the command line for a call.
        meter: Makes the reader of its usage.
        report: A file in the workspace that the meter reads at the end; empty for none.
        keys: Environment variables that it gets if they are set.
        variables: Environment variables that it always gets.
        home: Files and folders of the home to copy: credentials, settings.
        installation: Further places in the home where it may be installed.
        version: Arguments that print its version; empty if it has none.
        probed: Whether a short prompt can show that its model answers. Other programs may only
            understand the prompt of a proposal.
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
    probed: bool = True
    install: str = ""

    def __post_init__(self) -> None:
        for path in (*self.home, *self.installation):
            if Path(path).is_absolute() or ".." in Path(path).parts or path in ("", "."):
                raise ConfigError(f"{path!r} is not a path inside the home folder.")


def custom(
    command: Sequence[str],
    *,
    model: str = "",
    keys: Sequence[str] = (),
    home: Sequence[str] = (),
) -> Agent:
    """Any agent, by its command line.

    Args:
        command: The program and its arguments. {prompt}, {workspace}, {instructions} and {model}
            are replaced by the message, the folder, the file with the instructions and the
            model. Without {prompt}, the message is written to standard input.
        model: The value of {model}.
        keys: Environment variables that it gets, such as the key of its service.
        home: Files and folders of the home to copy.

    It may write its usage to `usage.json` in its folder: tokens_in, tokens_out, dollars.

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
            raise ConfigError(f"command contains the unknown placeholder {{{name}}}.{hint}")
    if any("{model}" in argument for argument in arguments) != bool(model):
        raise ConfigError(
            "a model is set, but command does not contain {model}."
            if model
            else "command contains {model}, but no model is set; add model = '...'."
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
        version=(),  # it might start to work instead
        probed=False,
    )


def _filled(argument: str, places: Mapping[str, str]) -> str:
    """The argument with every placeholder replaced once; values are not searched again."""
    for place, value in places.items():
        before, found, after = argument.partition(place)
        if found:
            return _filled(before, places) + value + _filled(after, places)
    return argument


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of a preset; see `preset`."""

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
        program: The program to start, if it does not have its usual name.
        model: The model; by default the agent's own choice.
        effort: The reasoning effort, as the agent names it, such as "high".
        tools: The only tools it may use, as the agent names them.
        dollars: The highest cost of one proposal.
        arguments: Further arguments, passed unchanged.

    Raises:
        ConfigError: The preset is unknown, or its agent lacks an option.

    >>> preset("codex", model="gpt-6").command(Call(prompt="Go.", workspace="", confined=True))
    ... # doctest: +ELLIPSIS
    Command(arguments=('exec', '--json', ...), stdin='Go.')
    """
    if name not in PRESETS:
        raise ConfigError(
            f"unknown agent {name!r}; use one of {', '.join(PRESETS)}, or set a command."
            f"{nearest(name, PRESETS)}"
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
                f"{name} has no option for {option}; remove it, or pass it in `arguments` if your "
                "version has one."
            )
    return make(options, program)


def _claude_code(options: Options, program: str) -> Agent:
    fixed = ("-p", "--output-format", "stream-json", "--verbose", "--no-session-persistence")

    def command(call: Call) -> Command:
        permission = (
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
        return Command(
            arguments=(*fixed, *permission, *chosen, *options.arguments), stdin=call.prompt
        )

    return Agent(
        name="claude-code",
        program=program or "claude",
        command=command,
        meter=ClaudeMeter,
        keys=(*_ANTHROPIC, "CLAUDE_CODE_OAUTH_TOKEN"),
        variables={
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
        },  # without it, root may not skip permissions
        home=(".claude.json", ".claude/.credentials.json", ".claude/settings.json"),
        installation=(".claude/local", ".local/share/claude/versions"),
        install="npm install -g @anthropic-ai/claude-code",
    )


def _codex(options: Options, program: str) -> Agent:
    fixed = ("exec", "--json", "--skip-git-repo-check", "--ephemeral")
    effort = f'model_reasoning_effort="{options.effort}"' if options.effort else ""

    def command(call: Call) -> Command:
        permission = (
            ("--dangerously-bypass-approvals-and-sandbox",)
            if call.confined
            else ("--sandbox", "workspace-write")
        )
        chosen = (*_given("--model", options.model), *_given("--config", effort))
        arguments = (*fixed, *permission, *chosen, *options.arguments, "-")
        return Command(arguments=arguments, stdin=call.prompt)

    return Agent(
        name="codex",
        program=program or "codex",
        command=command,
        meter=CodexMeter,
        keys=("CODEX_API_KEY",),  # it reads OPENAI_API_KEY only from its own login
        home=(".codex/auth.json", ".codex/config.toml"),
        install="npm install -g @openai/codex",
    )


def _gemini(options: Options, program: str) -> Agent:
    fixed = ("--output-format", "stream-json", "--skip-trust")

    def command(call: Call) -> Command:
        permission = ("--approval-mode", "yolo" if call.confined else "auto_edit")
        arguments = (*fixed, *permission, *_given("--model", options.model), *options.arguments)
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
        permission = ("--auto",) if call.confined else ()
        chosen = (*_given("--model", options.model), *_given("--variant", options.effort))
        arguments = ("run", "--format", "json", *permission, *chosen, *options.arguments)
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
        # Otherwise a model without a known price stops it, and its first start asks questions.
        variables={"MSWEA_CONFIGURED": "true", "MSWEA_COST_TRACKING": "ignore_errors"},
        home=(".config/mini-swe-agent/.env",),
        version=("--help",),
        install="pip install mini-swe-agent 'litellm[mcp]'",  # which it needs for tool calls
    )


type _Make = Callable[[Options, str], Agent]

PRESETS: dict[str, tuple[_Make, tuple[str, ...]]] = {
    "claude-code": (_claude_code, ()),
    "codex": (_codex, ("tools", "dollars")),
    "gemini": (_gemini, ("effort", "tools", "dollars")),
    "opencode": (_opencode, ("tools", "dollars")),
    "mini-swe-agent": (_mini_swe_agent, ("tools",)),
}
"""The maker of each preset, and the options its agent lacks."""


def _given(flag: str, value: str) -> tuple[str, ...]:
    return (flag, value) if value else ()


def _plain(dollars: float | None) -> str:
    return "" if dollars is None else f"{dollars:.10g}"
