# Two commands do all their own set-up: `make demo` and `make test`.
.PHONY: demo test fuzz coverage check lint bench update-golden setup clean
OUT ?= demo-report
BIN := .venv/bin

demo: setup
	@$(BIN)/carbonlens demo -o $(OUT)

# What CI runs: lint, types, architecture, all tests, wheel, bare core, small demo.
test: setup lint
	@$(BIN)/python -m pytest -m "not bench" -n 2 --dist worksteal --durations=10

# The laws alone, each on examples that are drawn anew: what CI, whose draws are fixed, has not seen.
fuzz: setup
	@CARBONLENS_FUZZ=1 $(BIN)/python -m pytest -m "hypothesis and not bench" -n 2 --dist worksteal

# The same tests with the lines that none of them runs. Tracing lines takes pure code three times as long.
coverage: setup
	@$(BIN)/python -m pytest -m "not bench" -n 2 --dist worksteal --cov=carbonlens --cov-report=term:skip-covered

# The quick loop while working: no slow tests.
check: setup lint
	@$(BIN)/python -m pytest

lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

# Benchmarks print figures; nothing is asserted about wall time.
bench: setup
	@$(BIN)/python -m pytest -m bench -s tests/bench

update-golden: setup
	@UPDATE_GOLDEN=1 $(BIN)/python -m pytest -m "not bench" -k golden

setup:
	@scripts/setup.sh

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis demo-report
