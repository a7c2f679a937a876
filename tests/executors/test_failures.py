"""The blame for each exception."""

import errno
import io
import socket
import ssl
import subprocess
import urllib.error
from email.message import Message
from typing import Any

import pytest

from coevolve.errors import StopRun, StoreError
from coevolve.executors.failure_table import AWS, CLASSES, HTTP, SYSTEM, WORDS
from coevolve.executors.failures import (
    CandidateFault,
    DoubtfulError,
    FaultError,
    InfrastructureError,
    OperatorError,
    classify,
)
from coevolve.executors.isolation import HarnessFault, SandboxError
from coevolve.search.trials import Blame, Fault
from coevolve.service_words import TOO_LARGE


def named(name: str, *bases: type, **attributes: Any) -> type[Exception]:
    """An error class as a library would define it."""
    return type(name, bases or (Exception,), attributes)


@pytest.mark.parametrize(
    ("name", "blame"), [(name, row.blame) for row in CLASSES for name in row.names]
)
def test_every_class_of_the_table_is_known_by_its_name_or_a_base(name: str, blame: Blame) -> None:
    error = named(name)
    assert classify(error("it happened")).blame is blame
    found = classify(named("Special", error)("it happened"))
    assert (found.blame, found.kind) == (blame, "Special")
    assert found.reason == "Special: it happened"


@pytest.mark.parametrize(
    ("code", "blame"), [(code, row.blame) for row in SYSTEM for code in row.names]
)
def test_every_number_of_the_system_in_the_table_is_known(code: int, blame: Blame) -> None:
    assert classify(OSError(code, "it happened")).blame is blame


@pytest.mark.parametrize(
    ("status", "blame"), [(code, row.blame) for row in HTTP for code in row.names]
)
def test_errors_with_an_http_status_are_known(status: int, blame: Blame) -> None:
    response = named("Response", object, status_code=status)
    assert classify(named("HTTPStatusError", status_code=status)()).blame is blame
    assert classify(named("HTTPStatusError", response=response)()).blame is blame
    assert classify(named("HTTPError", code=status)()).blame is blame


@pytest.mark.parametrize(
    ("error", "blame"),
    [
        (TimeoutError(), Blame.DOUBTFUL),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), Blame.DOUBTFUL),
        (RecursionError("maximum recursion depth exceeded"), Blame.DOUBTFUL),
        (RuntimeError("can't start new thread"), Blame.INFRASTRUCTURE),
        (RuntimeError("it can't start new thread"), Blame.BENCHMARK),
        (ConnectionResetError("gone"), Blame.INFRASTRUCTURE),
        (socket.gaierror(-2, "Name or service not known"), Blame.INFRASTRUCTURE),
        (ssl.SSLError(1, "bad record"), Blame.INFRASTRUCTURE),
        (ssl.SSLCertVerificationError(1, "self-signed"), Blame.OPERATOR),
        (MemoryError(), Blame.DOUBTFUL),
        (OSError(errno.EMFILE, "Too many open files"), Blame.INFRASTRUCTURE),
        (SandboxError("bwrap did not start"), Blame.INFRASTRUCTURE),
        (PermissionError(errno.EACCES, "Permission denied"), Blame.OPERATOR),
        (ModuleNotFoundError("No module named 'judge'"), Blame.OPERATOR),
        (StopRun("set a key"), Blame.OPERATOR),
        (StoreError("no disk"), Blame.OPERATOR),
        (HarnessFault("memory", "used 3 GB"), Blame.CANDIDATE),
        (FileNotFoundError(errno.ENOENT, "labels.json"), Blame.BENCHMARK),
        (subprocess.TimeoutExpired("pytest", 5), Blame.BENCHMARK),
        (AssertionError(), Blame.BENCHMARK),
        (SystemExit(1), Blame.BENCHMARK),
        (SystemExit(404), Blame.BENCHMARK),
    ],
)
def test_errors_of_this_machine(error: BaseException, blame: Blame) -> None:
    assert classify(error).blame is blame


@pytest.mark.parametrize(
    ("error", "blame"),
    [
        (InfrastructureError("r"), Blame.INFRASTRUCTURE),
        (DoubtfulError("r"), Blame.DOUBTFUL),
        (OperatorError("r", advice="a"), Blame.OPERATOR),
        (CandidateFault("r"), Blame.CANDIDATE),
    ],
)
def test_a_benchmark_may_state_the_blame(error: Any, blame: Blame) -> None:
    found = classify(error)
    assert (found.blame, found.kind, found.reason) == (blame, type(error).__name__, "r")
    assert found.advice == ("a" if blame is Blame.OPERATOR else "")


def test_a_fault_from_another_process_is_kept() -> None:
    fault = Fault(blame=Blame.OPERATOR, kind="k", reason="r", advice="a")
    assert classify(FaultError(fault)) == fault


REQUEST: dict[str, Any] = {"status_code": 400}
BAD_REQUEST = named("BadRequestError", named("APIStatusError", named("APIError")), **REQUEST)


def test_an_account_without_credit_is_not_a_rate_limit() -> None:
    error = named("RateLimitError")("Error code: 429 - {'code': 'insufficient_quota'}")
    assert classify(error).blame is Blame.OPERATOR
    assert classify(error).advice.startswith("Add credit")
    said = "You exceeded your current quota, check your plan and billing. Please retry in 34.07s."
    assert classify(named("RateLimitError")(said)).blame is Blame.INFRASTRUCTURE


@pytest.mark.parametrize(
    ("word", "blame"), [(word, row.blame) for row in WORDS.values() for word in row.names]
)
def test_words_count_in_errors_of_an_api_only(word: str, blame: Blame) -> None:
    text = f"Error: {word.upper()}!"
    assert classify(BAD_REQUEST(text)).blame is blame
    assert classify(named("Odd", http_status=400)(text)).blame is blame
    waiting = Blame.INFRASTRUCTURE if blame is Blame.CANDIDATE else blame
    assert classify(named("RateLimitError")(text)).blame is waiting
    limited = blame if word in TOO_LARGE else waiting
    assert classify(named("RateLimitError", status_code=429)(text)).blame is limited
    # Such a text may be the candidate's own.
    assert classify(ValueError(text)).blame is Blame.BENCHMARK
    assert classify(named("Odd", code=7)(text)).blame is Blame.BENCHMARK
    assert classify(KeyError(text)).blame is Blame.BENCHMARK


@pytest.mark.parametrize(
    ("status", "blame"),
    [
        (400, Blame.BENCHMARK),
        (401, Blame.OPERATOR),
        (404, Blame.OPERATOR),
        (413, Blame.CANDIDATE),
        (422, Blame.BENCHMARK),
        (429, Blame.INFRASTRUCTURE),
        (503, Blame.INFRASTRUCTURE),
    ],
)
def test_the_status_counts_before_the_bases_of_a_class(status: int, blame: Blame) -> None:
    error = urllib.error.HTTPError("http://x", status, "it happened", Message(), io.BytesIO())
    with error:
        assert classify(error).blame is blame
    assert classify(named("Odd", named("APIError"), status_code=status)()).blame is blame
    assert classify(named("APIError", status_code=status)()).blame is blame


def test_a_class_counts_before_its_status() -> None:
    for name in ("ContextWindowExceededError", "ContentPolicyViolationError"):
        assert classify(named(name, BAD_REQUEST)("too long")).blame is Blame.CANDIDATE


@pytest.mark.parametrize("status", [0, 200, 7, True, None, "404"])
def test_an_error_of_an_api_without_a_status_is_infrastructure(status: Any) -> None:
    assert classify(named("APIStatusError", status_code=status)()).blame is Blame.INFRASTRUCTURE


@pytest.mark.parametrize(
    ("code", "blame"), [(code, row.blame) for row in AWS for code in row.names]
)
def test_codes_of_aws_are_known(code: str, blame: Blame) -> None:
    def error(code: Any, status: int = 400) -> Exception:
        response = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
        return named("ClientError", response=response)("An error occurred")

    assert classify(error(f"{code}Exception")).blame is blame
    assert classify(error(code)).blame is blame
    assert classify(error("ValidationException")).blame is Blame.BENCHMARK
    assert classify(error(None, 503)).blame is Blame.INFRASTRUCTURE


def raised(error: Exception, cause: Exception) -> Exception:
    try:
        raise error from cause
    except Exception as caught:
        return caught


def test_an_unknown_error_has_the_blame_of_its_cause() -> None:
    wrapped = raised(RuntimeError("the judge failed"), named("RateLimitError")("slow down"))
    assert classify(wrapped).blame is Blame.INFRASTRUCTURE
    assert classify(raised(wrapped, KeyError("x"))).blame is Blame.BENCHMARK
    assert classify(raised(CandidateFault("r"), TimeoutError())).blame is Blame.CANDIDATE
    assert classify(raised(ValueError("r"), TimeoutError())).blame is Blame.DOUBTFUL


def test_of_several_errors_the_most_serious_counts() -> None:
    group = ExceptionGroup("two", [KeyError("x"), TimeoutError()])
    assert classify(group).blame is Blame.DOUBTFUL
    lost = ExceptionGroup("lost", [group, ConnectionResetError("gone")])
    assert classify(lost).blame is Blame.INFRASTRUCTURE
    assert classify(ExceptionGroup("more", [group, OSError(errno.ENOSPC, "full")])).blame is (
        Blame.OPERATOR
    )


def test_a_reason_has_a_limited_length() -> None:
    assert len(classify(ValueError("x" * 1_000_000)).reason) <= 2_000
