"""Where an error of somebody else's code comes from."""

import sysconfig
import traceback
from pathlib import Path

from coevolve.errors import CoevolveError, titled

_OURS = str(Path(__file__).parents[1])
_OTHERS = tuple({sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib")})


def described(error: BaseException) -> str:
    """An error in a line: its kind and the line that raised it, unless it is one of ours.

    >>> described(CoevolveError("there is no agent."))
    'there is no agent.'
    """
    if isinstance(error, CoevolveError):
        return str(error)
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((_OURS, *_OTHERS, "<"))
    ]
    where = f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}: " if frames else ""
    return f"{where}{titled(type(error).__name__, str(error))}"
