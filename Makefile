# SPDX-License-Identifier: Apache-2.0
# `make demo` and `make test` do all the setup on a fresh Debian or Ubuntu machine; a second run skips what is already done.
.DELETE_ON_ERROR:
SHELL := /bin/bash
PYTHON ?= python3
JOBS ?= $(shell nproc)
# Which lock file the tests run with: test, oldest or newest.
LOCK ?= test
PY := .venv/bin/python
PIP := .venv/bin/pip --disable-pip-version-check
CMAKE := .venv/bin/cmake
CTEST := .venv/bin/ctest --output-on-failure

export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)
# The presets ask for Ninja; it lives in the virtual environment.
export PATH := $(CURDIR)/.venv/bin:$(PATH)
# Two worker pools in one process (NumPy's OpenBLAS and ours) slow each other down while one of them spins.
export OPENBLAS_THREAD_TIMEOUT := 4

# Each step prints its name, progress and time (tools/step.py).
STEP := $(PYTHON) tools/step.py
# Only in CI does a warning stop a build: a new compiler's warning must not stop a user.
WERROR := $(if $(CI),ON,OFF)
# A part of a test target: make test-cpp FOLDER=ops; make test-py SELECT="tests/op -k dot".
FOLDER :=
SELECT :=
FOLDER_TARGET := $(if $(FOLDER),--target $(FOLDER)_test)
FOLDER_TEST := $(if $(FOLDER),-R '^$(FOLDER)$$')
# Everything whole, where CI takes a part in turn; see `test-all`.
WHOLE := $(SHARDWISE_WHOLE)

# One build tree serves the extension and the plain C++ tests. No isolation: the binding units would be compiled
# again each time, because pip's temporary environment has a new path. -v: the log shows the compiler's progress.
EDITABLE := $(PIP) install -v --no-build-isolation --config-settings=build-dir=build/editable \
  --config-settings=cmake.define.SHARDWISE_WERROR=$(WERROR)
ASAN_PRELOAD = $(shell g++ -print-file-name=libasan.so) $(shell g++ -print-file-name=libstdc++.so)
# The sanitizers of GCC 12 and 13 stop at start where the kernel randomises more than 28 bits of an address.
FIXED_ADDRESSES = $(shell test "$$(cat /proc/sys/vm/mmap_rnd_bits 2> /dev/null || echo 0)" -gt 28 && \
  setarch "$$(uname -m)" -R true 2> /dev/null && echo setarch "$$(uname -m)" -R)
ASAN_PYTEST := tests/op/test_matrix.py tests/partition/test_random_programs.py tests/conformance/fuzz/test_mutated_text.py
# Sanitizers cost a factor of eight: ops are tried there with float32, int32 and bool, those with few cases with a narrow
# float and a narrow integer as well.
ASAN_SELECT := not (int16 or int64 or uint or float64 or (float16 and not bfloat16)) and \
  not ((scatter or gather or window or argm or affine or ends) and (int8 or bfloat16))

.PHONY: help setup build build-tests build-asan build-tsan demo docs test test-more test-all test-cpp test-asan test-asan-cpp \
  test-asan-py test-tsan test-arm test-py test-random test-ranks test-includes test-faults test-debian beside-pytest wheel lint format stubs notebooks lock bench clean

help:
	@echo "make demo | test | test-more | test-all | docs | build | test-cpp | test-asan | test-tsan | test-arm | test-py | wheel | lint | format |"
	@echo "     stubs | notebooks | clean"

setup: .venv/.packages

# What a build and the demo need. The lock files in requirements/ pin everything: pip resolves nothing.
.venv/.demo-packages: requirements/demo.txt tools/system_packages.sh
	PYTHON="$(PYTHON)" tools/system_packages.sh
	test -x $(PY) || $(PYTHON) -m venv .venv
	@$(STEP) demo-packages --log -- $(PIP) install --progress-bar off --no-deps -r $<
	touch $@

# And what tests, examples and docs need.
.venv/.packages: requirements/$(LOCK).txt .venv/.demo-packages
	PYTHON="$(PYTHON)" tools/system_packages.sh test
	@$(STEP) test-packages --log -- $(PIP) install --progress-bar off --no-deps -r $<
	touch $@

# Writes the lock files; UPGRADE=--upgrade takes the newest versions that pyproject.toml allows.
lock: .venv/.demo-packages
	$(PIP) install --quiet uv==0.13.9
	$(PY) tools/lock_requirements.py $(UPGRADE)

# The extension; it needs no test library.
build: .venv/.demo-packages
	@$(STEP) build --log -- $(EDITABLE) --no-deps -e .

# The C++ tests in the same tree.
build-tests: setup build
	@$(CMAKE) -DSHARDWISE_TESTS=ON build/editable > /dev/null
	@$(STEP) build-tests --log -- $(CMAKE) --build build/editable $(FOLDER_TARGET)

demo: build
	@$(STEP) quickstart -- $(PY) examples/quickstart.py
	@$(STEP) digits -- $(PY) examples/digits.py
	@$(STEP) moe_layer -- $(PY) examples/moe_layer.py
	@if $(PY) -c "import jax" 2> /dev/null; then $(STEP) from_jax -- $(PY) examples/from_jax.py && $(STEP) on_jax -- $(PY) examples/on_jax.py; fi
	@! $(PY) -c "import mpi4py" 2> /dev/null || $(STEP) on_mpi -- $(PY) tools/mpirun.py 4 examples/on_mpi.py

# The site in build/docs. The programs of pages must print what the pages show; Sphinx runs the notebooks. -E: the reference
# follows the code, also where its page has not changed.
docs: setup build
	@$(STEP) docs-pages --log -- $(PY) tools/pages.py
	@$(STEP) docs-site --log -- $(PY) -m sphinx -E -W --keep-going -q -j auto -b html docs build/docs
	@$(STEP) docs-check --log -- $(PY) tools/check_site.py

# The plain pytest run comes last, so that the last summary printed is pytest's.
test: setup build
	@$(MAKE) --no-print-directory -j2 beside-pytest
	@$(MAKE) --no-print-directory test-py

# These use one core most of the time.
beside-pytest: test-cpp test-tsan docs

# What takes longer: C++ and Python under sanitizers, more random programs and texts than `make test` tries, many ranks, and
# each C++ source alone.
test-more: test-asan-cpp test-asan-py test-random test-ranks test-includes

# Everything whole, for a release: CI runs a third of some tables, another one at each commit (CONTRIBUTING.md).
test-all: export SHARDWISE_WHOLE := 1
test-all: test test-more test-arm lint wheel test-faults test-debian

# Bare roots made by debootstrap; needs root. Forky is not released: it may fail.
test-debian:
	tools/try_debian.sh 12
	tools/try_debian.sh 12 --lock oldest --steps test-py
	tools/try_debian.sh 13
	tools/try_debian.sh 13 --compiler g++-12
	tools/try_debian.sh 13 --compiler g++-13
	tools/try_debian.sh forky || echo "note: forky failed; it is Debian's next release, and packages of it may be missing"

# Whether CI finds faults by the part of the tests that it runs in each commit.
test-faults: setup build
	@$(STEP) test-faults -- $(PY) tools/try_faults.py

test-cpp: build-tests
	@$(STEP) test-cpp --log -- $(CTEST) --test-dir build/editable -j $(JOBS) $(FOLDER_TEST)

test-asan: test-asan-cpp test-asan-py

# The sources that the commits of the last day touch.
test-includes: setup build
	@$(STEP) test-includes -- $(PY) tools/check_includes.py build/editable $(if $(WHOLE),--all)

SANITIZED := -DSHARDWISE_WERROR=$(WERROR) $(if $(WHOLE),-DSHARDWISE_UBSAN=all)

build/asan/build.ninja: CMakePresets.json | setup
	$(CMAKE) --preset asan $(SANITIZED) > /dev/null

build/tsan/build.ninja: CMakePresets.json | setup
	$(CMAKE) --preset tsan $(SANITIZED) > /dev/null

build/arm/build.ninja: CMakePresets.json tools/arm_toolchain.cmake tools/arm_sysroot.sh | setup
	PYTHON="$(PYTHON)" tools/system_packages.sh arm
	tools/arm_sysroot.sh build/arm/sysroot
	$(CMAKE) --preset arm -DSHARDWISE_WERROR=$(WERROR) > /dev/null

build-asan: build/asan/build.ninja
	@$(STEP) build-asan --log -- $(CMAKE) --build build/asan $(FOLDER_TARGET)

test-asan-cpp: build-asan
	@$(STEP) test-asan-cpp --log -- $(FIXED_ADDRESSES) $(CTEST) --test-dir build/asan -j $(JOBS) $(FOLDER_TEST)

# The op table and the random programs against an extension with sanitizers. libasan must come first and libstdc++
# beside it, or the first C++ exception aborts; CPython itself "leaks"; pytest's capture would swallow the report;
# SKBUILD_EDITABLE_SKIP keeps the editable install from being imported instead.
test-asan-py: test-asan-cpp build
	rm -rf build/asan-site
	$(CMAKE) --install build/asan --prefix build/asan-site > /dev/null
	cp -r python/shardwise/. build/asan-site/shardwise/
	@$(STEP) test-asan-py -- env SKBUILD_EDITABLE_SKIP="$(CURDIR)/build/editable" PYTHONPATH="$(CURDIR)/build/asan-site" \
	  SHARDWISE_MATRIX=turn SHARDWISE_HYPOTHESIS=$(if $(WHOLE),fixed,turn) ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 LD_PRELOAD="$(ASAN_PRELOAD)" \
	  $(FIXED_ADDRESSES) $(PY) -m pytest -q --capture=no -n $(JOBS) --dist worksteal -p no:cacheprovider $(ASAN_PYTEST) \
	  --hypothesis-seed=$$($(PY) -m tests.support.run_seed) -k "$(ASAN_SELECT)"

# The thread pool is the only code with threads of its own; its tests are in base and, through the executor, runtime. They
# are repeated: a race does not show in every run.
build-tsan: build/tsan/build.ninja
	@$(STEP) build-tsan --log -- $(CMAKE) --build build/tsan --target base_test

test-tsan: build-tsan
	@$(STEP) test-tsan --log -- $(FIXED_ADDRESSES) $(CTEST) --test-dir build/tsan -R '^base$$' --repeat until-fail:3

# A cross build; an emulator (qemu-aarch64) runs the tests.
test-arm: build/arm/build.ninja
	@$(STEP) build-arm --log -- $(CMAKE) --build build/arm
	@$(STEP) test-arm --log -- $(CTEST) --test-dir build/arm -j $(JOBS)

test-py: setup build
	@$(STEP) test-py -- $(PY) -m pytest -q -n $(JOBS) --dist worksteal $(SELECT)

# The oracles leave with 1 where Shardy disagrees and no known mechanism explains it, and at a crash of a mutated text;
# the benchmark, if a program sends more than its bound and more than is known of it. Each commit has another seed.
test-random: setup build
	@$(STEP) test-random -- $(PY) -m tests.conformance.run_random --jobs $(JOBS) $(SELECT)

# `make test` has the list of programs on 4 ranks; this runs it on 1, 2 and 3, in turn on 8, and random programs on 4, 8 and
# one of 1, 2 and 3 in turn.
test-ranks: setup build
	@$(STEP) test-ranks -- $(PY) -m tests.mpi.ranks $(SELECT)

# In dist/, for each CPython that tools/wheels.sh finds or PYTHONS names.
wheel: setup build
	@$(STEP) wheels -- env PYTHON="$(PYTHON)" tools/wheels.sh
	@$(STEP) wheel-checks -- $(PY) -m pytest -q tests/style/wheel_checks.py

lint: setup build
	.venv/bin/ruff check .
	.venv/bin/mypy
	$(PY) -m tests.style.assertions
	git ls-files '*.h' '*.cpp' | xargs .venv/bin/clang-format --dry-run --Werror

format: setup
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .
	git ls-files '*.h' '*.cpp' | xargs .venv/bin/clang-format -i

# The stubs of the extension are committed; a test checks that they are fresh.
stubs: setup build
	$(PY) tools/make_stubs.py

# Outputs in pages are committed, and so are the notebooks of tutorials; tests check that both are fresh.
notebooks: setup build
	$(PY) tools/make_differences.py
	$(PY) tools/pages.py --write
	$(PY) tools/make_notebooks.py

bench: setup build
	$(PY) -m benchmarks.compile
	$(PY) -m benchmarks.execute
	$(PY) -m benchmarks.moe
	$(PY) -m benchmarks.translation
	$(PY) -m benchmarks.import_time

clean:
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
