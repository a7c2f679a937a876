"""Reads durations and amounts of money as people write them."""

import re

# Rewrites, applied in order, before numbers and units are looked for.
RULES = [
    (r"\b(?:an?|one)\b", r"1"),
    (r"\btwo\b", r"2"),
    (r"\bthree\b", r"3"),
]

TIMES = {"s": 1, "sec": 1, "second": 1, "m": 60, "min": 60, "minute": 60, "h": 3600, "hour": 3600}
DURATION = TIMES | {"day": 86400, "week": 604800}
AMOUNT = {"cent": 0.01}


def read(text: str, kind: str) -> float | None:
    """The seconds of a duration, or the value of an amount; None if there is no number."""
    text = text.lower()
    for pattern, replacement in RULES:
        text = re.sub(pattern, replacement, text)
    units = DURATION if kind == "duration" else AMOUNT
    total = None
    for number, unit in re.findall(r"(\d+(?:\.\d+)?(?:e\d)?) ?([a-z]*)", text):
        factor = units.get(unit) or units.get(unit.rstrip("s"), 1)
        total = (total or 0.0) + float(number) * factor
    return total
