# Every target first brings .venv up to date (a no-op when nothing changed); python3, make and git are all it needs.
# Another Python: make PYTHON=/usr/bin/python3.12 …   Extra arguments: make test ARGS="tests/cli -q"

PYTHON ?= python3
ARGS ?=
BIN := .venv/bin

# Trainers' libraries are heavy and have locks of their own: each gets an environment beside .venv.
.PHONY: help venv demo test trainers check format bench serve lock clean
.DEFAULT_GOAL := help

help:  ## Show this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 16

venv:
	@command -v $(PYTHON) >/dev/null || { echo "assay: '$(PYTHON)' was not found; install Python 3.11 or newer" >&2; exit 1; }
	@$(PYTHON) tools/bootstrap/bootstrap.py

demo: venv  ## Grade the bundled tasks in real sandboxes and show each verdict
	@$(BIN)/assay demo $(ARGS)

test: venv  ## Run the whole test suite
	$(BIN)/python -m pytest $(ARGS)

trainers: venv  ## Test the adapters in the trainers' own libraries (installs TRL and PyTorch for it)
	@test -x .venv-trl/bin/python || $(PYTHON) -m venv .venv-trl
	.venv-trl/bin/python -m pip install --quiet torch==2.13.0 trl==1.16.0 ./client
	ASSAY_TEST_TRL_PYTHON=$(CURDIR)/.venv-trl/bin/python $(BIN)/python -m pytest tests/trainers $(ARGS)

check: venv  ## Formatting, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: venv  ## Format and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: venv  ## Tasks per second, beside plain subprocesses
	@$(BIN)/python -m benchmarks $(ARGS)

serve: venv  ## Start the service on 127.0.0.1:8000
	@$(BIN)/assay serve $(ARGS)

lock: venv  ## Bring requirements.lock up to date with pyproject.toml (newest versions: ARGS=--upgrade)
	$(BIN)/python -m pip install --quiet --group lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-build \
		--no-emit-index-url --no-emit-find-links --no-emit-package assay-client \
		--custom-compile-command "make lock" --group dev -o requirements.lock pyproject.toml $(ARGS)

clean:  ## Remove .venv and all caches
	rm -rf .venv .venv-trl .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
