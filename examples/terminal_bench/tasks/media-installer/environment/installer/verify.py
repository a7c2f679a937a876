"""Step 2: verify the media and print its code."""

import hashlib
import sys
import time
from pathlib import Path

prepared = Path("/app/installer/prepared")
if not prepared.exists():
    sys.exit("Prepare the media first.")
print("verifying the media", flush=True)
time.sleep(2)
code = hashlib.sha256(prepared.read_text().strip().encode()).hexdigest()[:6]
Path("/app/installer/verified").write_text(code)
print("media code", code)
