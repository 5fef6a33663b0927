# Needs python3 >= 3.11 (with venv), git and make; uses uv where there is one. `make help` lists all.
# `make test ARGS='tests/core -x'` runs a part.

PYTHON ?=
PARENT ?=
ARGS ?=
TEST_OPTIONS ?=
# The folder in which a person typed `make`, which may be another one: make -C CHECKOUT.
export STARTED_IN := $(PWD)
export PYTHON PARENT
# Like pip, uv is to trust the certificates of the system (by its newer and its older name).
export UV_SYSTEM_CERTS ?= true
export UV_NATIVE_TLS ?= true

BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest

.DEFAULT_GOAL := help
.PHONY: help up test lint check agents model-apis soak bench screens demo reference site site-serve \
	wheel install lock release clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

# One environment with two stamps: `.running` says that it has what rootsd needs to be built and to
# run, and `.ready` says that it also has the tools of developers. The second list of packages
# includes the first. A stamp is written last, so that an environment that broke off half-way is
# made again.
SETUP := pyproject.toml tools/setup.sh tools/find_python.sh

.venv/.running: requirements/run.txt $(SETUP)
	@sh tools/setup.sh $<
	@pwd -P >$@

.venv/.ready: requirements/lock.txt $(SETUP)
	@sh tools/setup.sh $<
	@pwd -P >.venv/.running
	@touch $@

# A copy of a checkout has an environment that runs the code of the original.
ifneq ($(shell cat .venv/.running 2>/dev/null),$(CURDIR))
$(shell rm -f .venv/.running .venv/.ready)
endif

# Both rules change the same environment.
.NOTPARALLEL:

up: .venv/.running  ## watch PARENT (default: the folder that holds this checkout): make up PARENT=~/src
	@sh tools/up.sh

test: .venv/.ready  ## all tests at their small sizes
	@$(if $(ARGS),$(PYTEST) -q $(ARGS),sh tools/test.sh $(TEST_OPTIONS))

lint: .venv/.ready  ## ruff, formatting, mypy --strict, import contracts, shellcheck
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports >.venv/lint-imports.log || { cat .venv/lint-imports.log; exit 1; }
	@if command -v shellcheck >/dev/null; then \
		shellcheck --severity=warning .ci/run tools/*.sh packaging/*.sh; \
	else echo "shellcheck is not installed: the shell scripts were not checked"; fi
	@echo "ruff, formatting, mypy and import contracts: no findings"

check: .venv/.ready  ## the sized tests as large as CI runs them
	@sh tools/test.sh -m sized --sizes=check -o faulthandler_timeout=900 \
		--ignore=tests/bench

agents: .venv/.ready  ## real agent programs, which npm installs: 1.6 GB in /var/tmp
	@sh tools/agents.sh

model-apis: .venv/.ready  ## converters of model APIs, which pip installs into build/model-apis
	@sh tools/install_packages.sh tests/e2e/model_apis model-apis
	@$(PYTEST) -q -p no:cacheprovider tests/e2e/model_apis

soak: .venv/.ready  ## the sized tests at their largest: an hour or two on two cores
	@PYTHONPATH=tests $(BIN)/python -c 'from support.workloads import package_managers as p; p()'
	@sh tools/test.sh -m sized --sizes=soak -o faulthandler_timeout=3600 \
		--ignore=tests/bench
	@sh tools/agents.sh --sizes=soak -o faulthandler_timeout=3600

bench: .venv/.ready  ## the benchmarks of tests/bench, as ratios; ARGS=--sizes=check for all sizes
	@$(PYTEST) -q -s tests/bench -o faulthandler_timeout=1800 $(ARGS)

reference: .venv/.ready  ## write the generated documents anew: docs/schema/, docs/reference/, configuration
	@$(BIN)/python tools/write_schemas.py
	@$(BIN)/python tools/write_configuration.py
	@$(BIN)/python tools/write_agents.py
	@$(BIN)/python tools/write_cli_reference.py
	@$(BIN)/python tools/write_json_reference.py

screens: .venv/.ready  ## draw the pictures in docs/ anew
	@$(BIN)/python tools/draw_pictures.py

demo: .venv/.ready  ## record docs/demo-*.svg anew, with a real Claude Code
	@$(BIN)/python tools/draw_pictures.py demo

# In an environment of its own, because no other target needs mkdocs.
SITE_BIN := build/site-tools/bin

build/site-tools/.ready: requirements/site.txt tools/find_python.sh
	@rm -rf build/site-tools
	@python=$$(sh tools/find_python.sh) && "$$python" -m venv build/site-tools
	@$(SITE_BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --require-hashes \
		--only-binary :all: --requirement requirements/site.txt
	@touch $@

# Without the theme's notice of its end of life, in May 2027, at each build.
site site-serve: export NO_MKDOCS_2_WARNING := 1

site: build/site-tools/.ready  ## build the documentation into build/site; mkdocs checks its links
	@$(SITE_BIN)/mkdocs build --strict

site-serve: build/site-tools/.ready  ## show the documentation at http://127.0.0.1:8000, as you edit it
	@$(SITE_BIN)/mkdocs serve

wheel: .venv/.running  ## build dist/rootsd-*.whl
	@rm -rf dist
	@$(BIN)/python -m hatchling build --target wheel

install: .venv/.running  ## put the command rootsd on your PATH
	@sh tools/put_on_path.sh

# uv is the one tool that writes a lock for all versions and systems at once; it is not pinned, as
# what it writes is reviewed. No address of an index is written, so that any mirror will do.
COMPILE := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --custom-compile-command "make lock"
PACKAGE_SETS := tests/e2e/model_apis tests/e2e/agents/servers

lock: .venv/.ready  ## renew the locks of Python packages to the newest versions (by uv)
	@PATH="$$PATH:$(CURDIR)/$(BIN)"; \
	command -v uv >/dev/null || $(BIN)/python -m pip install --quiet uv; \
	$(COMPILE) --upgrade --group dev pyproject.toml --output-file requirements/lock.txt; \
	$(COMPILE) --constraint requirements/lock.txt --extra ui --group build pyproject.toml \
		--output-file requirements/run.txt
	@PATH="$$PATH:$(CURDIR)/$(BIN)"; \
	for sources in $(PACKAGE_SETS); do \
		(cd $$sources && $(COMPILE) --upgrade packages.in --output-file lock.txt) || exit 1; \
	done
	@PATH="$$PATH:$(CURDIR)/$(BIN)"; \
	for tools in site uv; do \
		$(COMPILE) --upgrade requirements/$$tools.in --output-file requirements/$$tools.txt; \
	done
	@git --no-pager diff --stat -- requirements $(PACKAGE_SETS)

release: .venv/.ready  ## print what VERSION=1.2.3 would change; APPLY=1 also commits it and makes the tag
	@$(BIN)/python tools/release.py $(VERSION) $(if $(REPOSITORY),--repository $(REPOSITORY)) \
		$(if $(APPLY),--apply)

clean:  ## remove what was made here: environment, builds, caches
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find daemon tests -name __pycache__ -type d -prune -exec rm -rf {} +
