#!/bin/bash
set -eu
cd /app
receipt=$(python3 worker.py 1 | awk '/receipt/ {print $2}')
receipt=$(python3 worker.py 2 "$receipt" | awk '/receipt/ {print $2}')
python3 worker.py 3 "$receipt" | awk '/receipt/ {print $2}' > receipt.txt
