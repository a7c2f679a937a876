"""Check the answer and the repaired row."""

import sqlite3
import sys
from pathlib import Path

EXPECTED = ["name,total_cents", "Dora,12600", "Ben,11897", "Ada,9500"]
path = Path("/app/top.csv")
if path.is_symlink() or not path.is_file():
    sys.exit("top.csv is missing")
database = sqlite3.connect("file:/app/shop.db?mode=ro", uri=True)
kettles = database.execute(
    "SELECT COUNT(*) FROM items WHERE order_id = 17 AND product = 'kettle'"
).fetchone()[0]
rows = database.execute("SELECT COUNT(*), SUM(quantity * cents) FROM items").fetchone()
good = path.read_text().split() == EXPECTED and kettles == 1 and rows == (14, 40396)
sys.exit(0 if good else f"wrong: {path.read_text()!r}, {kettles} kettles, {rows}")
