"""Print the effective settings: settings.json, overridden by settings.local.json."""

import json
from pathlib import Path


def merged(base, over):
    """Return base with the values of over, recursively."""
    result = dict(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = merged(result[key], value) if both else value
    return result


folder = Path(__file__).parent
settings = json.loads((folder / "settings.json").read_text())
local = folder / "settings.local.json"
if local.exists():
    settings = merged(settings, json.loads(local.read_text()))
print(json.dumps(settings, indent=2))
