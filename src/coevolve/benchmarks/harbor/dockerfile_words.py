"""Words of Dockerfiles: quotes, escapes and variables."""

import re
from collections.abc import Mapping

from coevolve.errors import InputError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class DockerfileError(InputError):
    """A Dockerfile uses something that is not supported.

    Args:
        line: Where, counted from 1.
        reason: Why not.
    """

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"cannot be built: line {line}: {reason}")
        self.line = line
        self.reason = reason


def pieces(value: str) -> list[str]:
    """Words separated by blanks, with their quotes and escapes."""
    pieces: list[str] = []
    quote = escape = ""
    fresh = True
    for sign in value:
        if sign.isspace() and not quote and not escape:
            fresh = True
            continue
        if fresh:
            pieces.append("")
            fresh = False
        pieces[-1] += sign
        if escape:
            escape = ""
        elif sign == "\\" and quote != "'":
            escape = sign
        elif quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
    return pieces


def unquoted(line: int, text: str, known: Mapping[str, str]) -> str:
    """Text without quotes and escapes, with variables replaced where Docker does."""
    result: list[str] = []
    quote = ""
    number = 0
    while number < len(text):
        sign = text[number]
        if quote == "'" and sign != "'":
            result.append(sign)
        elif sign == "\\" and number + 1 < len(text):
            number += 1
            follows = text[number]
            keep = quote == '"' and follows not in '"$\\'
            result.append(f"\\{follows}" if keep else follows)
        elif quote and sign == quote:
            quote = ""
        elif not quote and sign in "'\"":
            quote = sign
        elif sign == "$":
            value, number = _variable(text, number, known)
            result.append(value)
            continue
        else:
            result.append(sign)
        number += 1
    if quote:
        raise DockerfileError(line, f"{text[:60]!r} has a quote without an end")
    return "".join(result)


def expand(text: str, known: Mapping[str, str]) -> str:
    """Text with its variables replaced; quotes stay."""
    result: list[str] = []
    number = 0
    while number < len(text):
        if text[number] == "\\" and text[number + 1 : number + 2] == "$":
            result.append("$")
            number += 2
        elif text[number] == "$":
            value, number = _variable(text, number, known)
            result.append(value)
        else:
            result.append(text[number])
            number += 1
    return "".join(result)


def _variable(text: str, start: int, known: Mapping[str, str]) -> tuple[str, int]:
    """The value of the variable at a dollar sign, and where the text continues."""
    if text[start + 1 : start + 2] != "{":
        name = _NAME.match(text, start + 1)
        return ("$", start + 1) if name is None else (known.get(name[0], ""), name.end())
    end = text.find("}", start)
    inner = text[start + 2 : end]
    name = _NAME.match(inner)
    if end < 0 or name is None:
        return "$", start + 1
    value = known.get(name[0], "")
    rest = inner[name.end() :]
    if rest.startswith(":-") and not value:
        value = expand(rest[2:], known)
    elif rest.startswith(":+"):
        value = expand(rest[2:], known) if value else ""
    return value, end + 1
