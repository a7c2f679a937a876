#!/bin/bash
# Write 1 to the reward file if the check passes, else 0.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
cd /
mkdir -p /logs/verifier
if /usr/bin/python3 -I /tests/check.py; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
