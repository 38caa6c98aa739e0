#!/bin/sh
# Times the benchmark graphs with Weir and, where it is installed, with TensorFlow, interleaved; prints the ratios.
# usage: bench/run.sh [NAME ...]
set -eu
cd "$(dirname "$0")/.."
PYTHON=.venv/bin/python
[ -x $PYTHON ] || PYTHON=python3
exec $PYTHON bench/compare.py "$@"
