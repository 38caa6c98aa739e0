#!/bin/sh
# check_headers.sh BUILD — Every public header, the generated ops.h among them, compiles alone as C11, C++17 and C++20.
set -eu
build=${1:?usage: check_headers.sh BUILD}
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags="-Wall -Wextra -Wshadow -Werror -fsyntax-only -I$root/include -I$build/include"
failed=0
for path in "$root"/include/weir/*.h "$build"/include/weir/*.h; do
  name=weir/$(basename "$path")
  printf '#include "%s"\n#include "%s"\nextern int alone;\n' "$name" "$name" > "$work/alone.c"
  printf '#include "%s"\nint main() { return 0; }\n' "$name" > "$work/alone.cc"
  ${CC:-cc} -std=c11 -Wpedantic -Wstrict-prototypes $flags "$work/alone.c" || { echo "$name: not C11 by itself"; failed=1; }
  if command -v "${CXX:-c++}" > /dev/null; then
    for standard in 17 20; do
      "${CXX:-c++}" -std=c++$standard $flags "$work/alone.cc" || { echo "$name: not C++$standard by itself"; failed=1; }
    done
  fi
done
exit $failed
