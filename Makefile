# Everything runs in .venv, made from scratch with the Python named here (3.11 or newer).
PYTHON ?= python3
BIN := .venv/bin
# Matrices here are small: threads of the linear algebra libraries only get in each other's way.
export OPENBLAS_NUM_THREADS := 1

.PHONY: demo survey check test test-all kernels fuzz docs notebooks vectors wheel wheel-quick reproduce bench bench-all clean

# Five questions, each with its answer and its picture, in demo/.
demo: .venv/demo
	$(BIN)/python examples/demo.py --out demo

# A page that asks, and its collector, until Ctrl-C; CHECK=1: reports are sent and counted instead.
survey: .venv/demo
	$(BIN)/python examples/survey/survey.py --out demo/survey $(if $(CHECK),--check)

# One case of every test that is not slow, without repeats, and all of those on pages and answers: minutes.
test: check
	$(BIN)/python -m pytest -n auto --dist worksteal --cases 1 --once

# All cases, and the slow tests: an hour on two cores. PART=3/16: the fourth of sixteen parts.
test-all: .venv/test
	$(BIN)/python -m pytest -n auto --dist worksteal -m "slow or not slow" $(if $(PART),--part $(PART))

# The numerical tests under each kernel of OpenBLAS that this processor can run: by hand, twenty minutes.
kernels: .venv/test
	$(BIN)/python tools/kernels.py

# What reads the code, and does not run it.
check: .venv/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The site, in docs/_build/html: warnings are errors.
docs: .venv/test
	$(BIN)/python -m sphinx -q -n -W --keep-going -d docs/_build/doctrees docs docs/_build/html

# The notebooks with their outputs, examples/notebooks/*.ipynb, from the scripts beside them.
notebooks: .venv/test
	$(BIN)/python tools/notebooks.py

# What clients in every language are compared with, clients/vectors/*.json: a minute.
vectors: .venv/test
	$(BIN)/python -m tools.vectors
	$(BIN)/python -m tools.value_vectors

# The tests against the wheel as installed, with the oldest and the newest releases of what it needs; quick: some of them.
wheel: .venv/test
	$(BIN)/python tools/wheel.py

wheel-quick: .venv/test
	$(BIN)/python tools/wheel.py --quick

# Every table and figure of the sources: ten minutes; writes docs/reproduction.md and the pages behind it. DATA= a directory with adult.csv and taxis.csv.
reproduce: .venv/reproduce
	$(BIN)/python -m reproduction --out docs $(if $(DATA),--data $(DATA))

# Damaged and forged files: INPUTS of every format, or of FORMAT.
fuzz: .venv/test
	$(BIN)/python -m tools.fuzz --inputs $(or $(INPUTS),2000) --format $(or $(FORMAT),all)

# Other libraries, each in an environment of its own; writes docs/benchmarks.md.
bench: .venv/test
	$(BIN)/python benchmarks/compare.py

# And what the pages of docs/benchmarks report: an hour or more.
bench-all: bench
	$(BIN)/python benchmarks/count_mechanisms.py
	$(BIN)/python benchmarks/release_column.py
	$(BIN)/python benchmarks/frequency_oracles.py
	$(BIN)/python benchmarks/range_queries.py
	$(BIN)/python benchmarks/shaped_ranges.py
	$(BIN)/python benchmarks/any_data.py
	$(BIN)/python benchmarks/wave_information.py
	$(BIN)/python benchmarks/grids.py
	$(BIN)/python benchmarks/single_attributes.py
	$(BIN)/python benchmarks/maps.py
	$(BIN)/python benchmarks/mixed_attributes.py
	$(BIN)/python benchmarks/mixed_pairs.py
	$(BIN)/python benchmarks/many_attributes.py
	$(BIN)/python benchmarks/grid_predictions.py
	$(BIN)/python benchmarks/real_grids.py
	$(BIN)/python benchmarks/grid_samples.py
	$(BIN)/python benchmarks/associations.py
	$(BIN)/python benchmarks/marginals.py
	$(BIN)/python benchmarks/heavy_hitters.py
	$(BIN)/python benchmarks/succinct_histograms.py
	$(BIN)/python benchmarks/one_bit.py
	$(BIN)/python benchmarks/longitudinal.py
	$(BIN)/python benchmarks/postprocessing.py
	$(BIN)/python benchmarks/local_mechanisms.py
	$(BIN)/python benchmarks/shuffling.py
	$(BIN)/python benchmarks/shuffled_bits.py
	$(BIN)/python benchmarks/composition.py
	$(BIN)/python benchmarks/shuffle_dummies.py
	$(BIN)/python benchmarks/shuffle_designs.py
	$(BIN)/python benchmarks/published_ranges.py
	$(BIN)/python benchmarks/published_grids.py
	$(BIN)/python benchmarks/large_domains.py
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/collection.py
	$(BIN)/python benchmarks/one_user.py
	$(BIN)/python benchmarks/collector_load.py
	$(BIN)/python benchmarks/tables.py
	$(BIN)/python benchmarks/files_of_people.py
	$(BIN)/python benchmarks/sizes.py
	$(BIN)/python benchmarks/queries.py
	$(BIN)/python benchmarks/overheads.py
	$(BIN)/python benchmarks/central_quantiles.py
	$(BIN)/python benchmarks/workload_release.py
	$(BIN)/python benchmarks/drawn_noise.py
	$(BIN)/python benchmarks/posteriors.py
	$(BIN)/python benchmarks/many_cells.py

# A stamp a set of requirements; pyproject.toml is what they depend on.
.venv/demo: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --editable ".[collector,data,storage]"
	touch $@

.venv/test: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@ .venv/demo

.venv/reproduce: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --editable ".[dev,stand-ins]"
	touch $@ .venv/test .venv/demo

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; set PYTHON=")'
	$(PYTHON) -m venv .venv

clean:
	rm -rf .venv .venv-peers demo docs/_build
