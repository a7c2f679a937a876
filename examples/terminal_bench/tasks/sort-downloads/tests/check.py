"""Check that every download is in the folder of its extension, unchanged."""

import sys
from pathlib import Path

EXPECTED = {
    "txt": ["notes.txt", "todo list.TXT", "draft.v2.txt"],
    "pdf": ["Report final.PDF"],
    "jpg": ["photo one.jpg", "photo two.JPG"],
    "csv": ["data.csv", "table 3.csv"],
    "gz": ["archive.tar.gz"],
    "mp3": ["song.mp3"],
    "none": ["Makefile", "README"],
}
wanted = {
    f"{folder}/{name}": f"content of {name}\n"
    for folder, names in EXPECTED.items()
    for name in names
}
root = Path("/app/sorted")
found = {
    str(path.relative_to(root)): path.read_text()
    for path in root.rglob("*")
    if path.is_file() and not path.is_symlink()
}
downloads = Path("/app/downloads")
empty = downloads.is_dir() and not any(downloads.iterdir())
sys.exit(0 if found == wanted and empty else 1)
