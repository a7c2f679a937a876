#!/bin/bash
set -eu
python3 - <<'END'
import json
sessions, last = {}, {}
with open("/app/events.jsonl") as file:
    for line in file:
        event = json.loads(line)
        if event["kind"] != "probe":
            sessions.setdefault(event["user"], set()).add(event["session"])
            last[event["user"]] = event["text"]
with open("/app/report.json", "w") as file:
    json.dump({user: {"sessions": len(sessions[user]), "last": last[user]} for user in last}, file)
END
