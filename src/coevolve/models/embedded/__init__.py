"""The embedded model: a small language model in a process of its own, with no key and no hub."""

from coevolve.models.embedded.embedded_provider import EmbeddedProvider, embedded_line

__all__ = ["EmbeddedProvider", "embedded_line"]
