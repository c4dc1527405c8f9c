/* runner rm: experiments and runs out of sight. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "runner/command.h"
#include "runner/database.h"
#include "runner/removal.h"
#include "runner/sql.h"

static const struct option options[] = {
    {.name = "db", .kind = OPTION_TEXT, .argument = "PATH", .doc = "Database. Default: results/results.db."},
    {0},
};

/* What a name means: an experiment by its whole name, or else a run. */
struct target {
    int64_t experiment; /* 0: a run */
    char key[65];
};

/* Of a key: fewer are only the name of an experiment, so that hiding `a` twice does not hide a run that begins so. */
enum { DIGITS_LEAST = 4 };

/* *missing: there is neither, as err says. */
static bool target_find(sqlite3 *db, const char *name, struct target *target, bool *missing, struct error *err)
{
    if (!sql_integer(db, &target->experiment, 0, "select id from experiment where name = ?", "t", err, name))
        return false;
    if (target->experiment)
        return true;
    size_t digits = strspn(name, "0123456789abcdef");
    bool run = strchr(name, '/') || (!name[digits] && digits >= DIGITS_LEAST);
    bool found = run ? database_find_run(db, name, target->key, err) : database_find_experiment(db, name, err) != 0;
    *missing = !found && !sql_has_failed(db);
    return found;
}

static bool target_hide(sqlite3 *db, const char *name, const struct target *target, struct error *err)
{
    int64_t runs;
    if (!target->experiment) {
        bool ok = removal_hide_run(db, target->key, &runs, err);
        if (ok)
            message(runs ? "run %.12s is hidden" : "run %.12s was hidden already", target->key);
        return ok;
    }
    bool ok = removal_hide_experiment(db, target->experiment, &runs, err);
    if (ok)
        message("experiment %s is hidden, with %" PRId64 " run%s that no other experiment has", name, runs,
                runs == 1 ? "" : "s");
    return ok;
}

/* All or none. */
static bool names_hide(struct database *database, const struct arguments *arguments, bool *missing, struct error *err)
{
    sqlite3 *db = database_handle(database);
    size_t count = arguments->positional_count;
    struct target *targets = memory_alloc(count, sizeof *targets);
    bool begun = sql_begin(db, 60, err), ok = begun;
    for (size_t i = 0; ok && i < count; i++)
        ok = target_find(db, arguments->positional[i], &targets[i], missing, err);
    for (size_t i = 0; ok && i < count; i++)
        ok = target_hide(db, arguments->positional[i], &targets[i], err);
    memory_free(targets);
    return begun && sql_end(db, ok, NULL, err);
}

static int rm_run(const struct command *command, const struct arguments *arguments)
{
    (void)command;
    struct error err, closing;
    struct database_options opening = {.command = "runner rm", .note = message_note};
    const char *path = option_text(arguments, "db", "results/results.db");
    sqlite3 *reader = database_open_reader(path, &err); /* makes none where there is none */
    if (!reader)
        die(EXIT_ENVIRONMENT, "%s", err.text);
    sqlite3_close(reader);
    struct database *database = database_open(path, &opening, &err);
    if (!database)
        die(EXIT_ENVIRONMENT, "%s", err.text);
    bool missing = false, ok = names_hide(database, arguments, &missing, &err);
    bool closed = database_close(database, &closing);
    if (!ok)
        die(missing ? EXIT_USAGE : EXIT_ENVIRONMENT, "%s", err.text);
    if (!closed)
        die(EXIT_ENVIRONMENT, "%s", closing.text);
    message("`runner run` of a file that plans them brings them back; `runner gc` removes them for good");
    return EXIT_DONE;
}

extern const struct command command_rm;
const struct command command_rm = {
    .name = "rm",
    .arguments = "EXPERIMENT|RUN...",
    .summary = "Hide experiments or runs: they are in no table, view or figure any more.",
    .help = "Nothing is removed from the disk before `runner gc`; until then, running a file that plans the same runs "
            "brings them back as they were. RUN is the beginning of a key, four digits or more, or "
            "experiment/variant/seed. All names are hidden, or, when one is wrong, none.\n\n"
            "Example:\n  runner rm day2-norms@1\n  runner rm quick/rmsnorm/1338",
    .options = options,
    .minimum_arguments = 1,
    .maximum_arguments = -1,
    .run = rm_run,
};
