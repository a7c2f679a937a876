"""Step 3: ask for the code and install."""

import hashlib
import sys
from pathlib import Path

folder = Path("/app/installer")
if (folder / "locked").exists():
    sys.exit("The media is locked.")
if not (folder / "verified").exists():
    sys.exit("Verify the media first.")
if not sys.stdin.isatty():
    sys.exit("Type the code at a terminal.")
code = input("Media code: ").strip()
if code != (folder / "verified").read_text():
    (folder / "locked").touch()
    sys.exit("Wrong code. The media is locked.")
Path("/app/tool").mkdir(exist_ok=True)
receipt = hashlib.sha256(f"installed with {code}".encode()).hexdigest()
Path("/app/tool/receipt.txt").write_text(receipt + "\n")
print("installed")
