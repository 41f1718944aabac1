# pg_doorbell: the extension by PGXS, the client library and the command by CMake.
# `make help` lists the goals. This file must also work before PostgreSQL's development files are installed, because
# `make demo` and `make test` install them.

.PHONY: all client help
all: # the default goal; PGXS and the client below say what is in it

EXTENSION = pg_doorbell
MODULE_big = pg_doorbell
DATA = $(wildcard sql/*--*.sql)
OBJS = $(patsubst %.cpp,%.o,$(wildcard src/*.cpp))
EXTRA_CLEAN = build src/*.d

# Inputs in test/, outputs in expected/; the options are those of PostgreSQL 15 and are right for later versions too.
REGRESS = $(sort $(patsubst test/sql/%.sql,%,$(wildcard test/sql/*.sql)))
REGRESS_OPTS = --inputdir=test
ISOLATION = $(sort $(patsubst test/specs/%.spec,%,$(wildcard test/specs/*.spec)))
ISOLATION_OPTS = --inputdir=test --outputdir=.

PG_CPPFLAGS = -Iclient/include
PG_CXXFLAGS = -std=c++17 -isystem $(shell $(PG_CONFIG) --includedir-server) -Wextra -Wshadow -Wno-register \
	-Wno-unused-parameter -Wno-missing-field-initializers -fno-exceptions -fno-rtti -fno-threadsafe-statics \
	-fvisibility=hidden -MMD -MP

ifeq ($(origin PG_CONFIG),undefined)
PG_CONFIG := $(shell bash test/tools/pg_config.sh)
endif
PGXS := $(if $(PG_CONFIG),$(wildcard $(shell $(PG_CONFIG) --pgxs)))

ifneq ($(PGXS),)
include $(PGXS)

# The bitcode of C++ files: PGXS gives the compiler no C++ standard of ours, and knows nothing of headers.
COMPILE.cxx.bc += -std=c++17 -Wno-register -fno-exceptions -fno-rtti
$(OBJS:.o=.bc): %.bc: %.o
-include $(OBJS:.o=.d)
else
all install uninstall installcheck clean:
	@echo "No PostgreSQL development files found: set PG_CONFIG, or let \`make test\` install them." >&2; exit 1
endif

# CLIENT=no leaves the client out, for a machine that only wants the extension.
CLIENT = $(if $(wildcard client/CMakeLists.txt),yes,no)
PREFIX = /usr/local
ifeq ($(CLIENT),yes)
all: client
install: install-client
uninstall: uninstall-client
endif
.PHONY: install-client uninstall-client
install-client: client
	DESTDIR='$(DESTDIR)' cmake --install build --prefix '$(PREFIX)'
uninstall-client: client
	DESTDIR='$(DESTDIR)' bash client/packaging/uninstall.sh build '$(PREFIX)'
client: build/Makefile
	+@cmake --build build
build/Makefile:
	cmake -S client -B build -G "Unix Makefiles" -DCMAKE_BUILD_TYPE=RelWithDebInfo $(CMAKE_FLAGS)

# What people type. Each first installs what it needs and the machine lacks, then goes on in a make that finds it and
# does not name each command it runs, as plain `make` does.
define install_and_run
@PG_CONFIG='$(PG_CONFIG)' bash test/tools/packages.sh $@ $(PARTS)
+@$(MAKE) -s --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc)) run-$@
endef
.PHONY: demo test test-matrix soak bench bench-sse sanitize fuzz lint deb docs
.PHONY: run-demo run-test run-test-matrix run-soak run-bench run-bench-sse run-sanitize run-fuzz run-lint run-deb run-docs
demo:
	$(install_and_run)
test:
	$(install_and_run)
test-matrix:
	$(install_and_run)
soak:
	$(install_and_run)
bench:
	$(install_and_run)
bench-sse:
	$(install_and_run)
sanitize:
	$(install_and_run)
fuzz:
	$(install_and_run)
lint:
	$(install_and_run)
deb:
	$(install_and_run)
docs:
	$(install_and_run)

run-demo run-test run-soak run-bench run-bench-sse run-sanitize run-fuzz run-lint run-deb run-docs: export PG_CONFIG := $(PG_CONFIG)
run-demo run-test run-soak run-bench run-bench-sse: all
run-demo:
	bash test/tools/demo.sh
run-test:
	bash test/tools/test.sh $(PARTS)
run-test-matrix:
	bash test/tools/matrix.sh $(PARTS)
run-soak:
	+@cmake --build build --target soak
	bash test/tools/soak.sh
run-bench:
	+@cmake --build build --target bench_programs
	bash bench/run.sh
run-bench-sse: export BENCH_SUITES = sse
run-bench-sse: run-bench
run-sanitize:
	bash test/tools/sanitize.sh
run-fuzz:
	bash test/tools/fuzz.sh $(PARTS)
run-lint:
	bash test/tools/lint.sh
run-deb:
	bash test/tools/deb.sh
run-docs:
	bash test/tools/docs.sh

help:
	@echo "make              build the extension, the library (build/) and the command (build/doorbell)"
	@echo "make install      install the extension into the PostgreSQL of PG_CONFIG, library and command below PREFIX"
	@echo "make uninstall    remove what install put there (the same PG_CONFIG, PREFIX and DESTDIR)"
	@echo "make deb          Debian packages of extension, library and command, in build/deb"
	@echo "make installcheck regression and isolation tests on a running server that has it installed"
	@echo "make demo         a real workload and its events, live, on a private server (DEMO_SECONDS=10)"
	@echo "make test         every test, on private servers (PARTS='regress tap', CONTRACT_SECONDS=20)"
	@echo "make test-matrix  the tests on PostgreSQL 15, 17 and 18, each in a Debian of its own (as root; MATRIX, MATRIX_DIR)"
	@echo "make soak         the delivery contract through everything at once (SOAK_SECONDS=60, SOAK_SEED)"
	@echo "make bench        one table of comparisons (BENCH_SUITES='append replay', BENCH_SECONDS, BENCH_ROUNDS, FLUSH_MS)"
	@echo "make bench-sse    doorbell serve against nchan, likewise (BENCH_SECONDS, BENCH_ROUNDS)"
	@echo "make sanitize     the client's tests under AddressSanitizer, UndefinedBehaviorSanitizer and ThreadSanitizer"
	@echo "make fuzz         libFuzzer on what reads foreign bytes (PARTS='pointer request', FUZZ_SECONDS=30 each)"
	@echo "make lint         clang-format, clang-tidy and shellcheck"
	@echo "make docs         docs/sql.md and docs/library.md, from the catalog of a private server and from the headers"
	@echo "PG_CONFIG=...     the PostgreSQL to use; else version 15 if there is one"
	@echo "CLIENT=no         only the extension"
	@echo "Goals but for install, uninstall and installcheck install missing packages by apt; nothing else touches the system."
