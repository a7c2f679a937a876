"""What users name as a harness: a folder, a file, a candidate, or one of the benchmark."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from coevolve.errors import CandidateError, InputError, nearest
from coevolve.runs.session import read_state
from coevolve.search.acceptance import clean
from coevolve.search.candidate import Candidate, Files, check_files, read_folder
from coevolve.search.run_state import RunState
from coevolve.store import RunStore

_JOURNAL = "run.db"


@dataclass(frozen=True, slots=True, kw_only=True)
class HarnessSource:
    """A harness to evaluate: its files, and the run it is a candidate of, if any.

    `harness` is what the user wrote.
    """

    harness: str
    files: Files
    run: Path | None = None
    candidate: str = ""

    @property
    def name(self) -> str:
        """A name for a journal."""
        return clean(self.candidate or Path(self.harness).resolve().name)

    @property
    def address(self) -> str:
        """The address of its files."""
        return Candidate.of(self.files, name=self.name).address


class HarnessFinder:
    """Finds harnesses by the words of a user.

    Args:
        run: The run whose candidates may be named, if there is one.
        starts: The starting harnesses of the benchmark, which may be named, too.
        built_in: The folders of other harnesses that the benchmark includes, by name.
    """

    def __init__(
        self,
        run: Path | None,
        starts: Mapping[str, Files],
        built_in: Mapping[str, Path] | None = None,
    ) -> None:
        self._run, self._starts, self._built_in = run, starts, built_in or {}
        self._states: dict[Path, RunState] = {}

    def find(self, words: Sequence[str]) -> list[HarnessSource]:
        """The harnesses of some words, in their order.

        Raises:
            InputError: One is unknown, or two have the same files.
        """
        if not words:
            raise InputError("name one or more harnesses: folders, files or candidates of a run.")
        found: list[HarnessSource] = []
        for word in words:
            if word in [other.harness for other in found]:
                raise InputError(f"{word!r} is named twice; name it once.")
            one = self._find(word)
            twin = next((other for other in found if other.address == one.address), None)
            if twin is not None:
                raise InputError(
                    f"{word!r} and {twin.harness!r} have the same files; leave out one of them."
                )
            found.append(one)
        return found

    def _find(self, word: str) -> HarnessSource:
        path, named = Path(word).expanduser(), self._named(word)
        if named is not None and path.exists():
            where = f"a candidate of {self._run}" if named.run else "a harness of the benchmark"
            raise InputError(
                f"{word!r} is {where}, and a path here; write './{word}' for the path."
            )
        if named is not None:
            return named
        if (path.parent / _JOURNAL).exists() and not path.exists():
            return self._candidate(word, path.parent, path.name)
        if path.is_dir() and (path / _JOURNAL).exists():
            raise InputError(f"{word!r} is a run, not a harness; name a candidate: {word}/NAME.")
        if path.is_dir():
            return HarnessSource(harness=word, files=_folder(word, path))
        if path.is_file():
            files = {path.name: path.read_bytes()}
            check_files(files, path.name)
            return HarnessSource(harness=word, files=files)
        raise InputError(f"there is no harness {word!r}: {self._known(word)}")

    def _named(self, word: str) -> HarnessSource | None:
        """A candidate of the run, or else a starting harness, of this name."""
        if self._run is not None and word in self._state(self._run).candidates:
            return self._candidate(word, self._run, word)
        if word in self._starts:
            return HarnessSource(harness=word, files=self._starts[word])
        if word in self._built_in:
            return HarnessSource(harness=word, files=read_folder(self._built_in[word]))
        return None

    def _candidate(self, word: str, run: Path, name: str) -> HarnessSource:
        state = self._state(run)
        if name not in state.candidates:
            raise InputError(
                f"{run} has no candidate {name!r}.{nearest(name, state.candidates)} `coevolve "
                f"status {run}` lists its candidates."
            )
        with RunStore.read(run) as store:
            files = {
                path: store.get(address)
                for path, address in state.candidates[name].candidate.files.items()
            }
        own = None if state.evaluation else run.resolve()
        return HarnessSource(harness=word, files=files, run=own, candidate=name)

    def _state(self, run: Path) -> RunState:
        if run not in self._states:
            self._states[run] = read_state(run)
        return self._states[run]

    def _known(self, word: str) -> str:
        run = self._run
        own = dict.fromkeys([*self._starts, *self._built_in])
        names = [*(() if run is None else self._state(run).candidates), *own]
        of_run = "" if run is None else f", not a candidate of {run}"
        return (
            f"it is not a folder or file here{of_run} and not a harness of the benchmark "
            f"({', '.join(own)}).{nearest(word, names)}"
        )


def _folder(word: str, path: Path) -> Files:
    try:
        return read_folder(path)
    except CandidateError as error:
        raise InputError(
            f"{word!r} is not a harness: {error} Name a folder or file with the code of a harness."
        ) from error
