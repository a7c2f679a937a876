#!/bin/bash
set -eu
cd /app/installer
python3 prepare.py
code=$(python3 verify.py | awk '/media code/ {print $3}')
CODE=$code python3 - <<'END'
import os, pty

pid, terminal = pty.fork()
if pid == 0:
    os.execlp("python3", "python3", "/app/installer/install.py")
text = b""
while b"Media code:" not in text:
    text += os.read(terminal, 1024)
os.write(terminal, os.environ["CODE"].encode() + b"\n")
try:
    while os.read(terminal, 1024):
        pass
except OSError:
    pass
os.waitpid(pid, 0)
END
