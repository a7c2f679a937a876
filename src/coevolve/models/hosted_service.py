"""Who is asked: the model, where it is served, and the key that nothing shows."""

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from coevolve.errors import ConfigError

_LONGEST = 300
_OPENAI = "openai/"
_NO_KEY = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A model at a service.

    Args:
        name: The model.
        base_url: The address of an OpenAI-compatible server; None for a hosted model.
        key: The key; empty for none.
        variable: The name of the environment variable that holds the key, if known.
        timeout: Seconds to wait for it.

    >>> Service(name="served", base_url="http://localhost:8000/v1", key="sk-1").where
    'localhost:8000'
    """

    name: str
    base_url: str | None = None
    key: str = field(default="", repr=False)
    variable: str = ""
    timeout: float = 600.0

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise ConfigError(f"a model must have a name, got {self.name!r}.")
        if not self.timeout > 0:
            raise ConfigError(f"timeout must be positive, got {self.timeout!r}.")
        if not (self.key.isascii() and self.key.isprintable()) or " " in self.key:
            raise ConfigError(
                f"{self.variable or 'the key'} has white space or other characters in it that no "
                "key has. Check how it was set."
            )
        if self.base_url is not None:
            _check(self.base_url)

    @property
    def host(self) -> str:
        """Host and port of a server of one's own."""
        return "" if self.base_url is None else urlsplit(self.base_url).netloc

    @property
    def where(self) -> str:
        """The service, for people."""
        return self.host or f"the service of {self.name}"

    @property
    def names(self) -> tuple[str, ...]:
        """What LiteLLM is to call the model, likeliest first.

        >>> Service(name="openai/gpt-oss-120b", base_url="http://localhost:8000/v1").names
        ('openai/openai/gpt-oss-120b', 'openai/gpt-oss-120b')
        """
        if self.base_url is None:
            return (self.name,)
        own = _OPENAI + self.name
        return (own, self.name) if self.name.startswith(_OPENAI) else (own,)

    @property
    def credential(self) -> str | None:
        """What LiteLLM gets for a key; without any it would send one from the environment."""
        return self.key or (None if self.base_url is None else _NO_KEY)

    def struck(self, text: str) -> str:
        """A text in one line, of some length, without the key."""
        clean = text.replace(self.key, "***") if self.key else text
        return " ".join(clean.split())[:_LONGEST].rstrip(". ")


def _check(base_url: str) -> None:
    parts = urlsplit(base_url)
    if "@" in parts.netloc or parts.query:
        raise ConfigError(
            f"base_url of {parts.hostname} must hold no user, password or query. Put the key into "
            "an environment variable."
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(
            f"base_url must be an address such as http://localhost:8000/v1, got {base_url!r}."
        )
