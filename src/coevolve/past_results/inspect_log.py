"""Logs of Inspect (inspect_ai): `.eval` archives and `.json` files, read without Inspect.

An archive has `header.json` with the evaluation and `summaries.json` with the scores of all
samples. The archive of an evaluation that was cut short has the same in `_journal/`.
"""

import json
import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from coevolve.errors import HistoryError, nearest
from coevolve.past_results.result_rows import Row, Rows

LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, "yes": 1.0, "no": 0.0}
"""Values that scorers of Inspect write for correct, partly correct, incorrect, no answer."""
MOST_BYTES = 500_000_000
"""Size of one file of an archive, unpacked."""
_ZSTD = 93
"""Zip's number for Zstandard, which Python reads from version 3.14 on."""
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    OverflowError,
    RuntimeError,  # encrypted, or NotImplementedError: an unknown compression
    ValueError,
)
_LOCAL = struct.Struct("<26xHH")
"""The end of a local header in a zip file: lengths of the name and of the extra field."""


def read_inspect(path: Path, rows: Rows, scorer: str | None = None) -> bool:
    """Add the scores of all samples in a log.

    The candidate is `candidate` in the metadata or the arguments of the evaluation, or else its
    solver, or else its model. The task is the id of the sample, and the trial its epoch.

    Args:
        path: The log.
        rows: Where to add them.
        scorer: Which score counts, if samples have several.
    """
    evaluation, samples = _archived(path) if path.suffix == ".eval" else _plain(path)
    candidate = _candidate(evaluation)
    for number, sample in enumerate(samples, start=1):
        if not isinstance(sample, Mapping) or "id" not in sample:
            raise rows.wrong(number, "id", f"a sample with an id is needed, got {sample!r:.80}.")
        epoch = sample.get("epoch", 1)
        if epoch.__class__ is not int:
            raise rows.wrong(number, "epoch", f"it must be a whole number, got {epoch!r:.80}.")
        value = _score(sample, rows, number, scorer)
        rows.add(number, Row(candidate, sample["id"], value, epoch - 1, _cost(sample)))
    return True


def _plain(path: Path) -> tuple[Any, list[Any]]:
    log = _parsed(path.read_bytes(), str(path))
    if not isinstance(log, dict) or not isinstance(log.get("eval"), dict):
        raise HistoryError(
            f"{path}: this is not a log of Inspect, which has the key 'eval'. Tables of results "
            "are read from .csv, .jsonl and .parquet files."
        )
    samples = log.get("samples")
    if not isinstance(samples, list):
        raise HistoryError(f"{path}: the log has no samples; it may have only a header.")
    return log["eval"], samples


def _archived(path: Path) -> tuple[Any, list[Any]]:
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
            head = next((n for n in ("header.json", "_journal/start.json") if n in names), None)
            if head is None:
                raise HistoryError(f"{path}: this archive is not a log of Inspect.")
            found = _parsed(_unpacked(path, archive, head), f"{path}, {head}")
            if not isinstance(found, dict) or not isinstance(found.get("eval"), dict):
                raise HistoryError(f"{path}, {head}: it does not describe an evaluation.")
            return found["eval"], list(_samples(path, archive, names))
    except HistoryError:
        raise
    except _DAMAGE as error:
        raise HistoryError(f"{path}: this is not a log of Inspect: {error}.") from None


def _samples(path: Path, archive: zipfile.ZipFile, names: set[str]) -> Iterator[Any]:
    parts = [n for n in names if n.startswith("_journal/summaries/") and n.endswith(".json")]
    sources = ["summaries.json"] if "summaries.json" in names else sorted(parts)
    sources = sources or sorted(n for n in names if n.startswith("samples/"))
    for name in sources:
        found = _parsed(_unpacked(path, archive, name), f"{path}, {name}")
        yield from found if isinstance(found, list) else [found]


def _unpacked(path: Path, archive: zipfile.ZipFile, name: str) -> bytes:
    info = archive.getinfo(name)
    if info.file_size > MOST_BYTES:
        raise HistoryError(f"{path}, {name}: it has {info.file_size:,} bytes, too many to read.")
    try:
        return archive.read(info)
    except NotImplementedError:
        if info.compress_type != _ZSTD or info.flag_bits & 1:
            raise
    with path.open("rb") as file:
        file.seek(info.header_offset)
        skipped = sum(_LOCAL.unpack(file.read(_LOCAL.size)))
        file.seek(info.header_offset + _LOCAL.size + skipped)
        packed = file.read(info.compress_size)
    return _zstd(packed, info.file_size, path)


def _zstd(packed: bytes, size: int, path: Path) -> bytes:
    try:
        import pyarrow  # type: ignore[import-untyped]
    except ImportError:
        raise HistoryError(
            f"{path}: it is compressed with Zstandard, which needs pyarrow here: pip install "
            "'task-coevolve[parquet]'. Or convert the log: inspect log convert --to json."
        ) from None
    try:
        data: bytes = pyarrow.decompress(packed, size, codec="zstd", asbytes=True)
        return data
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise HistoryError(f"{path}: it is damaged: {error}.") from None


def _parsed(data: bytes, where: str) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise HistoryError(f"{where}: this is not JSON: {str(error)[:200]}.") from None


def _candidate(evaluation: Mapping[str, Any]) -> Any:
    for key in ("metadata", "task_args"):
        named = evaluation.get(key)
        if isinstance(named, Mapping) and named.get("candidate"):
            return named["candidate"]
    return evaluation.get("solver") or evaluation.get("model")


def _score(sample: Mapping[str, Any], rows: Rows, number: int, scorer: str | None) -> Any:
    """The value of a sample's score; None if it has none, as after an error."""
    scores = sample.get("scores") or {}
    if not isinstance(scores, Mapping):
        raise rows.wrong(number, "scores", f"it must be an object, got {scores!r:.80}.")
    if not scores:
        return None
    names = list(scores)
    if scorer is None and len(names) > 1:
        raise rows.wrong(
            number,
            "scores",
            f"there are several: {', '.join(names[:10])}; choose one with --scorer (in Python: "
            "scorer=...).",
        )
    chosen = names[0] if scorer is None else scorer
    if chosen not in scores:
        raise rows.wrong(
            number,
            "scores",
            f"there is no score {chosen!r}, only {', '.join(names[:10])}."
            + nearest(chosen, names),
        )
    found = scores[chosen]
    value = found.get("value") if isinstance(found, Mapping) else found
    if isinstance(value, list | Mapping):
        raise rows.wrong(number, chosen, f"a score must be one number, got {value!r:.80}.")
    return LETTERS.get(value, value) if isinstance(value, str) else value


def _cost(sample: Mapping[str, Any]) -> float | None:
    """The dollars of a sample, if its usage has them."""
    usage = sample.get("model_usage")
    if not isinstance(usage, Mapping):
        return None
    known = [u.get("total_cost") for u in usage.values() if isinstance(u, Mapping)]
    paid = [cost for cost in known if isinstance(cost, int | float) and 0 <= cost < 1e9]
    return float(sum(paid)) if paid else None
