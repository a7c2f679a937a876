"""The embedded model: a small language model in a process of its own, with no key and no hub."""

from coevolve.models.embedded.provider import EmbeddedProvider
from coevolve.models.embedded.speed import embedded_line

__all__ = ["EmbeddedProvider", "embedded_line"]
