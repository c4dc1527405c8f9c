# runner: builds build/runner; `make help` lists what else there is.
#
# One build folder for each compiler and sanitizer set:  make check CC=clang SAN=address,undefined

CC := gcc
SAN :=
NATIVE :=
PREFIX := /usr/local
empty :=
space := $(empty) $(empty)
comma := ,

ifeq ($(CC)$(SAN)$(NATIVE),gcc)
B := build
else
B := build/$(CC)$(if $(SAN),-$(subst $(comma),-,$(SAN)))$(if $(NATIVE),-native)
endif

# Objects stand apart from the program: build/runner is the program.
O := $B/objects
D := $B/double

ARCH := $(shell uname -m)
# V=1 shows whole commands.
Q := $(if $(V),,@)
say = $(if $(V),,@echo '  $1 $@')
WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wwrite-strings -Wundef -Wvla -Werror
SANITIZE := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
CFLAGS := $(if $(SAN),-O1,-O3) -g
ALL_CFLAGS := -std=c11 -D_GNU_SOURCE -I. $(WARNINGS) $(CFLAGS) $(if $(NATIVE),-march=native) $(SANITIZE) -MMD -MP
# Loops marked with omp simd are vectorised without any of the -ffast-math family: NaN stays NaN.
KERNEL_CFLAGS = -fopenmp-simd -ffp-contract=fast -fno-math-errno -fno-trapping-math $(KERNEL_QUIET)
# clang says of loops that a sanitizer keeps it from vectorising them.
KERNEL_QUIET = $(if $(findstring clang,$(CC)),-Wno-pass-failed)
LEVELS := $(if $(filter x86_64,$(ARCH)),v2 v3 v4,generic)
TILE_LEVELS := $(filter v3 v4,$(LEVELS))
LDFLAGS_ALL := $(SANITIZE) $(LDFLAGS)
CORE_LIBS := -lopenblas -lutf8proc -lm
RUNNER_LIBS := -lyaml -lsqlite3 -ljansson -lmd -lgsl $(CORE_LIBS)

# Compiled once for each level.
LEVELLED := core/kernels.c core/tiles.c
CORE := $(filter-out $(LEVELLED),$(wildcard core/*.c))
RUNNER := $(filter-out runner/main.c,$(wildcard runner/*.c))
# Tests of the core in double (gradients) are test_double_*.c; the rest is one Criterion program.
TESTS_DOUBLE := $(wildcard tests/test_double_*.c)
TESTS := $(filter-out $(TESTS_DOUBLE),$(wildcard tests/test_*.c))

LEVELLED_O := $(LEVELS:%=core/kernels_%.o) $(TILE_LEVELS:%=core/tiles_%.o)
CORE_O := $(CORE:%.c=$O/%.o) $(LEVELLED_O:%=$O/%)
DOUBLE_O := $(CORE:%.c=$D/%.o) $(LEVELLED_O:%=$D/%)
RUNNER_O := $(RUNNER:%.c=$O/%.o)
PLOTS := $(sort $(wildcard plots/*.sql plots/*.gp))
PLOTS_O := $O/plots.o

all: $B/runner

$B/libcore.a: $(CORE_O)
$B/libcore-double.a: $(DOUBLE_O)
$B/librunner.a: $(RUNNER_O) $(PLOTS_O)
$B/%.a:
	$(call say,ar)
	@rm -f $@
	$Qar rcs $@ $^

$B/runner: $O/runner/main.o $B/librunner.a $B/libcore.a
	@mkdir -p $(@D)
	$(call say,ld)
	$Q$(CC) $(LDFLAGS_ALL) -o $@ $^ $(RUNNER_LIBS)

$B/tests/unit: $(TESTS:%.c=$O/%.o) $B/librunner.a $B/libcore.a
	@mkdir -p $(@D)
	$(call say,ld)
	$Q$(CC) $(LDFLAGS_ALL) -o $@ $^ -lcriterion $(RUNNER_LIBS)

$B/tests/unit-double: $(TESTS_DOUBLE:%.c=$D/%.o) $B/libcore-double.a
	@mkdir -p $(@D)
	$(call say,ld)
	$Q$(CC) $(LDFLAGS_ALL) -o $@ $^ -lcriterion $(CORE_LIBS)

# Programs with a main of their own.
$B/tests/torture: $O/tests/torture.o $B/libcore.a
	@mkdir -p $(@D)
	$(call say,ld)
	$Q$(CC) $(LDFLAGS_ALL) -o $@ $^ -lsqlite3 $(CORE_LIBS)

# runner with functions of the tests in the place of those that may fail; the program itself has none of it.
WRAPPED := calloc fwrite fflush fclose fsync rename mkdir open write pwrite ftruncate unlink link fdopen sqlite3_open_v2 trainer_step
$B/tests/runner-faults: $O/runner/main.o $O/tests/faults.o $B/librunner.a $B/libcore.a
	@mkdir -p $(@D)
	$(call say,ld)
	$Q$(CC) $(LDFLAGS_ALL) $(WRAPPED:%=-Wl,--wrap=%) -o $@ $^ $(RUNNER_LIBS)

# The commit it is built from; the file changes only when the commit does. A tarball has none.
$B/generated/commit.h: FORCE
	@mkdir -p $(@D)
	@commit=$$(git ls-files --error-unmatch Makefile >/dev/null 2>&1 && \
	    git describe --always --dirty --abbrev=40 --exclude='*' 2>/dev/null) || commit=unknown; \
	printf '#define BUILD_COMMIT "%s"\n' "$$commit" >$@.new; \
	if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi
$O/runner/version.o: $B/generated/commit.h
$O/runner/version.o: ALL_CFLAGS += -I$B

# plots/* inside the program: name, 0, text, 0, one after the other; an empty name ends them.
$(PLOTS_O): $(PLOTS) Makefile
	@mkdir -p $(@D)
	@{ echo '.section .rodata'; echo '.globl plots_embedded'; echo 'plots_embedded:'; \
	  for file in $(PLOTS); do echo ".asciz \"$${file##*/}\""; echo ".incbin \"$$file\""; echo '.byte 0'; done; \
	  echo '.byte 0'; echo '.section .note.GNU-stack,"",%progbits'; } > $(@:.o=.s)
	$Q$(CC) -c -o $@ $(@:.o=.s)

define level_rule
$O/$1_$2.o: $1.c
	@mkdir -p $$(@D)
	$$(call say,cc)
	$$Q$(CC) $(ALL_CFLAGS) $(KERNEL_CFLAGS) $3 -DKERNEL_LEVEL=$2 -c -o $$@ $$<
$D/$1_$2.o: $1.c
	@mkdir -p $$(@D)
	$$(call say,cc)
	$$Q$(CC) $(ALL_CFLAGS) $(KERNEL_CFLAGS) $3 -DCORE_DOUBLE -DKERNEL_LEVEL=$2 -c -o $$@ $$<
endef
LEVEL_v2 := -march=x86-64-v2
LEVEL_v3 := -march=x86-64-v3 -mprefer-vector-width=256
LEVEL_v4 := -march=x86-64-v4 -mprefer-vector-width=512
$(foreach file,$(LEVELLED:.c=),$(foreach level,$(LEVELS),$(eval $(call level_rule,$(file),$(level),$(LEVEL_$(level))))))

$D/%.o: %.c
	@mkdir -p $(@D)
	$(call say,cc)
	$Q$(CC) $(ALL_CFLAGS) -DCORE_DOUBLE -c -o $@ $<
$O/%.o: %.c
	@mkdir -p $(@D)
	$(call say,cc)
	$Q$(CC) $(ALL_CFLAGS) -c -o $@ $<
# Tests are run once, and so compiled as fast as gcc still sees what it warns of, and clang, whose warnings ask for no
# optimiser: all but those that repeat products in plain loops.
HASTY := $(filter-out tests/test_gemm.c tests/test_kernels.c tests/test_multiplier.c,$(TESTS))
$(HASTY:%.c=$O/%.o): ALL_CFLAGS += $(if $(findstring clang,$(CC)),-O0,-O1)

# Under the address sanitizer of clang: a short run of the fuzz targets too.
FUZZ := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_SHORT := $(if $(findstring clang,$(CC)),$(if $(findstring address,$(SAN)),$(FUZZ:%=$B/fuzz/%)))
tests: $(FUZZ_SHORT) $B/runner $B/tests/unit $B/tests/torture $B/tests/runner-faults $(if $(TESTS_DOUBLE),$B/tests/unit-double)

check: ## run all tests on one build: make check CC=clang SAN=address,undefined
	$(MAKE) -j2 --no-print-directory tests
	CC=$(CC) tests/suite $B

# The same tests twice: as users have the program, and under the sanitizers of clang, where a leak fails.
SANITIZED := CC=clang SAN=address,undefined NATIVE=
test: ## install what is missing, build, run every test (gcc, and clang with sanitizers)
	./packages.sh build test
	$(MAKE) -j2 --no-print-directory tests CC=gcc SAN= NATIVE=
	$(MAKE) -j2 --no-print-directory tests $(SANITIZED)
	CC=gcc tests/suite build build/clang-address-undefined

demo: ## install what is missing, build, train experiments/quick.yaml, show its table and plots
	./packages.sh build
	$(MAKE) -j2 --no-print-directory all
	$B/runner run experiments/quick.yaml
	@echo 'Figures, each with its data and script beside it:'
	@ls results/plots/quick/*.png results/plots/quick/*.svg

# What is written up from the database, without training: results/day2.md of these experiments, and the questions of
# results/README.md.
DB := results/results.db
EXPERIMENTS := day2-norms day2-parts
WRITEUP := results/day2.md
writeup: $B/runner ## results/day2.md anew from results.db; EXPERIMENTS="quick" WRITEUP=x.md for others
	./writeup.sh $B/runner $(DB) $(WRITEUP) $(EXPERIMENTS)

questions: $B/runner ## results/README.md anew: its questions asked of the experiment quick in results.db
	./questions.sh $B/runner $(DB) >results/README.md.new
	mv results/README.md.new results/README.md

# PYTHON names an interpreter that can import torch; CORPUS a text in place of the built-in one.
PYTHON := python3
CORPUS :=
GRID :=
bench: $B/runner ## every target of speed in one table, 15 to 25 minutes; GRID=1: the whole grid instead, PYTHON=, CORPUS=
	$(if $(GRID),tests/bench/grid $(CORPUS),PYTHON=$(PYTHON) $B/runner bench --all --rounds 11 --grid experiments/day2-parts.yaml \
	    --peers tests/bench/peers $(if $(CORPUS),--corpus $(CORPUS)))
	$(if $(GRID),,@echo 'Not in the table: tests/bench/database (10 million rows), tests/bench/gather (2,000 shards), make bench GRID=1')

# Mutated files against the readers of what other people wrote. What was found to be of interest stays in build/fuzz.
FUZZ_RUNS := 100000
FUZZED := CC=clang SAN=address,undefined,fuzzer-no-link NATIVE=
# Of a build that is not made for fuzzing only the targets themselves tell the fuzzer where they have been.
$O/tests/fuzz/%.o: ALL_CFLAGS += -fsanitize=fuzzer-no-link
$B/fuzz/%: $O/tests/fuzz/fuzz_%.o $B/librunner.a $B/libcore.a
	@mkdir -p $(@D)
	$(call say,ld)
	$Q$(CC) $(LDFLAGS_ALL) -fsanitize=fuzzer -o $@ $^ $(RUNNER_LIBS)
fuzz-programs: $(FUZZ:%=$B/fuzz/%)
fuzz: ## FUZZ_RUNS=1000000: mutated files against every reader of files
	$(MAKE) -j2 --no-print-directory fuzz-programs $(FUZZED)
	@export ASAN_OPTIONS=malloc_context_size=6:quarantine_size_mb=16; \
	for name in $(FUZZ); do mkdir -p build/fuzz/$$name && echo "== $$name" && \
	    build/clang-address-undefined-fuzzer-no-link/fuzz/$$name -runs=$(FUZZ_RUNS) -max_len=2048 -print_final_stats=1 \
	    -artifact_prefix=build/fuzz/ -dict=tests/fuzz/$$name.dict build/fuzz/$$name tests/fuzz/seeds/$$name || exit 1; done

coverage: ## lines of the parsers that unit tests and fuzz targets reach: at least 90 % of each file
	./packages.sh build test lint
	tests/coverage

faults: $B/tests/runner-faults ## a fault at every call that asks for memory or writes: a clean error or the correct result
	tests/walk $B

KILLS := 200
SEED :=
torture: $B/runner $B/tests/torture ## KILLS=200 SEED=N: kill -9 at random moments, and the curves must be the same bits
	$B/tests/torture $B/runner $(KILLS) $(SEED)

contention: $B/runner ## four runs of one file at once, readers and a writer beside a sweep: nothing lost, nobody locked out
	tests/contention $B

test-cluster: ## install Slurm and run a sweep on two nodes of this machine: killed, requeued, cancelled, timed out
	./packages.sh build test
	$(MAKE) -j2 --no-print-directory all
	tests/cluster/run $B

packages: ## install the Debian packages that build, tests and lint need
	./packages.sh build test lint

lint: $B/generated/commit.h ## tests/style, clang-tidy and cppcheck, some minutes: all they find
	./packages.sh build test lint
	tests/lint $B

install: $B/runner ## PREFIX=/usr/local: put runner on PATH, with its manual page and completions
	install -d $(DESTDIR)$(PREFIX)/bin
	install -m 755 $B/runner $(DESTDIR)$(PREFIX)/bin/runner
	$B/runner complete man >$B/runner.1
	$B/runner complete bash >$B/runner.bash
	$B/runner complete zsh >$B/_runner
	$B/runner complete fish >$B/runner.fish
	install -D -m 644 $B/runner.1 $(DESTDIR)$(PREFIX)/share/man/man1/runner.1
	install -D -m 644 $B/runner.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/runner
	install -D -m 644 $B/_runner $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_runner
	install -D -m 644 $B/runner.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/runner.fish

clean: ## remove what was built (results stay)
	rm -rf build

help: ## show this
	@echo 'make                  build $B/runner'
	@sed -nE 's/^([a-z-]+):.*## (.*)/make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 22
	@echo 'CC=clang, SAN=address,undefined, NATIVE=1, V=1 (show commands) and PREFIX= go with any of them.'

.PHONY: all tests check test test-cluster demo writeup questions bench faults torture contention coverage fuzz fuzz-programs packages lint install clean help FORCE
.SECONDARY:
.DELETE_ON_ERROR:
-include $(shell find $O $D -name '*.d' 2>/dev/null)
FORCE:
