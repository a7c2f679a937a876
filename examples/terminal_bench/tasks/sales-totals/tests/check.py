"""Check the totals against the sales that the image was built with."""

import json
import math
import sys
from pathlib import Path

EXPECTED = {
    "North": 1190.75,
    "South": 823.2,
    "East, coastal": 1514.05,
    'West "old"': 96.0,
    "Centre": 47.97,
}
path = Path("/app/totals.json")
if path.is_symlink() or not path.is_file():
    sys.exit("totals.json is missing")
totals = json.loads(path.read_text())
good = set(totals) == set(EXPECTED) and all(
    isinstance(totals[name], int | float) and math.isclose(totals[name], value, abs_tol=0.001)
    for name, value in EXPECTED.items()
)
sys.exit(0 if good else f"totals differ: {totals}")
