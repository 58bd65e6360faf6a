# Two commands do all the set-up on a fresh machine: `make run` and `make test`.

CARGO ?= cargo
# Debian packages of the peers that the tests talk to.
PEERS = collectl sysstat strace prometheus prometheus-node-exporter victoria-metrics chromium \
	rrdtool rrdcached librrds-perl collectd-core libmicrohttpd12 libprotobuf-c1 mrtg dc snmpd snmp python3-aiosmtpd g++ clang \
	postgresql-15 postgresql-server-dev-15 pgbouncer rpm shellcheck systemd podman crun openssh-client openssh-server
# And those that only the bench runs beside us.
BENCH_PEERS = valgrind netdata-core netdata-plugins-bash netdata-web
RUST := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
# Largest recorder-only program, in bytes.
LEAN_BYTES = 3750000

.PHONY: run test ring soak bench fuzz peers build tools packages lean man web book format clean

# This machine's present and past on a page; the terminal says where. Ends with Ctrl-C.
run: build
	./target/release/kymo serve --data ./kymo-data

build: tools
	$(CARGO) build --release -p kymo

# All packages of this commit and their checksums, in target/packages: an archive with a static program, .deb, .rpm, an
# image for containers, and the library for PostgreSQL. The same commit gives the same bytes.
packages: tools
	dist/packages

# What building needs: one line says what is missing.
tools:
	@command -v $(CARGO) >/dev/null || { echo "cannot build kymo: cargo is missing; install Rust $(RUST) or later, see rustup.rs" >&2; exit 1; }
	@have=$$(rustc --version | cut -d' ' -f2); \
	[ "$$(printf '%s\n' $(RUST) "$$have" | sort -V | head -n 1)" = $(RUST) ] || \
	  { echo "cannot build kymo: Rust $$have is too old; install $(RUST) or later, with rustup: 'rustup update stable'" >&2; exit 1; }
	@command -v $(CC) >/dev/null || { echo "cannot build kymo: a C compiler ($(CC)) is missing; on Debian 'apt-get install gcc'" >&2; exit 1; }

# Installs what is missing; without root or apt-get it says what to install.
peers:
	@missing=""; for peer in $(PEERS); do dpkg -s $$peer >/dev/null 2>&1 || missing="$$missing $$peer"; done; \
	command -v npm >/dev/null || missing="$$missing nodejs npm"; \
	command -v pip3 >/dev/null || missing="$$missing python3-pip"; \
	if [ -n "$$missing" ]; then \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; \
	  else echo "please install:$$missing" >&2; exit 1; fi; \
	fi
	@tests/fetch-postgres
	@tests/fetch-seaweedfs || echo "SeaweedFS cannot be fetched: its tests are skipped" >&2

# Everything, quickly; the last lines list failures and skipped tests. The program and the tests are built once, by the
# profile `quick`. `make test ONLY=faults` runs the tests that have the word in their name.
test: tools peers
	@ONLY='$(ONLY)' tests/run

# A distributed engine behind kymo: builds Thanos from its Go module, once, and tries a ring of it. Without Go it is skipped.
ring: tools
	@RING=1 tests/run

# The same as `test` with the program that is installed, and twenty times the effort where tests work by chance.
soak: build peers
	@KYMO_EFFORT=$(or $(KYMO_EFFORT),20) KYMO=$(CURDIR)/target/release/kymo tests/run

# The recorder alone, without the page: it has to build, and to stay small.
lean:
	$(CARGO) build --profile lean -p kymo --no-default-features
	@size=$$(stat -c %s target/lean/kymo); echo "recorder-only: $$size bytes"; \
	[ $$size -le $(LEAN_BYTES) ] || { echo "the recorder-only program is larger than $(LEAN_BYTES) bytes" >&2; exit 1; }

# Manual pages and completions in dist/, as the program writes them.
man: build
	rm -f dist/*.1
	./target/release/kymo man dist
	./target/release/kymo completions bash > dist/kymo.bash
	./target/release/kymo completions zsh > dist/_kymo
	./target/release/kymo completions fish > dist/kymo.fish

# The page in a real browser, and its modules on their own, after a look at their format. How quick its first view is, is the bench's affair: here
# a machine may be busy.
web:
	cd web-tests && npm ci --no-audit --no-fund --silent && \
	  KYMO=$${KYMO:-../target/quick/kymo} FIRST_VIEW_BAR=4 npm test

# The documents as a book with a search, in target/book. A link that leads nowhere is an error.
book:
	@tests/fetch-book
	NO_MKDOCS_2_WARNING=1 target/book-env/bin/mkdocs build --strict --quiet

# Formats what is written in Rust and the page's JavaScript.
format:
	$(CARGO) fmt --all
	cd web-tests && npm ci --no-audit --no-fund --silent && npm run --silent format

# Coverage-guided, until interrupted: make fuzz TARGET=template
fuzz:
	cd fuzz && $(CARGO) +nightly fuzz run $(or $(TARGET),template)

# Side by side with the real peers; writes bench/RESULTS.md. It takes six hours and 30 GB below
# /tmp, on an idle machine.
bench: PEERS += $(BENCH_PEERS)
bench: peers build
	$(CARGO) build --release -p kymo-bench
	$(MAKE) lean
	cd web-tests && npm ci --no-audit --no-fund --silent
	./target/release/kymo-bench record --kymo target/release/kymo --kymo-small target/lean/kymo
	./target/release/kymo-bench serve --kymo target/release/kymo
	./target/release/kymo-bench rrdcached --kymo target/release/kymo
	./target/release/kymo-bench drum --kymo target/release/kymo
	./target/release/kymo-bench hub --kymo target/release/kymo
	./target/release/kymo-bench programs
	./target/release/kymo-bench query --kymo target/release/kymo
	./target/release/kymo-bench top --kymo target/release/kymo
	./target/release/kymo-bench together --kymo target/release/kymo

clean:
	$(CARGO) clean
