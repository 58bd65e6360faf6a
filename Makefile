# Two commands do all the set-up on a fresh machine: `make run` and `make test`.

CARGO ?= cargo
# Debian packages of the peers that the tests talk to.
PEERS = collectl sysstat strace
FUZZ_SECONDS ?= 20

.PHONY: run test bench fuzz peers build check unit fuzz-for clean

# Live on the terminal while it is recorded; without a terminal ten intervals.
run: build
	@if [ -t 1 ]; then intervals=; else intervals=-c10; fi; set -x; \
	./target/release/kymo -scdnmZ -i1:5 -f ./kymo-data --cap 100M --show $$intervals

build:
	$(CARGO) build --release -p kymo

# Installs what is missing; without root or apt-get it says what to install.
peers:
	@missing=""; for peer in $(PEERS); do dpkg -s $$peer >/dev/null 2>&1 || missing="$$missing $$peer"; done; \
	if [ -n "$$missing" ]; then \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; \
	  else echo "please install:$$missing" >&2; exit 1; fi; \
	fi

test: peers check unit fuzz-for

check:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings

unit: build
	$(CARGO) test --workspace

fuzz-for:
	$(CARGO) run --release -p kymo-fuzz --bin fuzz-for -- $(FUZZ_SECONDS)

# Coverage-guided, until interrupted: make fuzz TARGET=template
fuzz:
	cd fuzz && $(CARGO) +nightly fuzz run $(or $(TARGET),template)

# Side by side with the real peers; writes bench/RESULTS.md.
bench: peers build
	$(CARGO) build --release -p kymo-bench
	./target/release/kymo-bench record --kymo target/release/kymo

clean:
	$(CARGO) clean
