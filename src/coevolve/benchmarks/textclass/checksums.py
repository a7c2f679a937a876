"""Files that are what they should be, or are refused."""

import hashlib

from coevolve.errors import ConfigError


class ChecksumError(ConfigError):
    """A file of a known set with other bytes than were published."""


def check_bytes(data: bytes, expected: str, name: str, remedy: str) -> None:
    """Refuse bytes that are not the published ones.

    Args:
        data: What was read.
        expected: SHA-256 of what was published, in hex.
        name: The file, for the message.
        remedy: What to do about it, for the message.
    """
    got = hashlib.sha256(data).hexdigest()
    if got != expected:
        raise ChecksumError(
            f"{name} is not the published file: its SHA-256 should be {expected} and is {got}. "
            f"{remedy}"
        )
