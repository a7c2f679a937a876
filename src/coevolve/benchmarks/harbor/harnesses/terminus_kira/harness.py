"""A harness in the style of Terminus-KIRA, written from its public description.

It differs from Terminus 2 in five points:

- Native tool calls instead of JSON in the text: `execute_commands`, `task_complete` and
  `image_read`.
- Marker-based waiting: after each command the agent types `echo` with a numbered marker, and
  stops waiting once a line is that marker. The duration (60 s at most) is an upper limit.
- The model sees up to 30 kB of output (Terminus 2: 10 kB).
- A checklist before completion: the first `task_complete` returns questions about the
  requirements; only the second one in a row ends the task.
- `image_read` shows an image file to the model and returns what it sees.

The messages sent to the model are the prompt, then assistant messages with tool calls, each
answered by `tool` messages with the terminal's output.

Requires Harbor >=0.24,<0.26. Overrides these private methods of Terminus 2: `_execute_commands`,
`_handle_llm_interaction`, `_get_completion_confirmation_message`, `_get_error_response_type`,
`_limit_output_length`, `_summarize` and `_reset_per_run_state`. It also sets `_prompt_template`,
reads `_session`, calls `_llm._build_base_kwargs`, `_llm._extract_usage_info` and
`_llm._handle_litellm_error`, and writes `_api_request_times`, `_summarization_count`,
`chat._messages` and `chat._cumulative_*`.
"""

import asyncio
import json
import re
import shlex
import time

import litellm
from harbor.agents.terminus_2 import Terminus2
from harbor.agents.terminus_2.terminus_2 import Command
from harbor.llms.base import ContextLengthExceededError, LLMResponse

MARKER = "__CMDEND__{}__"
MARKER_LINE = re.compile(r"^.*__CMDEND__\d+__.*\n?", re.MULTILINE)
FIRST_LOOK, LOOK_EVERY = 0.3, 0.5  # seconds
LONGEST_WAIT = 60  # seconds
OUTPUT_BYTES = 30_000
IMAGE_BYTES = 5_000_000
CALL_SECONDS = 900
ATTEMPTS = 5
FINAL_ERRORS = (
    litellm.exceptions.AuthenticationError,
    litellm.exceptions.BadRequestError,
    ContextLengthExceededError,
)
IMAGE_TYPES = {"png": "png", "jpg": "jpeg", "jpeg": "jpeg", "gif": "gif", "webp": "webp"}

PROMPT = """You are an AI agent that solves tasks in a Linux terminal (tmux).

Act only through the tools:
- execute_commands: type commands into the terminal and see the new output. Keystrokes are typed
  exactly as written; end a command with a newline. C-c and C-d are special keys. The duration is
  an upper limit in seconds: the wait ends as soon as the command has finished.
- image_read: look at an image file.
- task_complete: say that the task is done. You will get a checklist; call it again to confirm.

You cannot ask questions. Explore first, then act, then verify your result.

Task description:
{instruction}

Current terminal state:
{terminal_state}
"""

CHECKLIST = """Current terminal state:
{terminal_output}

You said that the task is complete. Before it is graded, go through this checklist:
1. Re-read the task description above. Verify each requirement, one by one, with a command that
   shows the result. Do not rely on memory.
2. Check names, folders, formats, sort orders, permissions and edge cases that the task mentions.
3. Remove temporary files that the task did not ask for; stop what you started and is not needed.
4. Think of what a strict test would look at, and look at it yourself.

If anything is missing, fix it with execute_commands. If everything is verified, call
task_complete again. You cannot make corrections after that.

The task was:
{instruction}
"""

TEXT = {"type": "string"}


def tool(name, description, properties):
    """Return the definition of a tool whose arguments are all required."""
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


COMMAND = {
    "type": "object",
    "properties": {
        "keystrokes": {**TEXT, "description": "Typed as written; end commands with a newline."},
        "duration": {"type": "number", "description": "Seconds to wait at most (60)."},
    },
    "required": ["keystrokes"],
}
TOOLS = [
    tool(
        "execute_commands",
        "Type commands into the terminal, one after the other, and return the new output.",
        {
            "analysis": {**TEXT, "description": "What the terminal shows and what is left to do."},
            "plan": {**TEXT, "description": "What the commands do and what you expect."},
            "commands": {"type": "array", "items": COMMAND},
        },
    ),
    tool("task_complete", "Say that the task is complete.", {}),
    tool(
        "image_read",
        "Look at an image file of the environment and answer a question about it.",
        {"file_path": TEXT, "image_read_instruction": TEXT},
    ),
]


class AgentHarness(Terminus2):
    """Terminus 2 with native tool calls, markers, a larger output cap and a checklist."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._prompt_template = PROMPT
        self._marker = 0
        self._open_calls = []  # identifiers of tool calls that have no answer yet
        self._environment = None
        self._task = ""

    @staticmethod
    def name():
        """Return the name of the agent and of its tmux session."""
        return "terminus-kira"

    async def run(self, instruction, environment, context):
        """Solve the task."""
        self._environment, self._task = environment, instruction
        await super().run(instruction, environment, context)

    def _reset_per_run_state(self):
        super()._reset_per_run_state()
        self._open_calls = []

    def _limit_output_length(self, output, max_bytes=OUTPUT_BYTES):
        return super()._limit_output_length(output, max_bytes)

    def _get_completion_confirmation_message(self, terminal_output):
        return CHECKLIST.format(terminal_output=terminal_output, instruction=self._task)

    def _get_error_response_type(self):
        return "tool call"

    async def _execute_commands(self, commands, session):
        """Type every command and wait for its marker; return the output without markers."""
        for command in commands:
            await self._type(command, session)
        output = MARKER_LINE.sub("", await session.get_incremental_output())
        return False, self._limit_output_length(output.rstrip())  # no empty lines of the screen

    async def _type(self, command, session):
        """Type one command and wait until its marker is printed, or the duration has passed."""
        keys, duration = command.keystrokes, command.duration_sec
        if keys and not keys.endswith("\n"):  # C-c, a key for a pager: no command to wait for
            await session.send_keys(keys, block=False, min_timeout_sec=duration)
            return
        started = time.monotonic()
        if keys:
            await session.send_keys(keys, block=False)
        self._marker += 1
        marker = MARKER.format(self._marker)
        await session.send_keys(f"echo '{marker}'\n", block=False)
        await asyncio.sleep(min(FIRST_LOOK, duration))
        while marker not in (await session.capture_pane()).splitlines():
            left = duration - (time.monotonic() - started)
            if left <= 0:
                return
            await asyncio.sleep(min(LOOK_EVERY, left))

    async def _handle_llm_interaction(self, chat, prompt, original_instruction="", session=None):
        """Send the observation, get tool calls, and turn them into commands."""
        self._answer(chat, prompt)
        while True:
            message, response = await self._ask(chat, original_instruction)
            calls, errors = parsed_calls(message)
            images = [call for call in calls if call["name"] == "image_read"]
            if errors or not images:
                break
            for identifier in self._open_calls:
                call = next(call for call in calls if call["id"] == identifier)
                found = (
                    await self._read_image(**call["arguments"])
                    if call in images
                    else "Not done: call image_read alone, then go on."
                )
                chat.messages.append(result_of(identifier, found))
            self._open_calls = []
        commands, complete, thoughts = [], False, {"analysis": message.get("content") or ""}
        for call in calls:
            complete |= call["name"] == "task_complete"
            if call["name"] == "execute_commands":
                thoughts |= call["arguments"]
                commands += call["commands"]
        feedback = "ERROR: " + "\n".join(errors) if errors else ""
        texts = [str(thoughts.get(name) or "") for name in ("analysis", "plan")]
        return commands, complete and not errors, feedback, *texts, response

    def _answer(self, chat, prompt):
        """Append the observation as the result of the open tool calls, or as a user message."""
        if not self._open_calls:
            chat.messages.append({"role": "user", "content": prompt})
        for place, identifier in enumerate(self._open_calls):
            text = "See the first result." if place else prompt
            chat.messages.append(result_of(identifier, text))
        self._open_calls = []

    async def _ask(self, chat, instruction):
        """Call the model with the tools; return its message and Harbor's record of the answer."""
        try:
            response = await self._complete(chat.messages, tools=TOOLS)
        except ContextLengthExceededError:
            if not self.options.enable_summarize:
                raise
            text, _ = await self._summarize(chat, instruction, self._session)
            chat.messages.append({"role": "user", "content": text})
            response = await self._complete(chat.messages, tools=TOOLS)
        message = response["choices"][0]["message"]
        usage = self._count(chat, response)
        calls = [
            {"id": call.id, "type": "function", "function": call.function.model_dump()}
            for call in message.get("tool_calls") or []
        ]
        kept = {"role": "assistant", "content": message.get("content") or ""}
        if calls:
            kept["tool_calls"] = calls
        chat.messages.append(kept)
        self._open_calls = [call["id"] for call in calls]
        record = LLMResponse(
            content=json.dumps(kept),
            reasoning_content=message.get("reasoning_content"),
            model_name=response.get("model"),
            usage=usage,
        )
        return kept, record

    async def _complete(self, messages, **options):
        """Call the model; retry failed calls, but not refused ones."""
        base = self._llm._build_base_kwargs(None) | self._llm_call_kwargs | options
        if self.options.temperature is not None:
            base["temperature"] = self.options.temperature
        if self.options.reasoning_effort is not None:
            base["reasoning_effort"] = self.options.reasoning_effort
        for attempt in range(1, ATTEMPTS + 1):
            started = time.monotonic()
            try:
                response = await litellm.acompletion(
                    messages=list(messages), timeout=CALL_SECONDS, **base
                )
            except Exception as error:
                if isinstance(error, FINAL_ERRORS):
                    self._llm._handle_litellm_error(error)  # raises, overflow under Harbor's name
                if attempt == ATTEMPTS:
                    raise
                self.logger.warning("Model call %d failed: %s", attempt, error)
                await asyncio.sleep(min(2**attempt, 15))
            else:
                self._api_request_times.append((time.monotonic() - started) * 1000)
                return response

    def _count(self, chat, response):
        """Add the tokens and the cost of a call to the chat's totals."""
        usage = self._llm._extract_usage_info(response)
        if usage is not None:
            chat._cumulative_input_tokens += usage.prompt_tokens
            chat._cumulative_output_tokens += usage.completion_tokens
            chat._cumulative_cache_tokens += usage.cache_tokens
            chat._cumulative_cost += usage.cost_usd
        return usage

    async def _read_image(self, file_path, image_read_instruction):
        """Return what the model sees in an image file of the environment."""
        kind = IMAGE_TYPES.get(file_path.rpartition(".")[2].lower())
        if kind is None:
            return f"{file_path} is not an image of a known type: {', '.join(IMAGE_TYPES)}."
        path = shlex.quote(file_path)
        result = await self._environment.exec(
            f"test $(stat -c %s {path}) -le {IMAGE_BYTES} && base64 -w0 {path}", timeout_sec=30
        )
        if result.return_code != 0:
            return f"Cannot read {file_path}: {result.stderr or 'the file is too large'}"
        url = f"data:image/{kind};base64,{(result.stdout or '').strip()}"
        content = [
            {"type": "text", "text": image_read_instruction},
            {"type": "image_url", "image_url": {"url": url}},
        ]
        response = await self._complete([{"role": "user", "content": content}])
        self._count(self._chat, response)
        return response["choices"][0]["message"].get("content") or "(no answer)"

    async def _summarize(self, chat, original_instruction, session):
        """Replace the conversation by a summary; return the prompt that continues it."""
        self._summarization_count += 1
        lines = [f"{message['role']}: {text_of(message)}" for message in chat.messages[1:]]
        text = "\n".join(lines)[-120_000:]
        try:
            response = await self._complete(
                [
                    {
                        "role": "user",
                        "content": "Summarise this work on a terminal task for the agent that "
                        "continues it: what was done, what was learned, what is left.\n\n" + text,
                    }
                ]
            )
            self._count(chat, response)
            summary = response["choices"][0]["message"].get("content") or ""
        except ContextLengthExceededError:
            summary = text[-4_000:]
        screen = await session.capture_pane()
        chat._messages = []
        chat.reset_response_chain()
        self._open_calls = []
        prompt = PROMPT.format(instruction=original_instruction, terminal_state=screen)
        return f"{prompt}\nSummary of the work so far:\n{summary}\n", None


def result_of(identifier, text):
    """Return the message that answers a tool call."""
    return {"role": "tool", "tool_call_id": identifier, "content": text}


def text_of(message):
    """Return the text of a message, with its tool calls as JSON."""
    calls = [call["function"] for call in message.get("tool_calls", [])]
    return f"{message.get('content') or ''} {json.dumps(calls) if calls else ''}".strip()


def parsed_calls(message):
    """Return the tool calls of a message as dictionaries, and what is wrong with them."""
    calls, errors = [], []
    if not message.get("tool_calls"):
        errors.append("No tool call. Use execute_commands, image_read or task_complete.")
    for call in message.get("tool_calls", []):
        name = call["function"]["name"]
        try:
            arguments = json.loads(call["function"]["arguments"] or "{}")
            parsed = {"id": call["id"], "name": name, "arguments": arguments}
            if name == "execute_commands":
                parsed["commands"] = [
                    Command(
                        keystrokes=str(entry["keystrokes"]),
                        duration_sec=min(float(entry.get("duration", 1.0)), LONGEST_WAIT),
                    )
                    for entry in arguments["commands"]
                ]
            elif name == "image_read":
                parsed["arguments"] = {
                    key: str(arguments[key]) for key in ("file_path", "image_read_instruction")
                }
            elif name != "task_complete":
                errors.append(f"Unknown tool {name!r}.")
            calls.append(parsed)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            errors.append(f"The arguments of {name} are not as defined: {error!r}.")
    return calls, errors
