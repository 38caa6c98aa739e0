#!/bin/sh
# one_object.sh ARCHIVE CC OBJCOPY AR — Makes one object of the archive's, in which only what the C API exports is global: what
# files of the library call each other by cannot clash with a program's own names. Sections stay apart (--unique), those of constants too,
# so that a program's linker can leave out what it does not use.
set -eu
archive=$1 cc=$2 objcopy=$3 ar=$4
object=$(dirname "$archive")/weir.o
"$cc" -r -nostdlib -Wl,--unique -Wl,--whole-archive "$archive" -Wl,--no-whole-archive -o "$object"
"$objcopy" --localize-hidden "$object"
rm -f "$archive"
"$ar" rcs "$archive" "$object"
rm -f "$object"
