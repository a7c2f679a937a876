"""Check the last receipt."""

import hashlib
import sys
from pathlib import Path

receipt = "start"
for number in "123":
    receipt = hashlib.sha256(f"{receipt} job {number}".encode()).hexdigest()[:8]
path = Path("/app/receipt.txt")
if path.is_symlink() or not path.is_file():
    sys.exit("receipt.txt is missing")
sys.exit(0 if path.read_text().strip() == receipt else "wrong receipt")
