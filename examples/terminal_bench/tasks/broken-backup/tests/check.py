"""Run a copy of the repaired script, as nobody, on a folder that the agent has not seen."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FILES = {"a.conf": "1", "x y/b c.conf": "2", "x y/skip.txt": "3", "deep/er/d.conf": "4"}
NOBODY = 65534


def run(script, *arguments):
    """Return the exit status and output of the script."""
    done = subprocess.run(
        ["/bin/bash", script, *arguments],
        capture_output=True,
        text=True,
        timeout=10,
        cwd="/",
        stdin=subprocess.DEVNULL,
        env={"PATH": "/usr/bin:/bin"},
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
    )
    return done.returncode, done.stdout.strip()


with tempfile.TemporaryDirectory() as folder:
    source, target = Path(folder) / "the source", Path(folder) / "the target"
    for name, text in FILES.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text)
    script = shutil.copyfile("/app/backup.sh", Path(folder) / "script")
    for path in [Path(folder), *Path(folder).rglob("*")]:
        os.chown(path, NOBODY, NOBODY)
    first = run(script, str(source), str(target))
    copied = {
        str(path.relative_to(target)): path.read_text()
        for path in target.rglob("*")
        if path.is_file()
    }
    missing = run(script, folder + "/nowhere", folder + "/other")[0]
    other = (Path(folder) / "other").exists() and any((Path(folder) / "other").iterdir())
wanted = {name: text for name, text in FILES.items() if name.endswith(".conf")}
good = first == (0, "3") and copied == wanted and missing == 2 and not other
sys.exit(0 if good else f"first {first}, copied {copied}, missing source {missing}")
