#!/bin/bash
set -eu
cd /app/deploy
find . -type d -exec chmod 755 {} +
find . -type f | while IFS= read -r file; do
  case "$file" in
    *.key | *.pem) chmod 600 "$file" ;;
    *) if [ "$(head -c 2 "$file")" = '#!' ]; then chmod 755 "$file"; else chmod 644 "$file"; fi ;;
  esac
done
