#!/bin/sh
# check.sh [BUILD [PART…]] — What a reviewer should not have to look for: format, layers, type names, public headers, exported
# symbols, links in the documents, and what clang-tidy finds (.clang-tidy) in all of src/ but its tests.
#
# Every part says its name and its verdict on standard output, a failed one also all that it printed; the last line names the
# parts that failed. BUILD (build/dev) is configured and the library built in it where that was not done. By default all parts run.
set -u
cd "$(dirname "$0")/.." || exit 2
build=${1:-build/dev}
[ $# -eq 0 ] || shift
asked=${*:-build format layers types headers symbols links tidy}
# Other versions format macros otherwise and have other checks.
LLVM=14

# tool NAME — Prints the command that is NAME of version $LLVM.
tool() {
  found=""
  for command in "$1-$LLVM" "$1"; do
    version=$("$command" --version 2>/dev/null | grep -oE 'version [0-9]+' | head -n 1)
    [ "$version" != "version $LLVM" ] || { echo "$command"; return 0; }
    [ -z "$version" ] || found=", $command is $version"
  done
  echo "$1 of version $LLVM is not installed$found: tools/setup.sh packages installs it" >&2
  return 1
}

part_build() {
  if [ ! -f "$build/CMakeCache.txt" ]; then
    cmake --preset "$(basename "$build")" -B "$build" || return 1
  fi
  cmake --build "$build" --target weir
}

part_format() {
  command=$(tool clang-format) || return 1
  find bench cli examples include src tests tools -name '*.[ch]' | xargs "$command" --dry-run -Werror
}

part_layers() { python3 tools/check_layers.py; }
part_types() { python3 tools/check_types.py; }
part_headers() { tools/check_headers.sh "$build"; }
part_symbols() { tools/check_symbols.sh "$build/libweir.so"; }

# Every relative link of a document leads somewhere.
part_links() {
  result=0
  for document in *.md docs/*.md examples/*.md; do
    for link in $(grep -oE '\]\([^)#]+' "$document" | grep -v '://' | cut -c3-); do
      [ -e "$(dirname "$document")/$link" ] || { echo "$document: dead link $link"; result=1; }
    done
  done
  return $result
}

# The analyzer gives up on a function after so many states, and does not go far into those it calls, or it would take ten
# minutes on two cores instead of three. The largest files come first, so that no core waits for one at the end. Each file has
# a process of its own: where va_list is an array, as on x86-64, version 14 takes every one of the files after the first for
# uninitialized.
part_tidy() {
  command=$(tool clang-tidy) || return 1
  set -- "--extra-arg=-include$PWD/tools/tidy.h"
  for setting in mode=shallow max-nodes=20000; do
    set -- "$@" --extra-arg=-Xclang --extra-arg=-analyzer-config --extra-arg=-Xclang "--extra-arg=$setting"
  done
  find src -name '*.c' ! -name '*_test.c' ! -name '*_fuzz.c' -printf '%s %p\n' | sort -rn | cut -d' ' -f2 |
    xargs -P "$(nproc)" -n 1 "$command" -p "$build" --quiet "$@"
}

failed=""
for part in $asked; do
  printf '%s: ' "$part"
  output=$("part_$part" 2>&1)
  code=$?
  [ $code -ne 0 ] || { echo "ok"; continue; }
  echo "FAILED with exit status $code, having printed:"
  printf '%s\n' "${output:-(nothing)}" | grep -Ev '^[0-9]+ warnings? (generated|treated as errors?)\.?$'
  failed="$failed $part"
done
[ -z "$failed" ] || { echo "check: FAILED:$failed"; exit 1; }
echo "check: ok"
