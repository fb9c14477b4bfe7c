# "make help" lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# The binary reports the Kubernetes version that it serves, with its own as build metadata: tools parse it.
kubernetes := $(shell awk '$$1 == "k8s.io/kubernetes" { print $$2; exit }' go.mod)
numbers := $(subst ., ,$(kubernetes:v%=%))
described := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
commit := $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
# The date is the commit's, so that one commit gives one binary.
date := $(shell TZ=UTC git log -1 --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ 2>/dev/null)
state := $(if $(findstring -dirty,$(described)),dirty,clean)
version_flags := $(foreach package,k8s.io/component-base/version k8s.io/client-go/pkg/version,\
	-X $(package).gitVersion=$(kubernetes)+manifold.$(described) \
	-X $(package).gitMajor=$(word 1,$(numbers)) -X $(package).gitMinor=$(word 2,$(numbers)) \
	-X $(package).gitCommit=$(commit) -X $(package).gitTreeState=$(state) -X $(package).buildDate=$(date))

# Without the paths of this checkout in them, what one checkout has compiled serves the next one too. Kustomize, which kubectl links, could load
# Go plugins, for whose sake the linker would keep the name of every symbol: a fifth of the binary. Nobody enables them in ours.
comma := ,
flags := $(filter-out -trimpath,$(shell go env GOFLAGS))
tags := $(sort $(subst $(comma), ,$(patsubst -tags=%,%,$(filter -tags=%,$(flags)))) kustomize_disable_go_plugin_support)
export GOFLAGS := $(strip $(filter-out -tags=%,$(flags)) -trimpath -tags=$(subst $(eval ) ,$(comma),$(tags)))

# What the first build takes on two cores. Nearly all of it is Kubernetes, which is compiled once.
cold := 8 to 15 minutes when nothing is compiled yet

# Symbols are for debuggers and for govulncheck. Stack traces and profiles do without.
stripped := -s -w

# The tests of hack/stock start a cluster, as those of e2e do.
not_units := '^[^ ]*/\(e2e/[^ ]*\|hack/stock\) '
unit_packages = $(shell go list -f '{{.ImportPath}} ' ./... | grep -v $(not_units))
# The operators, the gateway, Flux and the forge that take long to build are tested by "make operators", "make gateway" and "make gitops" alone.
end_to_end_packages = $(shell go list ./hack/stock ./e2e/... | grep -v -e '/e2e/operators$$' -e '/e2e/gateway$$' -e '/e2e/gitops$$')
# Packages that do not link Kubernetes itself are light enough to be tested with the race detector, but for those whose tests say that they
# are not for it. They are found by pattern: it passes over a package that has no files for the detector, where naming one is an error.
light_packages = $(shell go list -race -f '{{.ImportPath}} {{join .Deps " "}} {{join .IgnoredGoFiles " "}} ' ./... | \
	grep -v -e $(not_units) -e ' k8s.io/kubernetes/' -e '_test.go ' | cut -d ' ' -f 1)

# say runs a command that takes long and prints nothing, and tells every 15 seconds that it is still at it.
define say
	@start=$$SECONDS; echo "$(1)"; \
	(trap 'kill $$!; exit' TERM; while :; do sleep 15 & wait $$!; echo "$(1): $$((SECONDS - start))s so far"; done) & ticker=$$!; \
	trap 'kill $$ticker' EXIT; \
	$(2); \
	echo "$(1): done in $$((SECONDS - start))s"
endef

.PHONY: help
help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/manifold
	$(call say,build bin/manifold ($(cold)),go build -ldflags "$(stripped) $(version_flags)" -o bin/manifold ./cmd/manifold)

.PHONY: tools
tools: ## Build the stock Kubernetes programs for tests and demo into _output/tools/bin
	@go run ./hack/stock/buildtools

.PHONY: clients
clients: ## Build Helm, Prometheus, the operators and the plugins that the end-to-end tests run against clusters
	@go run ./hack/stock/buildtools -clients

# These end by Ctrl-C, which "go run" would take for a failure.
.PHONY: demo
demo: build ## Run a logical cluster in front of two stock clusters until Ctrl-C
	@go build -o _output/bin/demo ./hack/demo && exec _output/bin/demo

.PHONY: clusters
clusters: tools ## Run two stock clusters until Ctrl-C
	@go build -o _output/bin/clusters ./hack/clusters && exec _output/bin/clusters

.PHONY: unit
unit: ## Run the unit tests, those of light packages with the race detector
	$(call say,unit tests of light packages with the race detector,go test -race $(light_packages))
	$(call say,unit tests of the other packages,go test $(filter-out $(light_packages),$(unit_packages)))

.PHONY: test
test: build unit tools clients ## Run the unit tests, then the end-to-end tests but for those that take long
	@echo "end-to-end tests"
	go vet ./e2e/operators ./e2e/gateway ./e2e/gitops
	go test -short -count=1 -p 2 -timeout 60m $(end_to_end_packages)

.PHONY: e2e
e2e: build tools clients ## Run all end-to-end tests, also those that take long; ARGS are passed on
	go test -count=1 -p 2 -timeout 90m $(end_to_end_packages) $(ARGS)

.PHONY: operators
operators: build tools ## Build further released operators and run them beside a logical cluster; ARGS are passed on
	@go run ./hack/stock/buildtools -operators
	go test -count=1 -timeout 60m ./e2e/operators $(ARGS)

.PHONY: gateway
gateway: build tools ## Build a released gateway and send requests through it into stock clusters; ARGS are passed on
	@go run ./hack/stock/buildtools -gateway
	go test -count=1 -timeout 60m ./e2e/gateway $(ARGS)

.PHONY: gitops
gitops: build tools ## Build released Flux controllers and a released forge, and run pipelines between them; ARGS are passed on
	@go run ./hack/stock/buildtools -clients
	@go run ./hack/stock/buildtools -gitops
	go test -count=1 -timeout 60m ./e2e/gitops $(ARGS)

.PHONY: hostile
hostile: build tools ## Attack a logical cluster for longer than the end-to-end tests do: storms of many gigabytes; ARGS are passed on
	HOSTILE_STORM=20 go test -count=1 -timeout 60m ./e2e/hostile $(ARGS)

.PHONY: bench
bench: build tools ## Measure Manifold against creating directly on two stock clusters; ARGS are passed on
	@go build -o _output/bin/bench ./hack/bench && exec _output/bin/bench $(ARGS)

.PHONY: conformance
conformance: build ## Run Kubernetes' conformance specs on a logical cluster; ARGS are passed on
	@go build -o _output/bin/conformance ./hack/conformance && exec _output/bin/conformance $(ARGS)

.PHONY: lint
lint: build sbom ## Check format, vet, staticcheck and known vulnerabilities, and list the modules in _output/sbom.cdx.json
	@unformatted=$$(gofmt -l $$(go list -f "{{.Dir}}" ./...) | sort -u); test -z "$$unformatted" || { echo "gofmt these files:"; echo "$$unformatted"; exit 1; }
	$(call say,go vet,go vet ./...)
	$(call say,staticcheck,go tool -modfile=hack/tools/lint/go.mod staticcheck $$(go list ./... | grep -v /generated/))
	$(call say,link bin/manifold with its symbols,go build -ldflags "$(version_flags)" -o _output/bin/manifold-symbols ./cmd/manifold)
	$(call say,govulncheck,hack/vulncheck.sh _output/bin/manifold-symbols)

.PHONY: sbom
sbom: build ## List the modules that bin/manifold is built from, as CycloneDX in _output/sbom.cdx.json
	@mkdir -p _output && go run ./hack/sbom bin/manifold > _output/sbom.cdx.json

.PHONY: generate
generate: ## Generate what is derived from the API types, and the picture of packages in the docs
	@hack/generate.sh

.PHONY: verify
verify: ## Fail when generated files are stale
	@hack/verify-generate.sh

.PHONY: clean
clean: ## Remove everything that was built or written by the other targets
	rm -rf bin _output .manifold
