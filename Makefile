# Everything a user types. "make" alone lists it.
SHELL := /bin/bash
.DEFAULT_GOAL := help
LAB := go run ./cmd/jaegerlab

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

lab: setup ## set up what is missing, run the main experiment, print the table and the report's path
	go test ./experiments -run '^TestBackends$$' -v -count=1 -timeout 0

setup: ## build and fetch what the planned arms need (honours LAB_RUNTIME, LAB_BACKENDS, ...)
	$(LAB) setup

images: ## build local images from packages, for machines without a registry (Debian, root)
	$(LAB) images

doctor: ## check this machine: have, need, remedy
	$(LAB) doctor

check: ## formatting, vet and unit tests: no network, no Docker, seconds
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); exit 1; }
	go vet ./...
	go test -short $$(go list ./... | grep -v /experiments$$)

test: setup ## all tests: unit, integration on real Jaeger and databases, and a short experiment
	env -u LAB_BACKENDS LAB_RUNTIME=process LAB_COLLECTOR=v2,v1 $(LAB) setup # tests run plain processes, also where Docker is
	go vet ./...
	go test -p 1 -timeout 30m $$(go list ./... | grep -v /experiments$$)
	DURATION_S=$${DURATION_S:-5} go test ./experiments -run '^TestBackends$$' -v -timeout 30m

compose: ## write compose/.env for this machine; compose/README.md says how to use the stacks
	$(LAB) compose

bench-load: ## measure the span generator, its ceiling, tracegen and telemetrygen against one black hole
	$(LAB) bench-load

clean: ## end what a run with LAB_KEEP=1 or a crash left, and remove its traces
	$(LAB) clean

.PHONY: help lab setup images doctor check test bench-load compose clean
