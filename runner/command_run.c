/* `runner run`: a file's sweep, trained, logged, compared and drawn; the second time a no-op. */
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/checkpoint.h"
#include "runner/command.h"
#include "runner/database.h"
#include "runner/disk.h"
#include "runner/estimate.h"
#include "runner/launch.h"
#include "runner/loss_table.h"
#include "runner/plot.h"
#include "runner/precision.h"
#include "runner/session.h"
#include "runner/shadow.h"
#include "runner/signals.h"
#include "runner/supervisor.h"
#include "runner/table.h"

enum { WORKERS_MOST = 1024, SIGNAL_EXIT = 128, PLAIN_WIDTH = 100, FLUSH_SECONDS = 60, HANG_SECONDS = 3600 };

static int environment_fail(const struct error *err)
{
    message("runner: %s", err->text);
    return EXIT_ENVIRONMENT;
}

static const char *experiment_name(const struct session *session)
{
    return session->sweep->experiment->name;
}

/* A line that a signal's handler can write. Owner: caller, memory_free(). */
__attribute__((format(printf, 1, 2))) static char *line_make(const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    size_t length = (size_t)vsnprintf(NULL, 0, format, again);
    char *line = memory_alloc(length + 2, 1);
    vsnprintf(line, length + 1, format, args);
    line[length] = '\n';
    va_end(again);
    va_end(args);
    return line;
}

static void plan_print(const struct sweep *sweep, const struct schedule *schedule)
{
    struct table *table = table_create();
    static const char *const headings[] = {"run", "variant", "seed", "parameters", "action", "from_step"};
    for (size_t i = 0; i < sizeof headings / sizeof *headings; i++)
        table_column(table, headings[i], i == 2 || i == 3 || i == 5 ? TABLE_RIGHT : TABLE_LEFT);
    for (size_t i = 0; i < sweep->run_count; i++) {
        const struct run *run = &sweep->runs[i];
        const struct planned_run *planned = &schedule->runs[i];
        table_textf(table, "%.8s", run->key);
        table_text(table, sweep->experiment->variants[run->variant].label);
        table_textf(table, "%" PRId64, run->seed);
        table_integer(table, run->parameters);
        table_text(table, run_action_name(planned->action));
        if (run_action_trains(planned->action))
            table_textf(table, "%" PRId64, planned->step);
        else
            table_absent(table, "-");
    }
    table_write(table, TABLE_TEXT, 0, stdout);
    table_free(table);
}

static int dry_run(struct session *session, struct retry retry)
{
    struct error err;
    struct schedule schedule;
    sqlite3 *reader = NULL;
    char *cache = shadow_make(session->cache, &err);
    if (!cache)
        return environment_fail(&err);
    int code = session_load(session, cache);
    if (code == EXIT_DONE && !session_reader(session, &reader, &err))
        code = environment_fail(&err);
    if (code == EXIT_DONE) {
        schedule_make(&schedule, reader, session->sweep, session->checkpoints, retry);
        plan_print(session->sweep, &schedule);
        message("dry run: %zu of %zu runs would be trained; nothing was written", schedule.to_train, schedule.total);
        schedule_release(&schedule);
    }
    sqlite3_close(reader);
    shadow_remove(cache);
    return code;
}

static int code_of(const struct schedule *schedule)
{
    return schedule->counts[ACTION_DIVERGED] || schedule->counts[ACTION_FAILED] ? EXIT_RUNS_FAILED : EXIT_DONE;
}

/* How runs that ended badly are trained again, when there are any. */
static void retry_hint(const struct session *session, const struct schedule *schedule)
{
    bool diverged = schedule->counts[ACTION_DIVERGED], failed = schedule->counts[ACTION_FAILED];
    if (diverged || failed)
        message("to train the %s again: %s --retry %s",
                diverged && failed ? "diverged and failed runs"
                : diverged         ? "diverged runs"
                                   : "failed runs",
                session->words_once,
                diverged && failed ? "failed,diverged"
                : diverged         ? "diverged"
                                   : "failed");
}

static int output_width(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : PLAIN_WIDTH;
}

static void table_show(sqlite3 *reader, const struct session *session)
{
    struct error err;
    char *metric = NULL, *split = NULL;
    struct loss_table *table = NULL;
    int64_t id = database_find_experiment(reader, experiment_name(session), &err);
    if (id && loss_table_choose(reader, id, NULL, NULL, &metric, &split, &err))
        table = loss_table_read(reader, id, metric, split, &err);
    if (table)
        loss_table_write(table, TABLE_TEXT, output_width(), stdout);
    else
        message("runner: %s", err.text);
    fflush(stdout);
    loss_table_free(table);
    memory_free(metric);
    memory_free(split);
}

static void summary_show(const struct session *session, const struct schedule *schedule, const char *prefix)
{
    char *summary = schedule_summary(schedule, session->sweep);
    retry_hint(session, schedule);
    message("%s%s", prefix, summary);
    memory_free(summary);
}

/* True when the database has everything already, which then was only read. */
static bool nothing_to_do(const struct session *session, struct retry retry, int *code)
{
    sqlite3 *reader;
    struct error err;
    if (!session_reader(session, &reader, &err) || !reader)
        return false; /* what is wrong with it is told on opening it to write */
    struct schedule schedule;
    schedule_make(&schedule, reader, session->sweep, session->checkpoints, retry);
    bool nothing = schedule.to_train == 0 && database_is_frozen(reader, session->sweep);
    if (nothing) {
        table_show(reader, session);
        summary_show(session, &schedule, "nothing to do: ");
        *code = code_of(&schedule);
    }
    schedule_release(&schedule);
    sqlite3_close(reader);
    return nothing;
}

/* Results do not depend on figures: what cannot be drawn is told, with how to draw it later. */
static void plots_show(const struct session *session)
{
    struct error err;
    size_t drawn = 0;
    if (option_flag(session->arguments, "no-plots"))
        return;
    bool all = plots_draw_default(session->database_path, experiment_name(session), NULL, &drawn, &err);
    if (drawn)
        message("%zu figure%s in %s/plots/%s", drawn, drawn == 1 ? "" : "s", session->folder, experiment_name(session));
    if (!all) {
        char *plot = session_command(session, "plot");
        message("some figures are missing: %s\nresults are complete; to draw them later: %s", err.text, plot);
        memory_free(plot);
    }
}

/* Diverged runs that shall be trained again start anew; what a killed supervisor did not tidy of finished ones goes. */
static bool checkpoints_prepare(const struct session *session, const struct schedule *schedule, struct error *err)
{
    for (size_t i = 0; i < session->sweep->run_count; i++) {
        const struct planned_run *planned = &schedule->runs[i];
        bool anew = planned->action == ACTION_RETRY && planned->state == RUN_DIVERGED;
        if ((anew || planned->action == ACTION_FINISHED) &&
            !checkpoint_remove(session->checkpoints, session->sweep->runs[i].key, err))
            return false;
    }
    return true;
}

static size_t workers_choose(const struct session *session, size_t to_train)
{
    size_t workers = (size_t)option_integer(session->arguments, "workers", (int64_t)supervisor_cores());
    workers = workers < to_train ? workers : to_train;
    return workers < WORKERS_MOST ? workers : WORKERS_MOST;
}

/* Of every precision that will be trained, the first that is slow here. */
static void precisions_note(const struct session *session, const bool *wanted)
{
    for (size_t i = 0; i < session->sweep->run_count; i++)
        if (wanted[i])
            precision_note(
                session->sweep->experiment->variants[session->sweep->runs[i].variant].config.training.precision);
}

static bool runs_train(const struct session *session, struct database *database, const struct schedule *schedule,
                       int signals, struct supervisor_outcome *outcome, struct error *err)
{
    struct supervisor_options options = {.workers = workers_choose(session, schedule->to_train),
                                         .checkpoint_every = option_integer(session->arguments, "checkpoint-every", 0),
                                         .hang_after =
                                             (double)option_integer(session->arguments, "hang-after", HANG_SECONDS),
                                         .checkpoint_folder = session->checkpoints,
                                         .log_folder = session->logs,
                                         .signals = signals,
                                         .progress = progress_mode_of(stderr)};
    bool *wanted = memory_alloc(session->sweep->run_count, sizeof *wanted);
    for (size_t i = 0; i < session->sweep->run_count; i++)
        wanted[i] = run_action_trains(schedule->runs[i].action);
    message("%s: %zu run%s, %zu to train, %zu worker%s", experiment_name(session), schedule->total,
            schedule->total == 1 ? "" : "s", schedule->to_train, options.workers, options.workers == 1 ? "" : "s");
    precisions_note(session, wanted);
    bool ok = checkpoints_prepare(session, schedule, err) &&
              disk_has_room(session->folder, estimate_disk(session->sweep, schedule, options.workers), err) &&
              supervise(database, session->sweep, wanted, &options, outcome, err);
    memory_free(wanted);
    return ok;
}

/* How it went in the open database. */
struct result {
    struct supervisor_outcome outcome;
    struct follow_outcome cluster;
    struct schedule after; /* how every run stands now */
    bool nothing;          /* others did it all while we waited for the database */
    int late;              /* a signal that came after the last run had ended; 0: none */
};

static bool database_work(const struct session *session, struct database *database, struct retry retry, int signals,
                          struct result *result, struct error *err)
{
    struct schedule before;
    sqlite3 *db = database_handle(database);
    bool frozen = database_is_frozen(db, session->sweep);
    if (!database_recover(database, err) || (!frozen && !database_freeze(database, session->sweep, err)))
        return false;
    schedule_make(&before, db, session->sweep, session->checkpoints, retry);
    result->nothing = frozen && !before.to_train;
    bool ok = !before.to_train;
    if (before.to_train && launch_wanted(session->arguments))
        ok = launch(session, database, &before, signals, &result->cluster, err);
    else if (before.to_train)
        ok = launch_is_clear(session, &before, err) &&
             runs_train(session, database, &before, signals, &result->outcome, err);
    ok = ok && (result->nothing || database_summarize(database, experiment_name(session), err)) &&
         database_flush(database, FLUSH_SECONDS, err);
    schedule_release(&before);
    if (ok)
        schedule_make(&result->after, db, session->sweep, session->checkpoints, (struct retry){false, false, 0});
    return ok;
}

static int stopped_report(const struct session *session, const struct result *result)
{
    summary_show(session, &result->after, result->outcome.killed ? "stopped at once: " : "stopped: ");
    message("to go on: %s", session->words);
    return result->outcome.killed ? SIGNAL_EXIT + result->outcome.stop_signal : EXIT_STOPPED;
}

static int done_report(const struct session *session, const struct result *result)
{
    struct error err;
    sqlite3 *reader = database_open_reader(session->database_path, &err);
    if (!reader)
        return environment_fail(&err);
    table_show(reader, session);
    sqlite3_close(reader);
    char *plot = session_command(session, "plot");
    char *text = line_make("stopped; results are complete; to draw their figures: %s", plot);
    signals_leave(text, 0);
    if (result->late)
        raise(result->late);
    if (!result->nothing)
        plots_show(session);
    signals_leave(NULL, 0);
    memory_free(text);
    memory_free(plot);
    summary_show(session, &result->after, result->nothing ? "nothing to do: " : "");
    return code_of(&result->after);
}

static int train(const struct session *session, struct retry retry)
{
    struct error err, closing;
    struct database_options options = {.command = session->words, .wait_seconds = INFINITY, .note = message_note};
    struct database *database = database_open(session->database_path, &options, &err);
    if (!database)
        return environment_fail(&err);
    struct result result = {.nothing = false};
    int signals = signals_open(&err);
    bool ok = signals >= 0 && database_work(session, database, retry, signals, &result, &err);
    bool closed = database_close(database, &closing);
    if (signals >= 0) {
        result.late = signals_late(signals);
        signals_close(signals);
    }
    signals_leave(NULL, 0);
    int code;
    if (!ok || !closed) {
        code = environment_fail(ok ? &closing : &err);
        message("what was trained up to the last checkpoint is kept; to go on: %s", session->words);
    } else if (!launch_left(session, &result.cluster, &code)) {
        bool stopped = result.outcome.stop_signal && result.after.to_train;
        code = stopped ? stopped_report(session, &result) : done_report(session, &result);
    }
    schedule_release(&result.after);
    return code;
}

static int run(const struct command *command, const struct arguments *arguments)
{
    struct session session;
    struct retry retry;
    struct error err;
    if (!retry_parse(option_text(arguments, "retry", NULL), &retry, &err)) {
        message("runner run: %s", err.text);
        return EXIT_USAGE;
    }
    if (!launch_check(arguments, &err)) {
        message("runner run: %s", err.text);
        return EXIT_USAGE;
    }
    session_begin(&session, command, arguments);
    int code;
    if (option_flag(arguments, "dry-run")) {
        code = dry_run(&session, retry);
    } else if (!database_path_check(session.database_path, &err)) { /* before anything is written beside it */
        code = environment_fail(&err);
    } else {
        char *text = line_make("stopped before training began\nto go on: %s", session.words);
        signals_leave(text, EXIT_STOPPED);
        code = session_load(&session, session.cache);
        if (code == EXIT_DONE && !nothing_to_do(&session, retry, &code))
            code = train(&session, retry);
        signals_leave(NULL, 0);
        memory_free(text);
    }
    session_end(&session);
    return code;
}

static const struct option options[] = {
    {.name = "workers",
     .kind = OPTION_INTEGER,
     .argument = "N",
     .doc = "Runs trained at once, one process each. Default: the cores this process may use.",
     .minimum = 1,
     .maximum = WORKERS_MOST},
    {.name = "db", .kind = OPTION_TEXT, .argument = "PATH", .doc = "Database. Default: results/results.db."},
    {.name = "set",
     .kind = OPTION_LIST,
     .argument = "KEY=VALUE",
     .doc = "Sets a knob for every variant, as if the file said so; may be given for several knobs."},
    {.name = "seeds", .kind = OPTION_TEXT, .argument = "A-B", .doc = "These seeds in place of the file's."},
    {.name = "only", .kind = OPTION_LIST, .argument = "VARIANT", .doc = "This variant; may be given again."},
    {.name = "retry",
     .kind = OPTION_TEXT,
     .argument = "STATES",
     .doc = "Trains runs again that ended so: failed, diverged, or failed of one cause: memory, killed, crashed, hung, "
            "exit, records, cancelled, node, time. Several with commas between them."},
    {.name = "shard",
     .kind = OPTION_TEXT,
     .argument = "I/N",
     .doc = "Only part I of N, from 0/N on; `runner merge` unites the parts' databases."},
    {.name = "launcher",
     .kind = OPTION_TEXT,
     .argument = "SYSTEM",
     .doc = "Trains on a cluster, one task a run, --workers at once, and follows them.",
     .choices = "slurm"},
    {.name = "slurm",
     .kind = OPTION_LIST,
     .argument = "KEY=VALUE",
     .doc = "An option of sbatch, as in partition=gpu or time=2:00:00; wins over the file's `launcher:`."},
    {.name = "detach", .kind = OPTION_FLAG, .doc = "Submits and returns; the same command again follows."},
    {.name = "dry-run", .kind = OPTION_FLAG, .doc = "Shows what would be trained; writes nothing."},
    {.name = "yes", .kind = OPTION_FLAG, .doc = "More than 1,000 runs are meant."},
    {.name = "checkpoint-every",
     .kind = OPTION_INTEGER,
     .argument = "STEPS",
     .doc = "Writes a checkpoint each time so many steps are done. Default: every 20 seconds.",
     .minimum = 1,
     .maximum = 1000000000},
    {.name = "hang-after",
     .kind = OPTION_INTEGER,
     .argument = "SECONDS",
     .doc = "A worker that makes no step for so long is killed, and its run failed. Default: 3600; 0: never.",
     .minimum = 0,
     .maximum = 1000000000},
    {.name = "no-plots", .kind = OPTION_FLAG, .doc = "Draws no figures at the end."},
    {.name = NULL},
};

const struct command command_run = {
    .name = "run",
    .arguments = "FILE",
    .summary = "Train every variant of an experiment file, log every loss, print the table, draw the figures.",
    .help =
        "Runs that are finished are skipped, interrupted ones go on from their checkpoint and end with the same bits "
        "as "
        "if nothing had happened. The first Ctrl-C writes checkpoints and stops (exit code 75); the second stops at "
        "once. Exit code 1 when some runs failed or diverged: the last line names them. None of them is trained again "
        "by "
        "itself, for what ended it would as a rule end it again, and three variants in a row that failed of one "
        "cause stop the sweep; --retry says which to train again, from their checkpoints where they failed.\n\n"
        "Example:\n  runner run experiments/quick.yaml --workers 2",
    .options = options,
    .minimum_arguments = 1,
    .maximum_arguments = 1,
    .run = run,
};
