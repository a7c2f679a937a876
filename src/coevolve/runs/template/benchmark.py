"""The benchmark: read durations and amounts of money as people write them.

A task is a text. The harness returns the number of seconds, or the amount of money. This file runs
outside the sandbox: candidates cannot see the answers below.
"""

from coevolve import Harness, Score

MINUTE, HOUR, DAY, WEEK = 60, 3_600, 86_400, 604_800

DURATIONS = {
    "90 min": 90 * MINUTE,
    "2 hours": 2 * HOUR,
    "45 s": 45,
    "1h 15m": HOUR + 15 * MINUTE,
    "3 days": 3 * DAY,
    "10 minutes 30 seconds": 630,
    "PT2H5M": 2 * HOUR + 5 * MINUTE,
    "1.5 hours": 1.5 * HOUR,
    "0.5 h": HOUR / 2,
    "4 weeks": 4 * WEEK,
    "36h": 36 * HOUR,
    "120 sec": 120,
    "an hour": HOUR,
    "a minute": MINUTE,
    "two days": 2 * DAY,
    "three weeks": 3 * WEEK,
    "half an hour": HOUR / 2,
    "half a day": DAY / 2,
    "an hour and a half": 1.5 * HOUR,
    "2 and a half hours": 2.5 * HOUR,
    "a quarter of an hour": 15 * MINUTE,
    "three quarters of an hour": 45 * MINUTE,
    "1:30": HOUR + 30 * MINUTE,
    "12:05": 12 * HOUR + 5 * MINUTE,
    "1:02:03": HOUR + 123,
    "3h20": 3 * HOUR + 20 * MINUTE,
    "2h05": 2 * HOUR + 5 * MINUTE,
    "a fortnight": 2 * WEEK,
    "a couple of hours": 2 * HOUR,
    "1,5 Stunden": 1.5 * HOUR,
}
AMOUNTS = {
    "$25": 25,
    "19.99 EUR": 19.99,
    "USD 480": 480,
    "7 dollars": 7,
    "0.35 GBP": 0.35,
    "250 yen": 250,
    "25 cents": 0.25,
    "99 cents": 0.99,
    "$1,200": 1_200,
    "1,250,000 USD": 1_250_000,
    "$12,999.95": 12_999.95,
    "3k": 3_000,
    "$2.5k": 2_500,
    "40 k": 40_000,
    "3 million": 3_000_000,
    "1.2 million euros": 1_200_000,
    "5 mio EUR": 5_000_000,
    "2 billion": 2_000_000_000,
    "three dollars": 3,
    "two million": 2_000_000,
    "50 grand": 50_000,
    "8 thousand": 8_000,
    "5 hundred": 500,
    "1.234,56 €": 1_234.56,
    "12.500,00 €": 12_500,
    "3,50 €": 3.5,
    "0,99 €": 0.99,
    "1 200 000 kr": 1_200_000,
    "CHF 1'500": 1_500,
    "a dozen dollars": 12,
}
SEALED = {
    "75 min": 75 * MINUTE,
    "5 hours": 5 * HOUR,
    "2h 10m": 2 * HOUR + 10 * MINUTE,
    "a day": DAY,
    "two hours": 2 * HOUR,
    "half a minute": 30,
    "4 and a half days": 4.5 * DAY,
    "a quarter of a day": DAY / 4,
    "2:45": 2 * HOUR + 45 * MINUTE,
    "0:10:30": 630,
    "1h45": HOUR + 45 * MINUTE,
    "a fortnight and 1 day": 15 * DAY,
    "a couple of days": 2 * DAY,
    "2,5 hours": 2.5 * HOUR,
    "6 weeks": 6 * WEEK,
    "$18": 18,
    "3.75 EUR": 3.75,
    "60 cents": 0.6,
    "$4,300": 4_300,
    "2,000,000 USD": 2_000_000,
    "15k": 15_000,
    "$1.1k": 1_100,
    "7 million": 7_000_000,
    "1 mio CHF": 1_000_000,
    "three billion": 3_000_000_000,
    "20 grand": 20_000,
    "9.876,54 €": 9_876.54,
    "4,20 €": 4.2,
    "35 000 kr": 35_000,
    "a dozen euros": 12,
}

TASKS = {"durations": list(DURATIONS), "amounts": list(AMOUNTS)}
TEST_TASKS = list(SEALED)
FUNCTIONS = ["read"]
BRIEFING = """
A harness reads durations and amounts of money, as people write them. `read(text, kind)` gets the
text and what it is, "duration" or "amount"; it returns the number of seconds, or the amount as a
number without its currency. It scores 1 if that is right, else 0. Texts come in several notations
and languages.
"""  # shown to proposers; the functions and the rules of the sandbox are added

_FIRST_SEALED_AMOUNT = TEST_TASKS.index("$18")


def secrets() -> dict[str, str]:
    """The text of each task. Candidates are scanned for it."""
    return {task: task for task in DURATIONS | AMOUNTS}


def sealed_secrets() -> dict[str, str]:
    """The same for the sealed test."""
    return {task: task for task in SEALED}


def evaluate(harness: Harness, task: str) -> Score:
    """One trial on a validation task."""
    kind = "duration" if task in DURATIONS else "amount"
    return _judged(harness, task, kind, (DURATIONS | AMOUNTS)[task])


def evaluate_test(harness: Harness, task: str) -> Score:
    """One trial on a task of the sealed test."""
    kind = "duration" if TEST_TASKS.index(task) < _FIRST_SEALED_AMOUNT else "amount"
    return _judged(harness, task, kind, SEALED[task])


def _judged(harness: Harness, text: str, kind: str, right: float) -> Score:
    answer = harness.call("read", text, kind)
    good = isinstance(answer, int | float) and abs(answer - right) <= 1e-9 * right
    return Score(value=float(good), trace={"text": text, "answer": answer, "right": right})
