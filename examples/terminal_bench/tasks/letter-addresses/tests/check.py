"""Check the list of addresses."""

import sys
from pathlib import Path

NAMES = "anna ben.okafor c.diaz dora emil-x fatou_3 gus hana ivo jun k.lund lena"
EXPECTED = [f"{name}@harbour.example" for name in NAMES.split()]
path = Path("/app/addresses.txt")
if path.is_symlink() or not path.is_file():
    sys.exit("addresses.txt is missing")
found = path.read_text().split()
sys.exit(0 if found == sorted(EXPECTED) else f"addresses differ: {found}")
