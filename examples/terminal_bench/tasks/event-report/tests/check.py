"""Check the report."""

import json
import sys
from pathlib import Path

EXPECTED = {
    "mia": {"sessions": 3, "last": 'said "user": "tom" and left'},
    "tom": {"sessions": 2, "last": "caf\u00e9 \u2192 closed\n"},
    "zoë": {"sessions": 1, "last": "path C:\\temp\\new"},
}
path = Path("/app/report.json")
if path.is_symlink() or not path.is_file():
    sys.exit("report.json is missing")
found = json.loads(path.read_text())
sys.exit(0 if found == EXPECTED else f"report: {found}")
