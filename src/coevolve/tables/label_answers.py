"""The model's log-probabilities of all labels after a prompt, and the answers that follow.

Requests with some of the labels, as choices or for scores, are answered from the scores of all.
So harnesses that differ only in what they do with the answers share the model's work. What the
model writes freely is kept too.
"""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from coevolve.errors import InputError
from coevolve.models.batched.token_trees import NONE, LabelTree, label_tree


class SpeltLabels:
    """The labels of a set in tokens, after prompts of one kind.

    Args:
        spelt: The tokens of each label.
        ends: The tokens that end an answer.
    """

    def __init__(self, spelt: Mapping[str, Sequence[int]], ends: Sequence[int]) -> None:
        self.spelt = {label: tuple(tokens) for label, tokens in spelt.items()}
        self.ends = tuple(ends)
        self.tree: LabelTree = label_tree(self.spelt.values(), self.ends)
        paths: dict[tuple[int, ...], int] = {(): NONE}
        for number, (token, parent) in enumerate(self.tree.steps):
            before = next(path for path, node in paths.items() if node == parent)
            paths[(*before, token)] = number
        wanted = {pair: place for place, pair in enumerate(self.tree.wanted)}
        self._at = {
            (path, token): wanted[node, token]
            for path, node in paths.items()
            for token in {pair[1] for pair in wanted if pair[0] == node}
        }
        self._sums = {
            label: [self._at[tokens[:n], token] for n, token in enumerate(tokens)]
            for label, tokens in self.spelt.items()
        }

    def scores(self, values: NDArray[np.float32]) -> dict[str, float]:
        """The log-probability of every label."""
        exact = values.astype(float).tolist()
        return {label: sum(exact[place] for place in sums) for label, sums in self._sums.items()}

    def chosen(self, values: NDArray[np.float32], choices: Iterable[str]) -> tuple[str, int]:
        """The choice that the model writes token by token, and its number of tokens."""
        left = {self.spelt[choice]: choice for choice in reversed(list(choices))}
        path: tuple[int, ...] = ()
        while any(len(tokens) > len(path) for tokens in left):
            allowed = dict.fromkeys(t[len(path)] for t in reversed(left) if len(t) > len(path))
            if path in left:
                allowed.update(dict.fromkeys(self.ends))
            token = next(iter(allowed))
            if len(allowed) > 1:
                likely = {token: values[self._at[path, token]] for token in allowed}
                token = max(likely, key=likely.__getitem__)
            if path in left and token in self.ends:
                break
            path = (*path, token)
            left = {t: choice for t, choice in left.items() if t[: len(path)] == path}
        return left[path], len(path)


@dataclass(frozen=True, slots=True)
class Answered:
    """A prompt's number of tokens, and the log-probabilities its tree of labels wants."""

    tokens: int
    values: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Request:
    """A request that lets the model write: a prompt, a limit in tokens, and texts that end it."""

    prompt: str
    limit: int
    stops: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Written:
    """A prompt's number of tokens, what the model wrote after it, and the tokens of that."""

    tokens: int
    text: str
    wrote: int


def database(file: Path, *tables: str) -> sqlite3.Connection:
    """The database in a file, with some tables; it is made if it does not exist.

    Raises:
        InputError: The file is no database.
    """
    base = sqlite3.connect(file)
    try:
        for table in tables:
            base.execute(f"create table if not exists {table}")
    except sqlite3.DatabaseError as error:
        base.close()
        raise InputError(
            f"the database {file} cannot be used ({error}); remove it to begin anew."
        ) from error
    return base


class AnswerStore:
    """Answers on disk, by request; only hashes of prompts are kept.

    Args:
        file: The database; it is made if it does not exist.
        identity: What the answers depend on: the model, its arithmetic and the labels.
    """

    def __init__(self, file: Path, identity: str) -> None:
        self._identity = identity.encode()
        self._base = database(
            file,
            "answers (key blob primary key, tokens int, vals blob)",
            "texts (key blob primary key, tokens int, text text, wrote int)",
        )
        self._known: dict[bytes, Answered] = {}

    def get(self, prompt: str) -> Answered | None:
        """What the model said of the labels after a prompt, if it was asked."""
        key = self._key(prompt)
        if key not in self._known:
            found = self._base.execute(
                "select tokens, vals from answers where key = ?", (key,)
            ).fetchone()
            if found is None:
                return None
            self._known[key] = Answered(found[0], np.frombuffer(found[1], np.float32))
        return self._known[key]

    def put(self, answers: Mapping[str, Answered]) -> None:
        """Keep some answers."""
        with self._base:
            self._base.executemany(
                "insert or replace into answers values (?, ?, ?)",
                [
                    (self._key(prompt), one.tokens, one.values.astype(np.float32).tobytes())
                    for prompt, one in answers.items()
                ],
            )

    def written(self, request: Request) -> Written | None:
        """What the model wrote, if it was asked."""
        found = self._base.execute(
            "select tokens, text, wrote from texts where key = ?", (self._key_of(request),)
        ).fetchone()
        return None if found is None else Written(*found)

    def put_written(self, texts: Mapping[Request, Written]) -> None:
        """Keep what the model wrote."""
        with self._base:
            self._base.executemany(
                "insert or replace into texts values (?, ?, ?, ?)",
                [
                    (self._key_of(request), one.tokens, one.text, one.wrote)
                    for request, one in texts.items()
                ],
            )

    def forget(self) -> None:
        """Drop what is in memory."""
        self._known.clear()

    def close(self) -> None:
        """Close the database."""
        self._base.close()

    def _key(self, prompt: str) -> bytes:
        return sha256(self._identity + b"\0" + prompt.encode()).digest()

    def _key_of(self, request: Request) -> bytes:
        return self._key(f"{request.limit} {request.stops!r}\0{request.prompt}")


class LabelModel:
    """A harness's model that answers from a store, and records what the store lacks.

    A request that the store lacks gets a stand-in answer and goes to `missing` or `unwritten`;
    what the harness makes of it must be thrown away.

    Args:
        store: The answers.
        spelt: The labels after prompts that end with white space, and after others.

    Attributes:
        missing: Prompts whose labels have no scores.
        unwritten: Requests that let the model write, without an answer.
        requested: All prompts, answered or not; `writing` are those that let the model write.
        tokens_in, tokens_out: What the requests since `begin` read and wrote.
        offered: The choices of all requests since `begin`.
        prompts: Their prompts.
    """

    completes = gives_scores = True
    window = 8192

    def __init__(self, store: AnswerStore, spelt: Mapping[bool, SpeltLabels]) -> None:
        self._store, self._spelt = store, spelt
        self.missing: dict[str, None] = {}
        self.unwritten: dict[Request, None] = {}
        self.requested: dict[str, None] = {}
        self.writing: dict[Request, None] = {}
        self._scores: dict[str, dict[str, float]] = {}
        self._chosen: dict[tuple[str, tuple[str, ...]], tuple[str, int]] = {}
        self.begin()

    def begin(self) -> None:
        """Begin a trial."""
        self.tokens_in = self.tokens_out = 0
        self.offered: set[str] = set()
        self.prompts: list[str] = []

    @property
    def incomplete(self) -> bool:
        """Whether a request had a stand-in answer."""
        return bool(self.missing or self.unwritten)

    def forget(self) -> None:
        """Drop what is in memory."""
        self._scores.clear()
        self._chosen.clear()
        self._store.forget()

    def forget_requests(self) -> None:
        """Forget which requests were made."""
        for made in (self.missing, self.unwritten, self.requested, self.writing):
            made.clear()

    def choose(self, prompt: str, choices: Sequence[str]) -> str:
        """The choice that the model would write."""
        spelt, found, given = self._request(prompt, choices)
        if found is None:
            return given[0]
        key = (prompt, given)
        if key not in self._chosen:
            self._chosen[key] = spelt.chosen(found.values, given)
        choice, written = self._chosen[key]
        self.tokens_in += found.tokens
        self.tokens_out += written
        return choice

    def scores(self, prompt: str, choices: Sequence[str]) -> dict[str, float]:
        """The log-probability of every choice."""
        spelt, found, given = self._request(prompt, choices)
        if found is None:
            return dict.fromkeys(given, 0.0)
        if prompt not in self._scores:
            self._scores[prompt] = spelt.scores(found.values)
        self.tokens_in += found.tokens + sum(len(spelt.spelt[choice]) for choice in given)
        every = self._scores[prompt]
        return {choice: every[choice] for choice in given}

    def __call__(
        self,
        prompt: object,
        *,
        max_tokens: int | None = None,
        temperature: float | None = None,
        stop: Sequence[str] | None = None,
        sample: int = 0,
    ) -> str:
        """What the model writes after a prompt, each time the most probable token."""
        if not isinstance(prompt, str):
            raise InputError("a harness of a table must give the model a text, not messages.")
        if temperature or sample:
            raise InputError("a harness of a table cannot sample answers; they would not repeat.")
        if max_tokens is None:
            raise InputError("a harness of a table must limit what the model writes (max_tokens).")
        request = Request(prompt, max_tokens, tuple(stop or ()))
        self.prompts.append(prompt)
        self.writing.setdefault(request)
        found = self._store.written(request)
        if found is None:
            self.unwritten.setdefault(request)
            return ""
        self.tokens_in += found.tokens
        self.tokens_out += found.wrote
        return found.text

    def _request(
        self, prompt: str, choices: Sequence[str]
    ) -> tuple[SpeltLabels, Answered | None, tuple[str, ...]]:
        spelt = self._spelt[prompt[-1:].isspace()]
        given = tuple(dict.fromkeys(choices))
        for choice in given:
            if choice not in spelt.spelt:
                raise InputError(f"a harness offers {choice!r}, which is not a label of the set.")
        self.offered.update(given)
        self.prompts.append(prompt)
        self.requested.setdefault(prompt)
        found = self._store.get(prompt)
        if found is None:
            self.missing.setdefault(prompt)
        return spelt, found, given
