"""How a harness reaches a language model: gateway, cache, usage, providers."""
