"""Evaluates any harness, in full or on chosen tasks, with the configured or another model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from coevolve.core.outcomes import MOST_TRIALS
from coevolve.core.pool import Pool
from coevolve.errors import ChangedBenchmarkError, InputError, nearest
from coevolve.runs.building import build_benchmark, check_model, priced
from coevolve.runs.config import RunConfig, read_config
from coevolve.runs.config_overrides import Override
from coevolve.runs.evaluation_place import EvaluationPlace
from coevolve.runs.harness_sources import HarnessFinder, HarnessSource
from coevolve.runs.model_choice import with_model
from coevolve.runs.rescoring import Listen, check_number, recorded, rescored, silent
from coevolve.runs.run import Run, blocking
from coevolve.runs.session import (
    check_home,
    opening_of,
    read_state,
    recorded_config,
    run_folder,
    test_pool,
)
from coevolve.search.requesting import READY, can_request, pool_of
from coevolve.store import RunStore, owner
from coevolve.views.report import sealed_warning
from coevolve.views.score_table import (
    Scored,
    ScoreRow,
    ScoreTable,
    Split,
    chosen_pool,
    is_recorded,
    kind_of,
    score_rows,
)


def evaluate(
    harnesses: Sequence[Path | str] | Path | str,
    *,
    config: Path | str | Mapping[str, Any] | None = None,
    run: Path | str | None = None,
    split: Split = "validation",
    models: Sequence[str] | str = (),
    tasks: Sequence[str] | None = None,
    trials: int | None = None,
    workers: int | None = None,
    listen: Listen = silent,
) -> ScoreTable:
    """Evaluate harnesses with the benchmark of a configuration or a run.

    Candidates of a run that are evaluated as the run would do it are recorded in its journal, all
    others in the folder `evaluations` of the project. What is recorded is not evaluated again: the
    same call continues one that was interrupted. The run is `run`, or that of the file `config`.

    Args:
        harnesses: Folders, files, names of candidates of `run`, `RUN/CANDIDATE`, or names of
            harnesses that the benchmark has.
        config: A TOML file, or a configuration like that in a TOML file; that of `run` if left
            out.
        run: The folder of a run whose candidates may be named; that of the file `config` if left
            out, if it has one.
        split: "validation", or "test" for the sealed test.
        models: Other models than the configured one: names, or keys of `[model]` such as
            "name=openai/gpt-5-mini,temperature=0.7".
        tasks: The tasks to run; all if left out.
        trials: Trials of each task; as in the configuration if left out.
        workers: Trials at once; as in the configuration if left out.
        listen: Called with every event, after its effect.

    Raises:
        InputError: A harness, a task or a setting is unknown or not valid.
        StopRun: The operator must act before the evaluation can continue.

    >>> evaluate("harnesses/mine")
    Traceback (most recent call last):
    coevolve.errors.InputError: evaluate needs a configuration or a run.
    """
    plan = plan_evaluation(
        [harnesses] if isinstance(harnesses, str | Path) else harnesses,
        config=config,
        run=run,
        split=split,
        models=[models] if isinstance(models, str) else models,
        tasks=tasks,
        trials=trials,
        workers=workers,
    )
    return blocking(lambda: plan.run(listen))


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationPlan:
    """What to evaluate, and where it is recorded; nothing is evaluated before `run`.

    `own` has, for each of the places, the harnesses that belong to the journal of the run in
    `folder`, with the names of their candidates there.
    """

    sources: tuple[HarnessSource, ...]
    places: tuple[EvaluationPlace, ...]
    split: Split
    pool: Pool
    tasks: tuple[str, ...] | None
    trials: int
    workers: int | None
    folder: Path | None
    own: tuple[Mapping[str, str], ...]

    def warnings(self) -> tuple[str, ...]:
        """What to know about the sealed test, as if all were evaluated already."""
        if self.split != "test":
            return ()
        place = self.places[0]
        used = place.tested() | {source.address for source in self.sources} - place.starts()
        if self.folder is not None:
            state = read_state(self.folder)
            used |= {state.candidates[name].candidate.address for name in state.tested}
        warning = sealed_warning(len(used))
        return (warning,) if warning else ()

    async def run(self, listen: Listen = silent) -> ScoreTable:
        """Evaluate what is not recorded yet, and make the table."""
        rows: list[ScoreRow] = []
        for place, own in zip(self.places, self.own, strict=True):
            others = [source for source in self.sources if source.harness not in own]
            found = {one.harness: one for one in await self._in_run(own, listen)}
            found |= {one.harness: one for one in await self._in_place(place, others, listen)}
            ordered = [found[source.harness] for source in self.sources]
            model = place.config.model
            rows += score_rows(
                place.label,
                ordered,
                self.pool,
                confidence=self._confidence,
                priced=model is None or model.has_prices,
            )
        return ScoreTable(
            rows=tuple(rows),
            split=self.split,
            tasks=len(self.pool),
            trials=self.trials,
            confidence=self._confidence,
            warnings=self.warnings(),
        )

    @property
    def _confidence(self) -> float:
        return float(self.places[0].config.search.confidence)

    async def _in_run(self, names: Mapping[str, str], listen: Listen) -> list[Scored]:
        """The harnesses that belong to the journal of the run."""
        if self.folder is None or not names:
            return []
        try:
            return await rescored(
                self.folder, names, self.split, workers=self.workers, listen=listen
            )
        except ChangedBenchmarkError as error:
            raise ChangedBenchmarkError(
                f"{error} To score candidates with the changed benchmark, apart from the run, "
                "name the configuration: --config FILE.toml (in Python: config=...)."
            ) from None

    async def _in_place(
        self, place: EvaluationPlace, sources: Sequence[HarnessSource], listen: Listen
    ) -> list[Scored]:
        """The other harnesses."""
        if not sources:
            return []
        leaks = [place.leaks(source.harness, source.files) for source in sources]
        what: dict[str, Any] = {"tasks": self.tasks, "trials": self.trials}
        with place.session(workers=self.workers, listen=listen) as requesting:
            try:
                names = {
                    source.harness: requesting.add(source.name, source.files, found)
                    for source, found in zip(sources, leaks, strict=True)
                }
                await requesting.prepare(list(names.values()))
                await requesting.run(list(names.values()), kind_of(self.split), **what)
            finally:
                await requesting.close()
        return recorded(place.folder, names, self.split, **what)


def plan_evaluation(
    harnesses: Sequence[Path | str],
    *,
    config: Path | str | Mapping[str, Any] | None = None,
    run: Path | str | None = None,
    split: str = "validation",
    models: Sequence[str] = (),
    tasks: Sequence[str] | Callable[[Pool], Sequence[str]] | None = None,
    trials: int | None = None,
    workers: int | None = None,
    overrides: Sequence[Override] = (),
) -> EvaluationPlan:
    """Check everything that can be checked before the first trial.

    Arguments are as for `evaluate`; `tasks` may also be a function that chooses from a pool.
    `overrides` are other values in place of those in the file `config`.
    """
    split = _split(split)
    check_number("trials", trials, MOST_TRIALS)
    check_number("workers", workers)
    folder = None if run is None else Path(run)
    settings, base = _project(config, folder, overrides)
    if folder is None and isinstance(config, str | Path):
        of_file = Run(run_folder(Path(config), settings))
        folder = of_file.folder if of_file.started else None
    places = []
    for text in models or [""]:
        known = priced(with_model(settings, text, base) if text or models else settings)
        known = RunConfig.from_json(known.to_json(), folder=base)  # the same from file and run
        check_model(known, base)
        benchmark = build_benchmark(known, base)
        place = EvaluationPlace(config=known, base=base, benchmark=benchmark, given=text)
        places.append(place)
    _check_models(places)
    first = places[0]
    finder = HarnessFinder(folder, first.benchmark.starts, settings.benchmark.harnesses())
    sources = finder.find([str(harness) for harness in harnesses])
    whole = _pool(first, split)
    chosen = None if tasks is None else tuple(tasks(whole) if callable(tasks) else tasks)
    pool = chosen_pool(whole, chosen)
    count = settings.search.trials if trials is None else trials
    own: list[Mapping[str, str]] = []
    for place in places:
        names: dict[str, str] = {}
        if folder is not None and chosen is None and read_state(folder).trials == count:
            names = _candidates(sources, folder)
            if config is not None or models:
                names = _joining(place, names, sources, folder, split)
        own.append(names)
    return EvaluationPlan(
        sources=tuple(sources),
        places=tuple(places),
        split=split,
        pool=pool,
        tasks=chosen,
        trials=count,
        workers=workers,
        folder=folder,
        own=tuple(own),
    )


def _candidates(sources: Sequence[HarnessSource], folder: Path) -> dict[str, str]:
    """The candidates of a run, by harness: those named, and those with the same files.

    Of the latter, only ones that can be evaluated.
    """
    known = {
        one.candidate.address: name
        for name, one in reversed(read_state(folder).candidates.items())
        if one.status in READY
    }
    found = {}
    for source in sources:
        if source.run == folder.resolve():
            found[source.harness] = source.candidate
        elif source.run is None and source.address in known:
            found[source.harness] = known[source.address]
    return found


def _joining(
    place: EvaluationPlace,
    names: Mapping[str, str],
    sources: Sequence[HarnessSource],
    folder: Path,
    split: Split,
) -> dict[str, str]:
    """The candidates whose evaluations join the journal of a run: it scores in the same way.

    A candidate is evaluated apart from the run if it was already, or if the run cannot take its
    evaluation now.
    """
    if not names or not place.is_that_of(folder):
        return {}
    state, busy = read_state(folder), owner(folder) is not None
    addresses = {source.harness: source.address for source in sources}
    tasks = pool_of(state, split).tasks
    found = {}
    for harness, name in names.items():
        elsewhere = place.has(addresses[harness], split, tasks, state.trials)
        takes = not busy and not elsewhere and can_request(state, name, kind_of(split))
        if takes or is_recorded(state, name, split):
            found[harness] = name
    return found


def _split(split: str) -> Split:
    known: tuple[Split, ...] = get_args(Split)
    for one in known:
        if split == one:
            return one
    raise InputError(
        f"the split must be {' or '.join(map(repr, known))}, got {split!r}."
        + nearest(split, known)
    )


def _check_models(places: Sequence[EvaluationPlace]) -> None:
    for at, place in enumerate(places):
        if any(other.folder == place.folder for other in places[:at]):
            raise InputError(f"the model {place.label!r} is named twice; name it once.")


def _pool(place: EvaluationPlace, split: Split) -> Pool:
    pool = place.benchmark.pool if split == "validation" else test_pool(place.benchmark)
    if pool is None:
        raise InputError(
            "the benchmark has no sealed test, so there is no split 'test'; use the split "
            "'validation', or give the benchmark test tasks."
        )
    return pool


def _project(
    config: Path | str | Mapping[str, Any] | None,
    run: Path | None,
    overrides: Sequence[Override],
) -> tuple[RunConfig, Path]:
    """The configuration, and the folder that its paths are relative to."""
    if isinstance(config, Mapping):
        settings = RunConfig.from_json(config)
        settings.check_paths(Path())
        return settings, Path()
    if config is not None:
        return read_config(Path(config), overrides=overrides), Path(config).parent
    if run is None:
        raise InputError("evaluate needs a configuration or a run.")
    with RunStore.read(run) as store:
        opened = opening_of(store)
    settings, base = recorded_config(opened, run)
    check_home(opened, run, settings, base)
    return settings, base
