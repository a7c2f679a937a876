#!/bin/bash
set -eu
cd /app/downloads
for file in *; do
  case "$file" in
    *.*) extension=$(printf '%s' "${file##*.}" | tr '[:upper:]' '[:lower:]') ;;
    *) extension=none ;;
  esac
  mkdir -p "/app/sorted/$extension"
  mv -- "$file" "/app/sorted/$extension/"
done
