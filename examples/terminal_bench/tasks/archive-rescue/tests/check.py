"""Check the unpacked files and the list of damaged archives."""

import sys
from pathlib import Path

EXPECTED = {
    f"part-{number}/{name}-{number}.txt": f"{name} of part {number}\n" * 50
    for number in (1, 3, 4, 6)
    for name in ("data", "notes")
}
root = Path("/app/out")
found = {
    str(path.relative_to(root)): path.read_text()
    for path in root.rglob("*")
    if path.is_file() and not path.is_symlink()
}
folders = {path.name for path in root.iterdir()} if root.is_dir() else set()
listed = Path("/app/damaged.txt")
good = (
    found == EXPECTED
    and folders == {"part-1", "part-3", "part-4", "part-6"}
    and listed.is_file()
    and listed.read_text().split("\n") == ["part-2.tar.gz", "part-5.tar.gz", ""]
)
sys.exit(0 if good else f"found {sorted(found)} in {sorted(folders)}")
