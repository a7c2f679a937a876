#!/bin/bash
set -eu
cd /app
mkdir -p unpacked out
tar -xf bundle.tar -C unpacked
: > damaged.txt
find unpacked -name '*.tar.gz' | sort | while IFS= read -r archive; do
  name=$(basename "$archive" .tar.gz)
  mkdir "out/$name"
  if ! tar -xzf "$archive" -C "out/$name" 2>/dev/null; then
    rm -r "out/$name"
    echo "$name.tar.gz" >> damaged.txt
  fi
done
