#!/bin/bash
set -eu
cd /app/releases
newest=$(for folder in [0-9]*; do [ -e "$folder/COMPLETE" ] && echo "$folder"; done | sort -V | tail -n 2)
ln -sfn "../$(echo "$newest" | tail -n 1)" links/current
ln -sfn "../$(echo "$newest" | head -n 1)" links/previous
find links -xtype l -delete
