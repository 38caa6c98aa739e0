# Weir: two commands, `make demo` and `make test`. Each installs what it needs, on Debian 12 and Ubuntu 24.04.
PREFIX ?= /usr/local
PYTHON := .venv/bin/python
LIB := build/dev/libweir.so
PROBE := build/dev/tests/oracle/libweir_probe.so
.DEFAULT_GOAL := build
.PHONY: build demo test test-c test-asan test-tsan test-python test-ops test-gradients test-programs test-random test-cuda cuda-records oracle chaos install wheel bench check format fuzz clean deb

# ---- set-up: Debian packages and, for tests, the real TensorFlow from PyPI ----
build/.packages: tools/setup.sh
	tools/setup.sh packages
	mkdir -p build && touch $@

build/.python: tools/setup.sh tools/requirements.txt build/.packages
	tools/setup.sh python
	touch $@

# ---- build ----
build: build/.packages
	cmake --preset release >/dev/null
	cmake --build --preset release

demo: build
	build/release/examples/mnist runs/mnist

install: build
	cmake --install build/release --prefix $(PREFIX)

# The Python package as a wheel in dist/, of the release library; needs no network.
wheel: build
	python3 python/tools/weir_wheel.py --build build/release --out dist

# Debian packages in build/release/packages.
deb: build/.packages
	cmake --preset release >/dev/null
	cmake --build --preset release
	cpack --config build/release/CPackConfig.cmake

# ---- tests ----
test: check test-c test-asan test-tsan test-python

test-c: build/.packages
	cmake --preset dev >/dev/null
	cmake --build --preset dev
	ctest --preset dev -j2

test-asan: build/.packages
	cmake --preset asan >/dev/null
	cmake --build --preset asan --target unit_tests
	ctest --preset asan -j2

test-tsan: build/.packages
	cmake --preset tsan >/dev/null
	cmake --build --preset tsan --target unit_tests
	ctest --preset tsan -j2

# Three tests at a time on two cores: some wait more than they work. The longest files begin (tests/conftest.py).
test-python: build/.python
	cmake --preset dev >/dev/null
	cmake --build --preset dev
	$(MAKE) --no-print-directory -j2 -Otarget test-ops test-gradients test-programs test-random
	$(PYTHON) tests/oracle/oracle.py --core build/dev/oracle.json build/dev/gradients.json build/dev/programs.json
	$(PYTHON) tests/oracle/compile_kernels.py --probe $(PROBE)
	$(PYTHON) -m pytest -q -n 3 --dist loadfile --no-loadscope-reorder tests --ignore=tests/cluster --ignore=tests/families
	$(PYTHON) -m pytest -q -n 2 --dist loadfile tests/cluster tests/families

# Each keeps one core busy, so test-python runs two at a time.
test-ops:
	$(PYTHON) tests/oracle/oracle.py --strict --probe $(PROBE) --devices cpu,guard --counts build/dev/oracle.json

test-gradients:
	$(PYTHON) tests/oracle/gradients.py --lib $(LIB) --counts build/dev/gradients.json

test-programs:
	$(PYTHON) tests/oracle/programs.py --lib $(LIB) --probe $(PROBE) --devices cpu:2,guard:2 --counts build/dev/programs.json

test-random:
	$(PYTHON) tests/oracle/random_programs.py --lib $(LIB) --count 1000 --jobs 1
	$(PYTHON) tests/oracle/random_programs.py --lib $(LIB) --count 200 --jobs 1 --devices cpu:2
	$(PYTHON) tests/oracle/random_pipelines.py --lib $(LIB) --seed 1000 --count 150 --jobs 1
	$(PYTHON) tests/oracle/random_pipelines.py --lib $(LIB) --seed 2200 --count 40 --jobs 1 --saves
	$(PYTHON) tests/oracle/random_pipelines.py --lib $(LIB) --seed 3300 --count 40 --jobs 1 --graphs
	$(PYTHON) tests/oracle/random_programs.py --lib $(LIB) --count 200 --jobs 1 --variables resource --devices cpu:2,guard:2
	$(PYTHON) tests/oracle/random_protos.py --lib $(LIB) --count 400
	$(PYTHON) tests/oracle/random_recursion.py --lib $(LIB) --count 30
	$(PYTHON) tests/oracle/bad_inputs.py --probe $(PROBE) --count 16

# On a machine with a GPU: needs a compiler, CMake, Python with NumPy, and the recorded cases in tests/cuda.
test-cuda:
	cmake -S . -B build/cuda -DCMAKE_BUILD_TYPE=Release -DWEIR_CLUSTER=OFF -DWEIR_TESTS=OFF -DWEIR_PROBE=ON >/dev/null
	cmake --build build/cuda -j
	python3 tests/cuda/run.py --build build/cuda

# Needs no GPU, but TensorFlow.
cuda-records: build/.python
	$(PYTHON) tests/cuda/make_records.py --lib $(LIB) --probe $(PROBE) --cli build/dev/cli/weir

# The same checks with fresh seeds, many rounds of them. A seed that fails is repeated by --seed.
ROUNDS ?= 10
oracle: build/.python
	cmake --preset dev >/dev/null
	cmake --build --preset dev
	$(PYTHON) tests/oracle/oracle.py --strict --probe $(PROBE) --devices cpu,guard --fresh --rounds $(ROUNDS)
	$(PYTHON) tests/oracle/bad_inputs.py --probe $(PROBE) --fresh --count 50
	$(PYTHON) tests/oracle/programs.py --lib $(LIB) --devices cpu:2,guard:2 --fresh --rounds $(ROUNDS)
	$(PYTHON) tests/oracle/gradients.py --lib $(LIB) --fresh --quota 5
	$(PYTHON) tests/oracle/gradients.py --lib $(LIB) --devices cpu,guard --fresh --quota 5

# Training in a cluster whose processes are killed, stopped and started again: so many rounds of each kind of fault, and a table.
chaos: build/.python
	cmake --preset dev >/dev/null
	cmake --build --preset dev
	$(PYTHON) tests/chaos/chaos.py --table $(ROUNDS)

# ---- the rest ----
bench: build
	bench/run.sh

check: build/.packages
	tools/check.sh build/dev

format:
	git ls-files '*.c' '*.h' '*.inc' | xargs clang-format-14 -i

fuzz: build/.packages
	cmake --preset fuzz >/dev/null
	cmake --build --preset fuzz
	tools/fuzz.sh

clean:
	rm -rf build
