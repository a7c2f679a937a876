"""Check the counts."""

import json
import sys
from pathlib import Path

EXPECTED = {"billing": 7, "search": 4, "mail": 11, "login": 2, "export": 1}
path = Path("/app/errors.json")
if path.is_symlink() or not path.is_file():
    sys.exit("errors.json is missing")
found = json.loads(path.read_text())
sys.exit(0 if found == EXPECTED else f"counts differ: {found}")
