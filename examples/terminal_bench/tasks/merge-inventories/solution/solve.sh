#!/bin/bash
set -eu
python3 - <<'END'
import json
north, south = (json.load(open(f"/app/{name}.json")) for name in ("north", "south"))
merged = {entry["sku"]: dict(entry) for entry in north}
for entry in south:
    before = merged.get(entry["sku"], {"quantity": 0})
    merged[entry["sku"]] = {**entry, "quantity": entry["quantity"] + before["quantity"]}
kept = sorted((entry for entry in merged.values() if entry["quantity"]), key=lambda entry: entry["sku"])
with open("/app/merged.json", "w") as file:
    file.write(json.dumps(kept, indent=2, ensure_ascii=False) + "\n")
END
