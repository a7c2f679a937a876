"""The embedded model: a small language model in a separate process, without a key or a hub."""

from coevolve.models.embedded.embedded_provider import EmbeddedProvider, embedded_line

__all__ = ["EmbeddedProvider", "embedded_line"]
