"""What a harness gets: a model, a task, and examples."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Prompt = str | list[dict[str, str]]


class InterfaceError(Exception):
    """A candidate that does not implement the interface of harnesses."""


class Model:
    """The language model, as a harness sees it.

    `model(prompt)` is its answer as text. A prompt is one text, or a list of messages such as
    `{"role": "user", "content": "..."}`.
    """

    def __init__(self) -> None:
        self._facts: dict[str, Any] = {}

    def __call__(
        self,
        prompt: Prompt,
        *,
        max_tokens: int | None = None,
        temperature: float | None = None,
        stop: list[str] | None = None,
        sample: int = 0,
    ) -> str:
        """The model's answer; another `sample` is another answer to the same prompt."""
        given = {"max_tokens": max_tokens, "temperature": temperature, "stop": stop}
        options = {name: value for name, value in given.items() if value is not None}
        text: str = _ask(prompt, **options, **({"sample": sample} if sample else {}))["text"]
        return text

    def choose(self, prompt: Prompt, choices: list[str]) -> str:
        """The model's answer, constrained to one of the choices."""
        text: str = _ask(prompt, choices=_checked(choices))["text"]
        return text

    def scores(self, prompt: Prompt, choices: list[str]) -> dict[str, float]:
        """The log-probability of every choice; only where the model `gives_scores`."""
        found: dict[str, float] | None
        found = _ask(prompt, choices=_checked(choices), scores=True)["scores"]
        if found is None:
            raise InterfaceError("this model gives no scores; check model.gives_scores first")
        return found

    def count(self, text: str) -> int:
        """How many tokens the model reads in a text."""
        counted: list[int] = _host("count", texts=[text])
        return counted[0]

    @property
    def window(self) -> int | None:
        """Tokens of prompt and answer together, at most; None if unknown."""
        found: int | None = self._fact("window")
        return found

    @property
    def gives_scores(self) -> bool:
        """Whether `scores` works."""
        return bool(self._fact("scores"))

    @property
    def completes(self) -> bool:
        """Whether the model continues the text of a prompt, instead of answering a message."""
        # Only local models give scores, and only they get the bare text.
        return self.gives_scores

    def _fact(self, name: str) -> Any:
        if not self._facts:
            self._facts = _host("model_facts")
        return self._facts.get(name)


class Task:
    """The task of a set of questions.

    `instructions` describe it. `labels` are all possible answers, or None where they are unknown.
    """

    def __init__(
        self, instructions: str, labels: list[str] | None = None, template: str | None = None
    ) -> None:
        self.instructions, self.labels = instructions, labels
        given = template or f"{instructions}\n\n{{question}}"
        self._before, _, self._after = given.partition("{question}")

    def prompt(self, question: str) -> str:
        """The full text of the task for one question, for a large model."""
        return self._before + question + self._after


class Example:
    """A question with its answer; in online learning also with the prediction."""

    def __init__(
        self,
        question: str,
        answer: str,
        prediction: str | None = None,
        correct: bool | None = None,
    ) -> None:
        self.question, self.answer = question, answer
        self.prediction, self.correct = prediction, correct


def shown(value: object) -> str:
    """A value in an error message."""
    return f"{type(value).__name__} {value!r:.80}"


def _ask(prompt: object, **options: object) -> dict[str, Any]:
    if isinstance(prompt, str):
        request: dict[str, object] = {"prompt": prompt}
    elif isinstance(prompt, list) and prompt:
        request = {"messages": prompt}
    else:
        raise InterfaceError(f"a prompt must be a text or a list of messages, got {shown(prompt)}")
    reply: dict[str, Any] = _host("model", **request, **options)
    return reply


def _checked(choices: object) -> list[str]:
    listed = list(choices) if isinstance(choices, (list, tuple)) else []
    if not listed or not all(isinstance(choice, str) and choice for choice in listed):
        raise InterfaceError(f"choices must be a list of texts, got {shown(choices)}")
    return list(dict.fromkeys(listed))


def _host(service: str, **payload: object) -> Any:
    import coevolve_host  # type: ignore[import-not-found]

    return coevolve_host.ask(service, **payload)
