#!/bin/bash
set -eu
python3 - <<'END'
import json
for name in ("settings.json", "settings.local.json"):
    with open(f"/app/{name}") as file:
        settings = json.load(file)
    for key, value in (("port", 8080), ("debug", False)):
        if key in settings:
            settings[key] = value
    with open(f"/app/{name}", "w") as file:
        json.dump(settings, file, indent=2)
END
