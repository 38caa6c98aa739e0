#!/bin/sh
# What a reviewer should not have to look for: format, layers, type names, public headers, exported symbols, links in the documents.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build/dev}
status=0

if command -v clang-format >/dev/null; then
  git ls-files '*.c' '*.h' | xargs clang-format --dry-run -Werror || status=1
else
  echo "clang-format is not installed: format not checked"
fi
python3 tools/check_layers.py || status=1
python3 tools/check_types.py || status=1
if [ -d "$build" ]; then
  tools/check_headers.sh "$build" || status=1
  tools/check_symbols.sh "$build/libweir.so" || status=1
fi
# Every relative link of a document leads somewhere.
for document in *.md docs/*.md examples/*.md; do
  for link in $(grep -oE '\]\([^)#]+' "$document" | grep -v '://' | cut -c3- || true); do
    [ -e "$(dirname "$document")/$link" ] || { echo "$document: dead link $link"; status=1; }
  done
done
exit $status
