"""Check the receipt of the installer."""

import hashlib
import sys
from pathlib import Path

code = hashlib.sha256(b"media 7").hexdigest()[:6]
wanted = hashlib.sha256(f"installed with {code}".encode()).hexdigest()
path = Path("/app/tool/receipt.txt")
if path.is_symlink() or not path.is_file():
    sys.exit("receipt.txt is missing")
sys.exit(0 if path.read_text().strip() == wanted else "wrong receipt")
