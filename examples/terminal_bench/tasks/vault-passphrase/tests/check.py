"""Check the secret by its digest."""

import hashlib
import sys
from pathlib import Path

DIGEST = "9c9419ae716a57999c3ffe20e36c7c6aad26a0ecd7d68d320e2c5a1f0aa8d6a3"
path = Path("/app/secret.txt")
if path.is_symlink() or not path.is_file():
    sys.exit("secret.txt is missing")
found = hashlib.sha256(path.read_text().strip().encode()).hexdigest()
sys.exit(0 if found == DIGEST else "wrong secret")
