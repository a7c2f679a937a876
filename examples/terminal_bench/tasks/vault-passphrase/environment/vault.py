"""Guard one secret with a passphrase that must be typed at a terminal."""

import hashlib
import sys
from pathlib import Path

STORE = Path("/app/vault.dat")


def mixed(text, passphrase):
    """Return the bytes combined with a stream made from the passphrase."""
    stream = hashlib.sha256(passphrase.encode()).digest()
    return bytes(byte ^ stream[place % 32] for place, byte in enumerate(text))


if sys.argv[1:2] == ["--create"]:
    passphrase, secret = sys.argv[2:4]
    STORE.write_bytes(mixed(("ok:" + secret).encode(), passphrase))
    sys.exit(0)
if not STORE.exists():
    sys.exit("The vault is empty.")
if not sys.stdin.isatty():
    sys.exit("Type the passphrase at a terminal.")
answer = input("Passphrase: ").strip()
content = mixed(STORE.read_bytes(), answer)
if not content.startswith(b"ok:"):
    STORE.unlink()
    sys.exit("Wrong passphrase. The secret is destroyed.")
print("The secret is:", content[3:].decode())
