# The only entry point: `make help` lists the targets. Each suite ends with `N passed, N failed` and writes
# build/reports/NAME.json. FULL=1 runs a suite at its full size.
SHELL := /bin/bash
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON := .venv/bin/python
PYTEST := $(PYTHON) -m pytest
# On real engines; the API servers write down what our own accounts ask for, for `make grants`.
LIVE = rm -rf build/audit/$@; TRAINPLANE_LAB_AUDIT=build/audit/$@ $(PYTEST) -p lab.pytest_plugin
VENV := .venv/stamp
UV := VIRTUAL_ENV=.venv .venv/bin/uv

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV): requirements/dev.txt pyproject.toml
	@test -x $(PYTHON) || python3 -m venv .venv
	@awk '/^[^ ]/ {on = /^uv==/} on' requirements/dev.txt >.venv/uv.txt
	$(PYTHON) -m pip install --quiet --require-hashes --requirement .venv/uv.txt
	$(UV) pip install --quiet --compile-bytecode --require-hashes --requirement requirements/dev.txt
	$(UV) pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

.PHONY: requirements
requirements: $(VENV) ## compile requirements/*.txt anew, with hashes and without addresses
	$(UV) pip compile --quiet --upgrade --generate-hashes --no-emit-index-url --universal --no-header \
	  --python-version 3.11 requirements/dev.in --output-file requirements/dev.txt
	for name in base cache initializers operator; do $(UV) pip compile --quiet --generate-hashes --no-emit-index-url --universal \
	  --no-header --python-version 3.11 --constraint requirements/dev.txt requirements/$$name.in \
	  --output-file requirements/$$name.txt; done
	$(UV) pip compile --quiet --upgrade --generate-hashes --no-emit-index-url --universal --no-header \
	  --python-version 3.11 requirements/release.in --output-file requirements/release.txt
	$(UV) pip compile --quiet --upgrade --generate-hashes --no-emit-index-url --no-header --python-version 3.11 \
	  requirements/official.in --output-file requirements/official.txt
	$(UV) pip compile --quiet --upgrade --generate-hashes --no-emit-index-url --no-header --python-version 3.11 \
	  requirements/legacy.in --output-file requirements/legacy.txt
	for name in compared torchdata; do $(UV) pip compile --quiet --upgrade --generate-hashes --no-emit-index-url --no-header \
	  --no-deps --python-version 3.13 requirements/$$name.in --output-file requirements/$$name.txt; done
	$(UV) pip compile --quiet --upgrade --generate-hashes --no-emit-index-url --no-header --python-version 3.11 \
	  --constraint requirements/dev.txt requirements/jax.in --output-file requirements/jax.txt
	$(UV) pip compile --quiet --upgrade --generate-hashes --no-emit-index-url --no-header --python-version 3.11 \
	  requirements/speed.in --output-file requirements/speed.txt
	$(UV) pip compile --quiet --upgrade --generate-hashes --no-emit-index-url --no-header --python-version 3.11 \
	  --constraint requirements/base.txt requirements/pipelines.in --output-file requirements/pipelines.txt
	$(UV) pip compile --quiet --upgrade --generate-hashes --no-emit-index-url --no-header --python-version 3.13 \
	  requirements/docs.in --output-file requirements/docs.txt
	$(UV) pip compile --quiet --upgrade --generate-hashes --no-emit-index-url --no-header --python-version 3.13 \
	  --python-platform x86_64-manylinux_2_28 lab/images/frameworks.in --output-file lab/images/frameworks.txt
	$(UV) pip compile --quiet --upgrade --generate-hashes --no-emit-index-url --no-header --python-version 3.13 \
	  --python-platform x86_64-manylinux_2_28 --override lab/images/callbacks-override.in \
	  lab/images/callbacks.in --output-file lab/images/callbacks.txt
	for name in deepspeed torchtune mlx paddle; do $(UV) pip compile --quiet --upgrade --generate-hashes \
	  --no-emit-index-url --no-header --python-version 3.13 --python-platform x86_64-manylinux_2_40 \
	  --override lab/images/callbacks-override.in lab/images/$$name.in --output-file lab/images/$$name.txt; done

.PHONY: format
format: $(VENV) ## format the code
	$(PYTHON) -m ruff format .
	$(PYTHON) -m ruff check --fix-only --quiet .

.PHONY: check
check: $(VENV) ## lint, types, import contracts, emitted files up to date
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .
	$(PYTHON) -m mypy
	.venv/bin/lint-imports
	$(PYTHON) -m trainplane.api.crds --check
	$(PYTHON) -m deploy --check
	$(PYTHON) runtimes/pin.py --check
	$(PYTHON) -m docs.reference --check
	$(PYTHON) -m docs.cli --check
	$(PYTHON) -m docs.troubleshooting --check
	$(PYTHON) -m docs.promises --check
	$(PYTHON) -m docs.fields --check
	$(PYTHON) -m docs.names --check
	$(PYTHON) -m docs.settings --check
	$(PYTHON) -m docs.metrics --check
	$(PYTHON) -m docs.executed --check

.PHONY: test
test: $(VENV) ## unit tests without engines, and tests for what experiments broke
	$(PYTEST) -p tests.findings --suite unit --numprocesses auto --ignore tests/under_fire/live tests/unit tests/under_fire

.PHONY: slow
slow: $(VENV) ## tests of a suite on one core next to a busy process: SUITE=fleet TIMES=10 (TESTS=path or -k expression, KEEP_GOING=1)
	$(PYTHON) -m tests.slow --suite "$(SUITE)" --times "$(or $(TIMES),10)" --tests "$(TESTS)" $(if $(filter 1,$(KEEP_GOING)),--keep-going)

.PHONY: packages
packages: ## the Debian packages that the lab needs (root)
	lab/packages.sh

.PHONY: engines
engines: $(VENV) ## build what is missing of the engines
	$(PYTHON) -m lab.engines.build

.PHONY: images
images: $(VENV) engines packages ## build what is missing of the container images (FULL=1: and those of full-size tests)
	$(PYTHON) -m lab.images.build

.PHONY: image
image: images ## our images, of operator and hub and of initializers, on the lab's Python; on BASE=IMAGE, the data cache's too; tells size and digest
	$(if $(BASE),for program in operator initializers cache; do $(PYTHON) images/build.py --base $(BASE) --program $$program || exit 1; done,$(PYTHON) -m lab.images.trainplane)

.PHONY: lab-selftest
lab-selftest: engines images ## the lab on itself: real control plane, pods, fleet, scale, the reference
	$(PYTEST) -p lab.pytest_plugin --suite lab tests/lab

.PHONY: manifests
manifests: $(VENV) ## write anew what is made from the types: CRDs, the chart's, the reference pages, the troubleshooting page, the promises, what is executed; and the images into the runtimes
	$(PYTHON) -m trainplane.api.crds
	$(PYTHON) runtimes/pin.py
	$(PYTHON) -m deploy
	$(PYTHON) -m docs.reference
	$(PYTHON) -m docs.cli
	$(PYTHON) -m docs.troubleshooting
	$(PYTHON) -m docs.promises
	$(PYTHON) -m docs.fields
	$(PYTHON) -m docs.names
	$(PYTHON) -m docs.settings
	$(PYTHON) -m docs.metrics
	$(PYTHON) -m docs.executed

.PHONY: kustomize
kustomize: manifests engines ## write manifests/base anew, which the chart renders
	$(PYTHON) -m deploy.kustomize

.PHONY: chart
chart: engines ## the chart with JobSet's inside, as it is published, in build/chart
	$(PYTHON) -m deploy.package

.PHONY: integration
integration: engines images ## api/, kube/ and operator/ on real API servers (FULL=1: and what experiments broke there)
	$(LIVE) --suite integration tests/integration $(if $(filter 1,$(FULL)),tests/under_fire/live)

.PHONY: security
security: engines images ## attacks on the real processes (FULL=1: with a million inputs)
	$(LIVE) --suite security --numprocesses 2 --no-loadscope-reorder tests/security

.PHONY: conformance
conformance: engines ## our operator and recorded answers of the reference, object by object (RECORD=1: record them again, WHOLE=1: and ask the reference again, FULL=1: 500 generated cases of today, SEED=day: a few of today, SEED=N: those of a seed, CASES=1,2: only these)
	$(PYTEST) -p lab.pytest_plugin --suite conformance tests/conformance

.PHONY: mutation
mutation: engines ## every fault of which conformance plants some, long (FAULTS=mpi,torch: those whose ids begin so)
	FULL=1 $(PYTEST) -p lab.pytest_plugin --suite mutation -o log_cli=true --log-cli-level=INFO tests/conformance/mutation

OFFICIAL := build/official-sdk/stamp
$(OFFICIAL): requirements/official.txt $(VENV)
	$(UV) venv --quiet --clear --python $(PYTHON) build/official-sdk
	$(UV) pip install --quiet --python build/official-sdk/bin/python --require-hashes --requirement $<
	@touch $@

.PHONY: simulation
simulation: $(VENV) $(if $(filter 1,$(FULL)),engines) ## the operator in virtual time, in histories that a seed draws (SEED=day: those of today, SEED=N: those of a seed, FULL=1: 100,000 of today)
	$(PYTEST) --suite simulation --numprocesses 2 --maxschedchunk 1 --timeout=600 tests/simulation

LEGACY := build/legacy-sdk/stamp
$(LEGACY): requirements/legacy.txt $(VENV)
	$(UV) venv --quiet --clear --python $(PYTHON) build/legacy-sdk
	$(UV) pip install --quiet --python build/legacy-sdk/bin/python --require-hashes --requirement $<
	@touch $@

.PHONY: legacy
legacy: engines images $(LEGACY) $(if $(filter 1,$(FULL)),$(OFFICIAL)) ## jobs of the old operators: as they decided, as old clients see it, with real pods (RECORD=1: record the old operators' answers again, WHOLE=1: ask them again, FULL=1: 1,000 cases)
	$(LIVE) --suite legacy tests/legacy

.PHONY: e2e
e2e: engines images ## the documents' examples and faults, with real pods
	$(LIVE) --suite e2e tests/e2e

.PHONY: disruptions
disruptions: engines images ## TrainJobs that are suspended, preempted, drained, or lose pods survive, also on Kubeflow Trainer 2.3 (FULL=1: 200 cycles)
	$(LIVE) --suite disruptions tests/disruptions

PIPELINES := build/pipelines/stamp
$(PIPELINES): requirements/pipelines.txt $(VENV)
	$(UV) venv --quiet --clear --python $(PYTHON) build/pipelines
	$(UV) pip install --quiet --python build/pipelines/bin/python --require-hashes --requirement $<
	@touch $@

.PHONY: seeds
seeds: engines images $(if $(filter 1,$(FULL)),$(PIPELINES)) ## what the documents promise, read from them where they lie beside the clone (docs/promises.md)
	$(LIVE) --suite seeds tests/seeds

.PHONY: explain
explain: engines images $(OFFICIAL) ## failures with real pods, and generated ones with real processes: named right? (FULL=1: all 200)
	$(LIVE) --suite explain tests/explain

.PHONY: pictures
pictures: $(VENV) ## the pictures of docs/pictures, from the pages and screens as they are now
	$(PYTHON) -m tests.cli.looks

.PHONY: cli
cli: engines images ## the command line as people use it, on a real cluster under a tenant's rights
	$(LIVE) --suite cli tests/cli

.PHONY: fleet
fleet: engines image ## Kueue on one cluster, MultiKueue on a hub with two workers, the hub view (FULL=1: 500 jobs)
	$(LIVE) --suite fleet --timeout=600 tests/fleet

.PHONY: install-e2e
install-e2e: image ## our image and chart as an admin installs them, on real clusters
	$(LIVE) --suite install tests/install

.PHONY: sdk
sdk: engines images $(OFFICIAL) ## the official SDK and ours: on a cluster, a hub, local processes and containers; tutorial, notebooks
	$(LIVE) --suite sdk tests/sdk

DOCS := build/docs/stamp
$(DOCS): requirements/docs.txt $(VENV)
	PATH="$$PATH:$(lastword $(wildcard $(HOME)/.pyenv/versions/3.13*/bin))" \
	  $(UV) venv --quiet --clear --python 3.13 build/docs
	$(UV) pip install --quiet --compile-bytecode --python build/docs/bin/python --require-hashes --requirement $<
	@touch $@

.PHONY: docs
docs: $(DOCS) ## the documentation as a site, in build/site: every link leads somewhere, what is executed is counted
	$(PYTHON) -m docs.site.build
	$(PYTEST) --suite docs tests/docs

CALLBACKS := build/callbacks/stamp
$(CALLBACKS): lab/images/callbacks.txt $(VENV)
	$(UV) pip install --quiet --target build/callbacks --python-version 3.13 \
	  --python-platform x86_64-manylinux_2_28 --no-deps --require-hashes --requirement $<
	@touch $@

.PHONY: progress
progress: engines images $(OFFICIAL) $(if $(filter 1,$(FULL)),$(CALLBACKS)) ## pods that report: the official SDK, ours, those who may not, and many at once (FULL=1: 2,000)
	$(LIVE) --suite progress tests/progress

SPEED := build/speed/stamp
$(SPEED): requirements/speed.txt $(VENV)
	$(UV) venv --quiet --clear --python $(PYTHON) build/speed
	$(UV) pip install --quiet --python build/speed/bin/python --require-hashes --requirement $<
	@touch $@

AZURITE := build/azurite/stamp
$(AZURITE): lab/azurite/package-lock.json
	mkdir -p build/azurite
	cp lab/azurite/package.json lab/azurite/package-lock.json build/azurite
	npm ci --prefix build/azurite --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

.PHONY: initializers
initializers: engines image $(SPEED) $(if $(filter 1,$(FULL)),$(AZURITE)) ## data in and out, with faults, against real stores, and how fast (FULL=1: 5 GB, and Google's and Azure's emulators)
	$(LIVE) --suite initializers --timeout=1800 tests/initializers

TORCHDATA := build/torchdata/stamp
$(TORCHDATA): requirements/cache.txt requirements/torchdata.txt $(VENV)
	rm -rf build/torchdata
	for name in cache torchdata; do $(UV) pip install --quiet --target build/torchdata --python-version 3.13 \
	  --python-platform x86_64-manylinux_2_28 --no-deps --require-hashes --requirement requirements/$$name.txt || exit 1; done
	@touch $@

JAX := build/jax/stamp
$(JAX): requirements/jax.txt $(VENV)
	rm -rf build/jax
	$(UV) pip install --quiet --target build/jax --require-hashes --requirement $<
	@touch $@

COMPARED := build/compared/stamp
$(COMPARED): requirements/compared.txt $(VENV)
	rm -rf build/compared
	$(UV) pip install --quiet --target build/compared --python-version 3.13 --python-platform x86_64-manylinux_2_28 \
	  --no-deps --require-hashes --requirement $<
	@touch $@

.PHONY: cache
cache: engines images $(TORCHDATA) $(COMPARED) $(if $(filter 1,$(FULL)),$(JAX)) ## the data cache: head, workers and readers under faults, in torch's loaders, and how fast (FULL=1: 1,000 runs, 10 GB)
	$(PYTHON) -m lab.images.trainplane cache
	$(PYTEST) -p lab.pytest_plugin --suite cache tests/cache

.PHONY: bench
bench: engines ## bare writes, the reference and ours over 500 TrainJobs (FULL=1: 5,000)
	$(PYTEST) -p lab.pytest_plugin --suite bench benchmarks/operator

.PHONY: bench-life
bench-life: engines ## whole lives of jobs with JobSet and Kueue, ours and the reference: requests, CPU, times (FULL=1: three repeats)
	$(PYTEST) -p lab.pytest_plugin --suite bench-life benchmarks/life

.PHONY: bench-kube
bench-kube: engines ## the controller runtime, kopf and the reference over 4,000 jobs (FULL=1: 100,000)
	$(PYTEST) -p lab.pytest_plugin --suite bench-kube benchmarks/kube

.PHONY: grants
grants: $(VENV) ## what our roles grant, beside what the suites before it used (e2e, fleet, security, integration)
	$(PYTEST) --suite grants tests/grants

TOOLS := build/release-tools/stamp
$(TOOLS): requirements/release.txt $(VENV)
	$(UV) venv --quiet --clear --python $(PYTHON) build/release-tools
	$(UV) pip install --quiet --python build/release-tools/bin/python --require-hashes --requirement $<
	@touch $@

.PHONY: release
release: $(TOOLS) ## what is published, in dist/, signed and verified (KEY=FILE, BASE=IMAGE, REQUIRE=all)
	$(PYTHON) -m release build $(if $(KEY),--key $(KEY)) $(if $(BASE),--base $(BASE)) $(if $(REQUIRE),--require $(REQUIRE))
	$(PYTEST) --suite release tests/release

.PHONY: ci
ci: ## the gate, as it judges a landing (FULL=1: every test at its usual size, with the live reference, and the benchmarks)
	.ci/run

.PHONY: hunt
hunt: engines images $(LEGACY) ## inputs that no earlier day drew (SEED=N: those of a seed); keep each finding as a case
	SEED=$(or $(SEED),day) $(PYTEST) --suite hunt --numprocesses 2 --maxschedchunk 1 --timeout=600 \
	  tests/simulation/test_histories.py tests/simulation/test_fleet_histories.py
	SEED=$(or $(SEED),day) $(PYTEST) -p lab.pytest_plugin --suite hunt --suite-append \
	  tests/conformance/test_conformance.py::test_generated_cases tests/legacy/conformance tests/security/test_fuzz.py

.PHONY: clean
clean: ## stop every lab cluster and remove what builds left in the checkout
	-test -x $(PYTHON) && $(PYTHON) -m lab down --all
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
