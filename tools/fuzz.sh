#!/bin/sh
# fuzz.sh [SECONDS] [TARGET...] — Runs every fuzz target, or those named, for so many seconds each (60). The build is
# build/fuzz, or $WEIR_FUZZ_BUILD. What is found is left in the folder the fuzzer names; new inputs stay out of the corpus.
set -eu
seconds=${1:-60}
[ $# -gt 0 ] && shift
root=$(cd "$(dirname "$0")/.." && pwd)
build=${WEIR_FUZZ_BUILD:-$root/build/fuzz}
if [ -z "${WEIR_FUZZ_BUILD:-}" ]; then
  (cd "$root" && cmake --preset fuzz > /dev/null && cmake --build --preset fuzz)
fi
[ $# -gt 0 ] || set -- $(cd "$build/tests/fuzz" && ls | grep '_fuzz$')
failed=0
for target in "$@"; do
  work=$build/fuzzing/$target
  corpus=$root/tests/fuzz/corpus/${target%_fuzz}
  mkdir -p "$work"
  [ -d "$corpus" ] || corpus=
  echo "== $target"
  "$build/tests/fuzz/$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="$work/" "$work" $corpus > "$work.log" 2>&1 || { failed=1; tail -40 "$work.log"; }
  grep -E 'number_of_executed_units|ERROR|SUMMARY' "$work.log" || true
done
exit $failed
