#!/bin/sh
# build_probe.sh — Builds libweir_probe.so, incrementally, into the directory given.
#
# usage: build_probe.sh DIRECTORY [jobs]
# The flags are those of the release build (CMakeLists.txt), so that the oracle checks the same arithmetic.
# A file that does not compile keeps its last good object, or is left out; symbols that are missing then abort when called.
# Both are reported, so that work on one op is not held up by work on another.
set -eu
dir=${1:?usage: build_probe.sh DIRECTORY [jobs]}
jobs=${2:-2}
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
exec 9> "$dir/lock"
flock 9

cd "$root"
sources=$(find src/base src/wire src/tensor src/file src/device src/op src/kernel src/image src/ops \
  -name '*.c' ! -name '*_test.c' ! -name '*_fuzz.c' ! -name '*_bench.c' ! -name '*_absent.c' \
  ! -path src/ops/builtin_ops.c \
  2> /dev/null | LC_ALL=C sort)
tools/cuda_sources.sh $(find src -name '*.cu' | LC_ALL=C sort) > "$dir/cuda_sources.new"
cmp -s "$dir/cuda_sources.new" "$dir/cuda_sources.c" || cp "$dir/cuda_sources.new" "$dir/cuda_sources.c"
late="$dir/cuda_sources.c src/ops/builtin_ops.c src/runtime/op_call.c tests/oracle/probe.c tests/testing/cuda_fake.c"

# OpenBLAS is opened at run time; here is where CMakeLists.txt would find it, if anywhere.
blas_flags=-DWEIR_HAVE_BLAS=1
library=/usr/lib/$(${CC:-gcc} -dumpmachine)/openblas-pthread/libopenblas.so.0
[ -e "$library" ] && blas_flags="$blas_flags -DWEIR_BLAS_PATH='\"$library\"'"
flags="-std=c11 -D_GNU_SOURCE -O2 -DNDEBUG -g -fPIC -w -ffp-contract=off -fno-math-errno $blas_flags"
echo "$flags" > "$dir/flags.new"
cmp -s "$dir/flags.new" "$dir/flags" || cp "$dir/flags.new" "$dir/flags"

# The rules. An object replaces the old one only when its compilation succeeded.
{
  echo "CC ?= gcc"
  echo "CFLAGS = $flags -Iinclude -Isrc -Itests -I$dir"
  printf 'objects ='
  for f in $sources; do
    printf ' %s/%s.o' "$dir" "$(echo "$f" | tr / .)"
  done
  echo
  echo "all: \$(objects)"
  for f in $sources $late; do
    o="$dir/$(echo "$f" | tr / .).o"
    echo "$o: $f $dir/flags"
    more=
    case $f in src/kernel/*) more='-O3 -fno-trapping-math' ;; esac
    printf '\t@$(CC) $(CFLAGS) %s -MMD -MP -MF $@.d -MT $@ -c $< -o $@.new && mv $@.new $@\n' "$more"
    echo "-include $o.d"
  done
} > "$dir/Makefile.new"
cmp -s "$dir/Makefile.new" "$dir/Makefile" || cp "$dir/Makefile.new" "$dir/Makefile"
make -s -k -j"$jobs" -f "$dir/Makefile" all 2> "$dir/errors.txt" || {
  echo "build_probe: some files do not compile:" >&2
  grep -E 'error:' "$dir/errors.txt" | head -20 >&2 || head -20 "$dir/errors.txt" >&2
}

# The list of op modules: those that compiled.
for f in $sources; do
  case $f in src/ops/*/*.c) ;; *) continue ;; esac
  o="$dir/$(echo "$f" | tr / .).o"
  group=$(basename "$(dirname "$f")")
  file=$(basename "$f" .c)
  [ -f "$o" ] && nm "$o" | grep -q "[DRd] weir_ops_${group}_$file\$" &&
    echo "WEIR_OP_MODULE($group, $file)"
done > "$dir/op_modules.new" || true
cmp -s "$dir/op_modules.new" "$dir/op_modules.inc" || cp "$dir/op_modules.new" "$dir/op_modules.inc"
for f in $late; do
  make -s -f "$dir/Makefile" "$dir/$(echo "$f" | tr / .).o"
done

objects=
newest=0
for f in $sources $late; do
  o="$dir/$(echo "$f" | tr / .).o"
  [ -f "$o" ] || continue
  objects="$objects $o"
  [ "$o" -nt "$dir/libweir_probe.so" ] && newest=1
done
[ -f "$dir/libweir_probe.so" ] && [ $newest = 0 ] && exit 0

link() { ${CC:-gcc} -shared -Wl,-z,defs -o "$dir/lib.new" "$@" -ljpeg -lpng -lm -lpthread -ldl; }
if ! link $objects 2> "$dir/link.txt"; then
  missing=$(sed -n "s/.*undefined reference to \`\([A-Za-z0-9_]*\)'.*/\1/p" "$dir/link.txt" | sort -u)
  if [ -z "$missing" ]; then
    cat "$dir/link.txt" >&2
    exit 1
  fi
  echo "build_probe: missing symbols, which abort when called:" $missing >&2
  {
    printf '#include <stdio.h>\n#include <stdlib.h>\n'
    for s in $missing; do
      printf 'void %s(void);\nvoid %s(void) { fputs("%s is not there\\n", stderr); abort(); }\n' "$s" "$s" "$s"
    done
  } > "$dir/missing.c"
  ${CC:-gcc} -fPIC -fno-builtin -w -c "$dir/missing.c" -o "$dir/missing.o"
  link $objects "$dir/missing.o"
fi
mv "$dir/lib.new" "$dir/libweir_probe.so"
