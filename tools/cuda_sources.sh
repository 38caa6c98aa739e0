#!/bin/sh
# cuda_sources.sh — Prints C with the texts of CUDA sources: elementwise.cu becomes weir_cuda_source_elementwise,
# adam.inc weir_cuda_source_adam.
#
# usage: cuda_sources.sh [--empty] FILE...
# They are compiled on the GPU's machine, by NVRTC. Comments and indentation are left out; with --empty, all but the names.
set -eu
is_empty=false
[ "$1" != --empty ] || { is_empty=true; shift; }
for file in "$@"; do
  name=$(basename "$file")
  name=weir_cuda_source_${name%.*}
  echo "extern const char $name[];"
  echo "const char $name[] ="
  $is_empty && echo '    "";' && continue
  sed -e 's, *//\( .*\)*$,,' -e 's/^ *//' -e '/^$/d' -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/.*/    "&\\n"/' "$file"
  echo "    ;"
done
