# What can be done with a checkout. `make help` lists it; `make demo` and `make test` need nothing
# but python3, a C++ compiler and make: they build .venv themselves.

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell tools/newest_python.sh)
JOBS := $(shell nproc)

# What `make pytest` and `make lit` run; a file, a folder, or several.
TESTS :=
LIT := test
# The tests that depend on the processor, and another machine to run them as on.
PROCESSOR_TESTS := $(addprefix test/,runtime/test_processor.py end_to_end/test_processor_levels.py \
	end_to_end/test_narrow_products.py end_to_end/test_attention_pairs.py backends/test_padding_in_parts.py \
	$(addprefix backends/test_,kernel.py quotients.py scan.py vectors.py))
PROCESSOR_LIT := test/backends
MACHINE := haswell
# An editable installation knows the modules that there were when it was made: another list, another file.
MODULES := $(VENV)/modules-$(shell find frontend dialects passes backends runtime tools -name '*.py' | LC_ALL=C sort | \
	cksum | cut -d' ' -f1)
FOR_TESTS := $(VENV)/made-for-test $(MODULES)
NATIVE := CMakeLists.txt $(wildcard $(addprefix runtime/src/*/,*.cpp *.h))

# Tests start many interpreters: bytecode is kept even where the shell says otherwise.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup build demo test test-as pytest lit lint format typecheck docs gpu-registers bench gpu-check gpu-pack \
        fuzz jax-check libraries sanitize wheel-smoke clean

help:  ## what each target does
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## */\t/' | expand -t 14

# The demo needs less than the tests; an environment made for the tests serves both.
$(VENV)/made-for-test: pyproject.toml $(NATIVE)
	$(PYTHON) tools/make_venv.py $(VENV) test
	@touch $(VENV)/made-for-demo $(MODULES) $@

$(VENV)/made-for-demo: pyproject.toml $(NATIVE)
	$(PYTHON) tools/make_venv.py $(VENV) demo
	@touch $(MODULES) $@

$(MODULES): | $(VENV)/made-for-demo
	$(BIN)/pip install -q --no-build-isolation --no-deps -e .
	@rm -f $(VENV)/modules-* && touch $@

setup: $(FOR_TESTS)  ## make .venv with everything for development

build:  ## rebuild the native runtime
	@test -x $(BIN)/python || $(MAKE) setup
	$(BIN)/pip install -q --no-build-isolation --no-deps -e .

demo: $(VENV)/made-for-demo $(MODULES)  ## train a classifier of handwritten digits, show what was compiled
	$(BIN)/python examples/digits.py

test: pytest lit  ## all tests

test-as: TESTS := $(PROCESSOR_TESTS)
test-as: LIT := $(PROCESSOR_LIT)
test-as: $(FOR_TESTS)  ## tests as on another machine: MACHINE=zen5 TESTS=test LIT=test
	$(BIN)/python test/run_as.py $(MACHINE) $(MAKE) pytest lit TESTS="$(TESTS)" LIT="$(LIT)"

pytest: $(FOR_TESTS)  ## the tests in Python
	$(BIN)/pytest -q -n $(JOBS) $(TESTS)

lit: $(FOR_TESTS)  ## the tests of passes and lowerings
	$(BIN)/lit -q -j $(JOBS) $(LIT)

fuzz: $(FOR_TESTS)  ## damaged programs, artifacts and store entries; FUZZ="--cases 5000 text" for more
	$(BIN)/python test/fuzz/fuzz.py $(or $(FUZZ),--seconds 60)

sanitize: $(FOR_TESTS)  ## the native runtime's tests with ASan and UBSan, then with TSan
	$(BIN)/python test/sanitize.py $(SANITIZE)

lint: $(FOR_TESTS)  ## style of Python and C++, direction of imports
	$(BIN)/ruff check .
	$(BIN)/clang-format --dry-run --Werror $(filter-out CMakeLists.txt,$(NATIVE))
	$(BIN)/python tools/check_layers.py

format: $(FOR_TESTS)  ## put imports and C++ into their style
	$(BIN)/ruff check --fix --select I .
	$(BIN)/clang-format -i $(filter-out CMakeLists.txt,$(NATIVE))

typecheck: $(FOR_TESTS)  ## mypy, over a tree of links that looks as the wheel does
	@rm -rf build/typing && mkdir -p build/typing
	@cp -rs $(CURDIR)/frontend/lamina build/typing/lamina
	@for part in dialects passes backends runtime tools; do \
	  rm -rf build/typing/lamina/$$part; cp -rs $(CURDIR)/$$part build/typing/lamina/$$part; done
	$(BIN)/mypy

docs: $(FOR_TESTS)  ## generate the tables of docs/ from the code
	$(BIN)/python -m lamina.tools.gen_docs

gpu-registers: $(FOR_TESTS)  ## generate docs/cuda-registers.md; CLASSES="softmax scan" for some rows
	$(BIN)/python test/cuda_registers.py $(CLASSES)

bench: $(FOR_TESTS)  ## measure against JAX; BENCH="--quick --only matmul" for a part
	$(BIN)/python -m benchmarks --json out/benchmarks.json --chart out/benchmarks.png $(BENCH)

gpu-check: $(FOR_TESTS)  ## on a machine with a GPU: exchange, rates, demo and samples, to out/gpu.json
	@mkdir -p out
	$(BIN)/python benchmarks/gpu_check.py out/gpu.json

gpu-pack: $(FOR_TESTS)  ## pack gpu-check for a machine without a network, in out/gpu
	$(BIN)/python benchmarks/pack_for_gpu.py out/gpu

# Libraries written for JAX, in an environment of their own that also sees all that the tests' has.
LIBRARIES := build/libraries/bin/python
libraries: $(FOR_TESTS)  ## run pinned libraries for JAX on lamina, compare with JAX's results
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 12))' || \
	  { echo "the libraries need JAX 0.12, so a .venv of Python 3.12 or 3.13: remove .venv first"; exit 1; }
	@test "$$($(LIBRARIES) -V 2>&1)" = "$$($(BIN)/python -V)" || \
	  { rm -rf build/libraries && $(BIN)/python tools/make_venv.py build/libraries; }
	@packages='import sysconfig; print(sysconfig.get_path("purelib"))' && \
	  printf 'import site; site.addsitedir("%s")\n' "$$($(BIN)/python -c "$$packages")" \
	  > "$$($(LIBRARIES) -c "$$packages")/tests.pth"
	$(LIBRARIES) -m pip install -q --no-compile --no-deps -r test/libraries/requirements.txt
	$(LIBRARIES) test/libraries/run.py $(PROGRAMS)
	$(LIBRARIES) test/libraries/run.py --plugin $(PROGRAMS)

jax-check: $(FOR_TESTS)  ## JAX's own tests on lamina: CHECKOUT=jax TESTS="lax_test nn_test"
	$(BIN)/python test/jax_check.py $(CHECKOUT) $(TESTS) $(if $(DEVICES),--devices $(DEVICES))

wheel-smoke: $(FOR_TESTS)  ## build the wheel, try it in a clean environment
	rm -rf dist build/smoke && mkdir -p build/smoke/elsewhere
	$(BIN)/pip wheel -q --no-build-isolation --no-deps -C build-dir=build/smoke/native -w dist .
	$(PYTHON) tools/make_venv.py build/smoke/venv
	build/smoke/venv/bin/pip install -q dist/*.whl
	cd build/smoke/elsewhere && ../venv/bin/python -I $(CURDIR)/test/wheel_smoke.py

clean:  ## remove what was built; .venv stays
	rm -rf build dist out .pytest_cache .ruff_cache .mypy_cache
