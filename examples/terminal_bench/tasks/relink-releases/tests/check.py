"""Check the links by reading them."""

import os
import sys
from pathlib import Path

EXPECTED = {
    "current": "../1.10",
    "previous": "../1.9",
    "stable": "../1.2",
    "next": "../1.11",
}
folder = Path("/app/releases/links")
found = {
    path.name: os.path.normpath(path.readlink()) if path.is_symlink() else None
    for path in folder.iterdir()
}
releases = all(
    (Path("/app/releases") / version / "VERSION").read_text() == f"release {version}\n"
    for version in ("1.2", "1.9", "1.10", "1.11")
)
complete = not (Path("/app/releases") / "1.11/COMPLETE").exists()
sys.exit(0 if found == EXPECTED and releases and complete else f"links: {found}")
