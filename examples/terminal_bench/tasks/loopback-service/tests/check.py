"""Check the token."""

import hashlib
import sys
from pathlib import Path

path = Path("/app/token.txt")
if path.is_symlink() or not path.is_file():
    sys.exit("token.txt is missing")
wanted = hashlib.sha256(b"loopback service, ticket 4172").hexdigest()[:20]
sys.exit(0 if path.read_text().strip() == wanted else "wrong token")
