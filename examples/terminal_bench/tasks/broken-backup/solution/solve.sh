#!/bin/bash
set -eu
cat > /app/backup.sh <<'END'
#!/bin/bash
set -u
source=$1
target=$2
if [ ! -d "$source" ]; then
  echo "no such folder: $source" >&2
  exit 2
fi
mkdir -p "$target"
target=$(cd "$target" && pwd)
cd "$source" || exit 2
count=0
while IFS= read -r -d '' file; do
  mkdir -p "$target/$(dirname "$file")"
  cp "$file" "$target/$file"
  count=$((count + 1))
done < <(find . -type f -name '*.conf' -print0)
echo "$count"
END
