"""Secrets in the settings files of an agent are found."""

from pathlib import Path

import pytest

from coevolve.proposers.command import custom
from coevolve.proposers.command.agent_setup import agent_environment

TOKEN = "abcdefgh-0123456789"


@pytest.mark.parametrize(
    "text",
    [
        f'{{"id_token": "{TOKEN}"}}',
        f"API_KEY={TOKEN}\n",
        f"auth = '{TOKEN}'",
        # A regular expression that looks for names within words would take an hour here.
        f'["{"a" * 500_000}"]\nAPI_KEY={TOKEN}',
    ],
)
def test_secrets_are_found_in_settings(home: Path, text: str) -> None:
    (home / "settings").write_text(text)
    found = agent_environment(custom(["agent"], home=["settings"]), home="/home", path=[])
    assert found.secrets == (TOKEN,)


def test_other_values_are_not_secrets(home: Path) -> None:
    (home / "settings").write_text('{"theme": "a-long-word-for-dark", "key": "short"}')
    found = agent_environment(custom(["agent"], home=["settings"]), home="/home", path=[])
    assert found.secrets == ()
