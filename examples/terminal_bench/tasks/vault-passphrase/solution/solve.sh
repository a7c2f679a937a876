#!/bin/bash
set -eu
python3 - <<'END'
import os, pty

pid, terminal = pty.fork()
if pid == 0:
    os.execlp("python3", "python3", "/app/vault.py")
text = b""
while b"Passphrase:" not in text:
    text += os.read(terminal, 1024)
os.write(terminal, b"nretnal\n")
try:
    while part := os.read(terminal, 1024):
        text += part
except OSError:
    pass
os.waitpid(pid, 0)
secret = text.decode().split("The secret is: ")[1].split("\r")[0]
with open("/app/secret.txt", "w") as file:
    file.write(secret + "\n")
END
