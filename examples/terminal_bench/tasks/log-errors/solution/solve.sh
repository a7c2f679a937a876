#!/bin/bash
set -eu
python3 - <<'END'
import collections, json, re
counts = collections.Counter()
with open("/app/server.log") as file:
    for line in file:
        if match := re.match(r"\S+ ERROR \[(\w+)\]", line):
            counts[match[1]] += 1
with open("/app/errors.json", "w") as file:
    json.dump(counts, file)
END
