#!/bin/bash
set -eu
python3 - <<'END'
import collections, csv, json
totals = collections.defaultdict(float)
with open("/app/sales.csv", newline="") as file:
    for row in csv.DictReader(file):
        totals[row["region"]] += int(row["units"]) * float(row["price"])
with open("/app/totals.json", "w") as file:
    json.dump({name: round(value, 2) for name, value in totals.items()}, file)
END
