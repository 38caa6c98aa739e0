#!/bin/sh
# What a reviewer should not have to look for: format, layers, type names, public headers, exported symbols, links in the
# documents, and what clang-tidy finds (.clang-tidy) in all of src/ but its tests.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build/dev}
status=0

git ls-files '*.c' '*.h' | xargs clang-format --dry-run -Werror || status=1
python3 tools/check_layers.py || status=1
python3 tools/check_types.py || status=1
tools/check_headers.sh "$build" || status=1
tools/check_symbols.sh "$build/libweir.so" || status=1
# Every relative link of a document leads somewhere.
for document in *.md docs/*.md examples/*.md; do
  for link in $(grep -oE '\]\([^)#]+' "$document" | grep -v '://' | cut -c3- || true); do
    [ -e "$(dirname "$document")/$link" ] || { echo "$document: dead link $link"; status=1; }
  done
done
# The analyzer looks at each function without going far into those it calls, or it would take ten minutes on two cores
# instead of two.
tidy() {
  git ls-files 'src/*.c' | grep -Ev '_(test|fuzz)[.]c$' |
    xargs -P "$(nproc)" -n 8 clang-tidy -p "$build" --quiet "--extra-arg=-include$PWD/tools/tidy.h" \
      --extra-arg=-Xclang --extra-arg=-analyzer-config --extra-arg=-Xclang --extra-arg=mode=shallow 2>&1
}
found=$(tidy) || { echo "$found" | grep -Ev 'warnings? generated|treated as errors?'; status=1; }
exit $status
