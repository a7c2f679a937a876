"""Make .venv ready with whatever python3 there is: fetch uv, install what is locked.

Run by the Makefile; needs nothing but the standard library of Python 3.11 or newer.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / ".tools"
VENV = ROOT / ".venv"
UV = "uv==0.13.7"


def main() -> int:
    """Bootstrap, and say what is missing if it cannot be done."""
    uv = find_uv()
    if uv is None:
        return fail(
            "could not install uv: python3 has neither pip nor a working venv module, or no "
            "package index is in reach. Install one of them (on Debian: python3-venv) or uv."
        )
    wanted = (ROOT / ".python-version").read_text().strip()
    if not any(
        run(uv, "venv", "--quiet", "--clear", "--python", v, VENV) for v in (wanted, "3.12")
    ):
        return fail(f"no Python {wanted} or 3.12 was found, and uv could not download one.")
    os.environ["VIRTUAL_ENV"] = str(VENV)
    locked = ("--require-hashes", "--compile-bytecode", "--no-build")
    if not run(uv, "pip", "sync", "--quiet", *locked, ROOT / "requirements.lock"):
        return fail("could not install requirements.lock.")
    editable = ("--no-deps", "--no-build-isolation", "--editable")
    if not run(uv, "pip", "install", "--quiet", *editable, ROOT):
        return fail("could not install the project itself.")
    return 0


def find_uv() -> str | None:
    """Our own uv, fetched with pip the first time; else the one on PATH."""
    ours = TOOLS / "bin" / "uv"
    if not run(ours, "--version", quiet=True):
        print("bootstrap: fetching uv with pip", flush=True)
        pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", UV)
        if not run(sys.executable, *pip, "--upgrade", "--target", TOOLS, quiet=True):
            run(sys.executable, "-m", "venv", TOOLS, quiet=True)
            run(ours.with_name("python"), *pip, quiet=True)
    return str(ours) if run(ours, "--version", quiet=True) else shutil.which("uv")


def run(*command: str | Path, quiet: bool = False) -> bool:
    """Whether a command succeeded."""
    try:
        out = subprocess.DEVNULL if quiet else None
        words = [str(c) for c in command]
        return subprocess.run(words, stdout=out, stderr=out, check=False).returncode == 0
    except OSError:
        return False


def fail(message: str) -> int:
    """Print what is wrong and give the exit code of an operator's fault."""
    print(f"bootstrap: {message}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
