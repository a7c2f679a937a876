#!/bin/bash
set -eu
python3 - <<'END'
import re
with open("/app/letters.txt") as file:
    text = file.read().lower()
found = re.findall(r"[\w.+-]+@harbour\.example(?![\w-]|\.\w)", text)
with open("/app/addresses.txt", "w") as file:
    file.writelines(name + "\n" for name in sorted(set(found)))
END
