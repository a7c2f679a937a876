"""Check the merged list and its layout."""

import json
import sys
from pathlib import Path

EXPECTED = [
    {"sku": "A-10", "name": "café table", "quantity": 7, "price": 89.5},
    {"sku": "A-9", "name": "stool", "quantity": 12, "price": 19.0},
    {"sku": "C-2", "name": "lamp (new)", "quantity": 5, "price": 24.0},
    {"sku": "D-7", "name": "rug", "quantity": 1, "price": 140.0},
    {"sku": "a-1", "name": "crème jug", "quantity": 30, "price": 4.25},
]
path = Path("/app/merged.json")
if path.is_symlink() or not path.is_file():
    sys.exit("merged.json is missing")
text = path.read_text()
found = json.loads(text)
layout = text == json.dumps(found, indent=2, ensure_ascii=False) + "\n"
sys.exit(0 if found == EXPECTED and layout else f"merged: {found}, layout {layout}")
