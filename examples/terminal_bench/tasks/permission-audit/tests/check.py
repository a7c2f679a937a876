"""Check every mode below the deployment folder."""

import stat
import sys
from pathlib import Path

EXPECTED = {
    "bin": 0o755,
    "bin/helpers.sh": 0o644,
    "bin/start": 0o755,
    "bin/stop.sh": 0o755,
    "etc": 0o755,
    "etc/app.conf": 0o644,
    "etc/tls": 0o755,
    "etc/tls/chain.pem": 0o600,
    "etc/tls/renew.key": 0o600,
    "etc/tls/server.key": 0o600,
    "old files": 0o755,
    "old files/notes.txt": 0o644,
    "old files/report job": 0o755,
}
root = Path("/app/deploy")
found = {
    str(path.relative_to(root)): stat.S_IMODE(path.lstat().st_mode)
    for path in root.rglob("*")
    if not path.is_symlink()
}
unchanged = (
    (root / "etc/host").is_symlink()
    and (root / "etc/tls/server.key").read_text() == "key 1\n"
    and (root / "etc/app.conf").read_text() == "port = 80\n"
)
sys.exit(0 if found == EXPECTED and unchanged else f"modes: {found}")
