"""Where things that were fetched are kept."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """The folder for what is fetched once and shared by all projects.

    `$COEVOLVE_CACHE`, or `coevolve` in `$XDG_CACHE_HOME` or `~/.cache`. It may not exist yet.
    """
    own = os.environ.get("COEVOLVE_CACHE")
    if own:
        return Path(own).expanduser()
    general = os.environ.get("XDG_CACHE_HOME")
    return (Path(general) if general else Path.home() / ".cache") / "coevolve"
