/* The supervisor against workers that end in every way: shell scripts that send prepared records. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/database.h"
#include "runner/experiment.h"
#include "runner/record.h"
#include "runner/signals.h"
#include "runner/supervisor.h"
#include "tests/folder_case.h"

enum { RUNS = 8 };

/* Of the next world. */
static double hang_after;
static size_t variant_count = 1;

static const char *inside(const char *name)
{
    static char paths[8][160];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

TestSuite(supervisor, .init = folder_open, .fini = folder_close, .timeout = 60);

/* Seeds 1 to RUNS spread over the variants, a byte tokenizer and no text: the workers here need none. */
static struct sweep *sweep_make(size_t runs)
{
    struct sweep *sweep = memory_alloc(1, sizeof *sweep);
    struct experiment *experiment = memory_alloc(1, sizeof *experiment);
    struct variant *variants = memory_alloc(variant_count, sizeof *variants);
    struct dataset *dataset = memory_alloc(1, sizeof *dataset);
    struct error err = {0};
    *experiment =
        (struct experiment){.path = memory_copy_text("test.yaml"),
                            .name = memory_copy_text("test"),
                            .description = memory_copy_text(""),
                            .question = memory_copy_text(""),
                            .text = memory_copy_text("name: test\n"),
                            .variants = variants,
                            .variant_count = variant_count,
                            .seeds = memory_alloc(runs, sizeof *experiment->seeds),
                            .seed_count = runs,
                            .compare = {memory_copy_text("bits_per_byte"), memory_copy_text("validation"), 0.01, 0.05}};
    for (size_t v = 0; v < variant_count; v++) {
        char label[32];
        snprintf(label, sizeof label, "variant %zu", v);
        variants[v] = (struct variant){.label = memory_copy_text(label), .baseline = v == 0};
        config_init(&variants[v].config);
        variants[v].config.tokenizer.kind = TOKENIZER_BYTE;
        variants[v].config.training.steps = 2;
    }
    snprintf(dataset->path, sizeof dataset->path, "%s", inside("none.tokens"));
    memset(dataset->corpus_hash, 'a', 64);
    memset(dataset->tokenizer_hash, 'b', 64);
    struct text text = {"abc", 3};
    dataset->tokenizer = tokenizer_train(&variants->config.tokenizer, &text, 1, &err);
    cr_assert_not_null(dataset->tokenizer, "%s", err.text);
    dataset->tokenizer_image = tokenizer_save(dataset->tokenizer, &dataset->tokenizer_image_size);
    *sweep = (struct sweep){.experiment = experiment,
                            .datasets = dataset,
                            .dataset_count = 1,
                            .runs = memory_alloc(runs, sizeof *sweep->runs),
                            .run_count = runs};
    for (size_t i = 0; i < runs; i++) {
        struct run *run = &sweep->runs[i];
        run->variant = i * variant_count / runs;
        const struct config *config = &variants[run->variant].config;
        experiment->seeds[i] = run->seed = (int64_t)i + 1;
        run->parameters = 1000;
        run->flops_per_token = 6000;
        run->config_json = config_json(config, true);
        run_key_make(config, run->seed, dataset->corpus_hash, dataset->tokenizer_hash, run->key);
    }
    return sweep;
}

static void records_write(const char *name, enum record_kind last, const void *payload, size_t size)
{
    int fd = open(inside(name), O_CREAT | O_WRONLY | O_TRUNC, 0600);
    struct record_start start;
    struct step_record steps[] = {{.step = 0, .tokens = 8, .loss = 5, .grad_norm = 1, .learning_rate = 1e-3},
                                  {.step = 1, .tokens = 16, .loss = 4, .grad_norm = 1, .learning_rate = 1e-3}};
    struct evaluation_row row = {.step = 2, .tokens = 16, .split = "validation"};
    memset(&start, 0, sizeof start);
    snprintf(start.environment.host, sizeof start.environment.host, "here");
    row.record = (struct evaluation_record){
        .blocks = 1, .tokens = 8, .bytes = 8, .loss = 4, .bits_per_byte = 2, .perplexity = 54};
    cr_assert(fd >= 0 && record_write_start(fd, &start, NULL, NULL));
    for (int i = 0; i < 2; i++)
        cr_assert(record_write(fd, RECORD_STEP, &steps[i], sizeof steps[i]));
    cr_assert(record_write(fd, RECORD_EVALUATION, &row, sizeof row));
    cr_assert(record_write(fd, last, payload, size));
    close(fd);
}

struct world {
    struct sweep *sweep;
    struct database *database;
    struct supervisor_outcome outcome;
    struct error err;
    bool ok;
};

/* Each worker is the script, with the number of its seed as $1 and the test's folder as $2. */
static struct world world_run(const char *script, size_t runs, size_t workers)
{
    struct world world = {.sweep = sweep_make(runs)};
    char whole[4096];
    snprintf(whole, sizeof whole, "seed=$(sed 's/.*\"seed\":\\([0-9]*\\).*/\\1/'); cd %s; %s", folder, script);
    const char *const command[] = {"/bin/sh", "-c", whole, NULL};
    bool wanted[RUNS] = {true, true, true, true, true, true, true, true};
    world.database = database_open(inside("results.db"), NULL, &world.err);
    cr_assert_not_null(world.database, "%s", world.err.text);
    cr_assert(database_freeze(world.database, world.sweep, &world.err), "%s", world.err.text);
    int signals = signals_open(&world.err);
    cr_assert_geq(signals, 0);
    char checkpoints[160], logs[160];
    snprintf(checkpoints, sizeof checkpoints, "%s", inside("checkpoints"));
    snprintf(logs, sizeof logs, "%s", inside("logs"));
    struct supervisor_options options = {.workers = workers,
                                         .hang_after = hang_after,
                                         .checkpoint_folder = checkpoints,
                                         .log_folder = logs,
                                         .command = command,
                                         .signals = signals};
    world.ok = supervise(world.database, world.sweep, wanted, &options, &world.outcome, &world.err);
    signals_close(signals);
    return world;
}

static void expect_state(struct world *world, size_t run, enum run_state state, const char *reason)
{
    char got[256] = "";
    struct error err = {0};
    cr_assert(database_flush(world->database, 10, &err), "%s", err.text);
    enum run_state found =
        database_run_state(database_handle(world->database), world->sweep->runs[run].key, NULL, got, sizeof got);
    cr_assert_eq(found, state, "run %zu is %s, expected %s (%s)", run, run_state_name(found), run_state_name(state),
                 got);
    if (reason)
        cr_assert_not_null(strstr(got, reason), "run %zu: reason \"%s\", expected \"%s\"", run, got, reason);
}

static void world_end(struct world *world)
{
    struct error err = {0};
    cr_assert(database_close(world->database, &err), "%s", err.text);
    sweep_free(world->sweep);
}

Test(supervisor, a_worker_that_ends_badly_costs_its_own_run_and_the_reason_is_kept)
{
    int64_t steps = 2;
    struct record_diverged diverged = {.step = 1, .reason = "loss is nan"};
    records_write("finished", RECORD_FINISHED, &steps, sizeof steps);
    records_write("diverged", RECORD_DIVERGED, &diverged, sizeof diverged);
    records_write("checkpointed", RECORD_CHECKPOINT, &steps, sizeof steps);
    struct world world = world_run("case $seed in"
                                   " 1|8) cat finished;;"
                                   " 2) cat checkpointed; kill -9 $$;;"
                                   " 3) echo the cause of it >&2; exit 7;;"
                                   " 4) cat checkpointed; echo nonsense that is long enough; sleep 50;;"
                                   " 5) cat diverged;;"
                                   " 6) cat checkpointed;;"
                                   " 7) head -c 100 finished; exit 75;;"
                                   "esac",
                                   RUNS, 3);
    cr_assert(world.ok, "%s", world.err.text);
    expect_state(&world, 0, RUN_FINISHED, NULL);
    expect_state(&world, 1, RUN_FAILED, "killed by signal 9 (Killed), perhaps because memory ran out");
    expect_state(&world, 2, RUN_FAILED, "exit code 7");
    expect_state(&world, 3, RUN_FAILED, "its worker sent a record of");
    expect_state(&world, 4, RUN_DIVERGED, "loss is nan at step 1");
    expect_state(&world, 5, RUN_FAILED, "without its last record");
    expect_state(&world, 6, RUN_INTERRUPTED, NULL);
    expect_state(&world, 7, RUN_FINISHED, NULL);
    cr_assert_eq(world.outcome.finished, 2);
    cr_assert_eq(world.outcome.failed, 4);
    cr_assert_eq(world.outcome.diverged, 1);
    cr_assert_eq(world.outcome.interrupted, 1);
    world_end(&world);
}

Test(supervisor, the_curve_of_a_run_arrives_whole)
{
    int64_t steps = 2;
    records_write("finished", RECORD_FINISHED, &steps, sizeof steps);
    struct world world = world_run("cat finished", 2, 1);
    struct error err = {0};
    cr_assert(database_flush(world.database, 10, &err), "%s", err.text);
    sqlite3_stmt *query;
    cr_assert_eq(sqlite3_prepare_v2(database_handle(world.database),
                                    "select count(*), min(value) from curves where split = 'train' and metric = 'loss'",
                                    -1, &query, NULL),
                 SQLITE_OK);
    cr_assert_eq(sqlite3_step(query), SQLITE_ROW);
    cr_assert_eq(sqlite3_column_int(query, 0), 4);
    cr_assert_eq(sqlite3_column_double(query, 1), 4.0);
    sqlite3_finalize(query);
    world_end(&world);
}

Test(supervisor, the_first_signal_asks_workers_to_stop_and_starts_no_more)
{
    struct world world = world_run("trap 'exit 75' TERM; kill -INT $PPID; while :; do sleep 0.05; done", 3, 1);
    cr_assert(world.ok, "%s", world.err.text);
    cr_assert_eq(world.outcome.stop_signal, SIGINT);
    cr_assert_not(world.outcome.killed);
    expect_state(&world, 0, RUN_INTERRUPTED, NULL);
    expect_state(&world, 1, RUN_QUEUED, NULL);
    world_end(&world);
}

Test(supervisor, the_second_signal_kills_and_the_run_stays_resumable)
{
    struct world world =
        world_run("trap '' TERM; kill -HUP $PPID; sleep 0.2; kill -INT $PPID; while :; do sleep 0.05; done", 2, 1);
    cr_assert(world.ok, "%s", world.err.text);
    cr_assert_eq(world.outcome.stop_signal, SIGHUP);
    cr_assert(world.outcome.killed);
    expect_state(&world, 0, RUN_INTERRUPTED, "killed by signal 9");
    world_end(&world);
}

Test(supervisor, a_full_disk_stops_the_sweep_and_names_itself)
{
    static const char text[] = "cannot write 'x': No space left on device";
    records_write("full", RECORD_ENVIRONMENT, text, sizeof text - 1);
    struct world world = world_run("cat full; exit 3", 3, 1);
    cr_assert_not(world.ok);
    cr_assert_str_eq(world.err.text, text);
    expect_state(&world, 0, RUN_INTERRUPTED, "No space left");
    expect_state(&world, 1, RUN_QUEUED, NULL);
    world_end(&world);
}

Test(supervisor, a_child_of_a_worker_that_holds_its_pipe_does_not_hold_the_sweep)
{
    int64_t steps = 2;
    records_write("finished", RECORD_FINISHED, &steps, sizeof steps);
    struct world world = world_run("cat finished; sleep 300 2>/dev/null & echo $! > pid", 1, 1);
    cr_assert(world.ok, "%s", world.err.text);
    expect_state(&world, 0, RUN_FINISHED, NULL);
    FILE *file = fopen(inside("pid"), "r");
    int pid = 0;
    cr_assert(file && fscanf(file, "%d", &pid) == 1);
    fclose(file);
    kill(pid, SIGKILL);
    world_end(&world);
}

Test(supervisor, a_worker_that_makes_no_step_for_too_long_is_killed_and_costs_its_own_run)
{
    int64_t steps = 2;
    records_write("finished", RECORD_FINISHED, &steps, sizeof steps);
    records_write("checkpointed", RECORD_CHECKPOINT, &steps, sizeof steps);
    hang_after = 0.5;
    struct world world = world_run("[ $seed = 2 ] || { cat finished; exit 0; }; cat checkpointed; trap '' TERM;"
                                   " echo so far so good >&2; while :; do sleep 0.05; done",
                                   3, 2);
    cr_assert(world.ok, "%s", world.err.text);
    expect_state(&world, 0, RUN_FINISHED, NULL);
    expect_state(&world, 1, RUN_FAILED, "hung: no step for 0.5 s (--hang-after), its worker was killed");
    expect_state(&world, 2, RUN_FINISHED, NULL);
    world_end(&world);
}

Test(supervisor, a_worker_that_was_finished_and_does_not_leave_is_finished_all_the_same)
{
    int64_t steps = 2;
    records_write("finished", RECORD_FINISHED, &steps, sizeof steps);
    hang_after = 0.3;
    struct world world = world_run("cat finished; while :; do sleep 0.05; done", 1, 1);
    cr_assert(world.ok, "%s", world.err.text);
    expect_state(&world, 0, RUN_FINISHED, NULL);
    world_end(&world);
}

Test(supervisor, three_variants_that_fail_of_one_cause_in_a_row_stop_the_sweep_with_that_cause)
{
    variant_count = 5;
    struct world world = world_run("kill -SEGV $$", 5, 1);
    cr_assert_not(world.ok);
    cr_assert_eq(world.outcome.failed, 3);
    cr_assert_not_null(
        strstr(world.err.text, "3 variants in a row failed of one cause, so the other 2 runs are not begun"), "%s",
        world.err.text);
    cr_assert_not_null(strstr(world.err.text, "killed by signal 11"), "%s", world.err.text);
    cr_assert_not_null(strstr(world.err.text, "--retry crashed"), "%s", world.err.text);
    expect_state(&world, 2, RUN_FAILED, "killed by signal 11 (Segmentation fault)");
    expect_state(&world, 3, RUN_QUEUED, NULL);
    world_end(&world);
}

Test(supervisor, a_variant_of_which_every_run_fails_costs_that_variant)
{
    int64_t steps = 2;
    records_write("finished", RECORD_FINISHED, &steps, sizeof steps);
    variant_count = 2;
    struct world world = world_run("[ $seed -gt 4 ] || kill -SEGV $$; cat finished", RUNS, 1);
    cr_assert(world.ok, "%s", world.err.text);
    cr_assert_eq(world.outcome.failed, 4);
    cr_assert_eq(world.outcome.finished, 4);
    world_end(&world);
}

/* With two workers the last run of a variant may end after the first of the next. */
Test(supervisor, two_variants_whose_ends_come_mixed_are_two)
{
    variant_count = 2;
    struct world world = world_run("[ $seed != 4 ] || sleep 0.5; kill -SEGV $$", RUNS, 2);
    cr_assert(world.ok, "%s", world.err.text);
    cr_assert_eq(world.outcome.failed, RUNS);
    world_end(&world);
}

Test(supervisor, failures_of_different_causes_or_with_a_good_run_between_them_stop_nothing)
{
    int64_t steps = 2;
    records_write("finished", RECORD_FINISHED, &steps, sizeof steps);
    variant_count = RUNS;
    struct world world = world_run("case $seed in 1|2|4|5) kill -SEGV $$;; 3) cat finished;; 6) exit 9;; *) kill -ABRT "
                                   "$$;; esac",
                                   RUNS, 1);
    cr_assert(world.ok, "%s", world.err.text);
    cr_assert_eq(world.outcome.failed, 7);
    world_end(&world);
}

Test(supervisor, cores_are_counted_and_at_least_one)
{
    cr_assert_geq(supervisor_cores(), 1);
}
