#!/bin/sh
# check_symbols.sh LIBRARY — The library exports weir_* and nothing else, and every function of the public headers.
set -eu
library=${1:?usage: check_symbols.sh LIBRARY}
root=$(cd "$(dirname "$0")/.." && pwd)
[ -e "$library" ] || { echo "$library is not built: cmake --build BUILD --target weir"; exit 1; }
exported=$(nm -D --defined-only "$library" | awk '{print $3}' | sed 's/@.*//' | sort -u)
strange=$(echo "$exported" | grep -v '^weir_' | grep -v '^WEIR_' || true)
if [ -n "$strange" ]; then
  echo "$library exports names without the prefix weir_:"
  echo "$strange"
  exit 1
fi
declared=$(sed -n 's/^WEIR_API .*[ *]\(weir_[a-z0-9_]*\)(.*/\1/p' "$root"/include/weir/*.h | sort -u)
missing=$(echo "$declared" | while read -r name; do echo "$exported" | grep -qx "$name" || echo "$name"; done)
if [ -n "$missing" ]; then
  echo "$library lacks functions that the headers declare:"
  echo "$missing"
  exit 1
fi
echo "$(echo "$exported" | wc -l) symbols exported, all weir_*"
