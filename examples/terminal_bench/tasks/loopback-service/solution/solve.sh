#!/bin/bash
set -eu
python3 /app/service.py >/dev/null 2>&1 &
service=$!
python3 - <<'END'
import time, urllib.error, urllib.request

def get(path):
    while True:
        try:
            return urllib.request.urlopen("http://127.0.0.1:8750" + path).read().decode()
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.2)

token = get("/token?ticket=" + get("/ticket").strip())
with open("/app/token.txt", "w") as file:
    file.write(token)
END
kill "$service"
