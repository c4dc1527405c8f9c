/* runner merge: several results databases become one. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/memory.h"
#include "runner/command.h"
#include "runner/database.h"
#include "runner/merge.h"
#include "runner/sql.h"
#include "runner/weights.h"

enum { WAIT_SECONDS = 60 };

/* EXIT_USAGE: the file, or what is in it, cannot be merged. */
static enum exit_code source_add(struct merge *merge, const char *path, struct error *err)
{
    sqlite3 *source = database_open_source(path, false, err);
    enum exit_code code = EXIT_USAGE;
    if (source)
        code = merge_add(merge, path, source, err) ? EXIT_DONE
               : merge_was_refused(merge)          ? EXIT_USAGE
                                                   : EXIT_ENVIRONMENT;
    sqlite3_close(source);
    return code;
}

static bool file_same(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* False when INTO is one of the others. */
static bool names_check(const struct arguments *arguments, struct error *err)
{
    for (size_t i = 1; i < arguments->positional_count; i++)
        if (file_same(arguments->positional[0], arguments->positional[i]))
            return error_set(err, "'%s' is given as INTO and as FROM: expected two databases",
                             arguments->positional[i]);
    return true;
}

static enum exit_code all_add(sqlite3 *target, const struct arguments *arguments, struct error *err)
{
    struct merge *merge = merge_begin(target, arguments->positional[0], MERGE_DATABASES);
    enum exit_code code = sql_begin(target, WAIT_SECONDS, err) ? EXIT_DONE : EXIT_ENVIRONMENT;
    if (code == EXIT_DONE) {
        for (size_t i = 1; code == EXIT_DONE && i < arguments->positional_count; i++)
            code = source_add(merge, arguments->positional[i], err);
        bool ok = code == EXIT_DONE && merge_finish(merge, err);
        if (!sql_end(target, ok, NULL, err) && code == EXIT_DONE)
            code = EXIT_ENVIRONMENT;
    }
    merge_free(merge);
    return code;
}

/* *missing: finished runs whose weights are beside none of the databases. */
static bool weights_add(sqlite3 *target, const struct arguments *arguments, size_t *missing, struct error *err)
{
    const char *const *paths = arguments->positional;
    bool row, found, ok;
    sqlite3_stmt *s = sql_prepare(target, "select key from run where state = 'finished' order by key", NULL, err);
    *missing = 0;
    ok = s != NULL;
    while (ok && (ok = sql_step(s, &row, err)) && row) {
        ok = weights_bring(paths[0], paths + 1, arguments->positional_count - 1, sql_text(s, 0), &found, err);
        *missing += ok && !found;
    }
    sqlite3_finalize(s);
    return ok || error_wrap(err, "the databases are merged, but not all final weights are; the same command again "
                                 "brings the rest");
}

/* What was merged stays merged, whatever becomes of the weights. */
static int weights_report(const struct arguments *arguments)
{
    struct error err;
    size_t missing = 0;
    sqlite3 *target = database_open_reader(arguments->positional[0], &err);
    bool ok = target && weights_add(target, arguments, &missing, &err);
    sqlite3_close(target);
    if (!ok) {
        message("merge: %s", err.text);
        return EXIT_ENVIRONMENT;
    }
    if (missing)
        message("the final weights of %zu of them are in no checkpoints/ beside these databases: `runner sample` and "
                "`runner export` need them; copy that folder too and merge again",
                missing);
    return EXIT_DONE;
}

static int merge_run(const struct command *command, const struct arguments *arguments)
{
    (void)command;
    const char *into = arguments->positional[0];
    /* Without WAL a merge that is refused leaves the file as it was, to the byte. */
    struct database_options options = {
        .command = "runner merge", .wait_seconds = INFINITY, .no_wal = true, .note = message_note};
    struct error err, closing;
    int64_t runs = 0, finished = 0;
    if (!names_check(arguments, &err))
        die(EXIT_USAGE, "merge: %s", err.text);
    struct database *database = database_open(into, &options, &err);
    if (!database)
        die(EXIT_ENVIRONMENT, "merge: %s", err.text);
    sqlite3 *db = database_handle(database);
    enum exit_code code = all_add(db, arguments, &err);
    if (code == EXIT_DONE &&
        (!sql_integer(db, &runs, 0, "select count(*) from run", NULL, &err) ||
         !sql_integer(db, &finished, 0, "select count(*) from run where state = 'finished'", NULL, &err)))
        code = EXIT_ENVIRONMENT;
    bool closed = code == EXIT_DONE ? database_close(database, &closing) : database_discard(database, &closing);
    if (code != EXIT_DONE)
        die(code, "merge: %s", err.text);
    if (!closed)
        die(EXIT_ENVIRONMENT, "merge: %s", closing.text);
    message("%s has %lld runs, %lld finished", into, (long long)runs, (long long)finished);
    return weights_report(arguments);
}

static const struct option options[] = {{.name = NULL}};

extern const struct command command_merge;
const struct command command_merge = {
    .name = "merge",
    .arguments = "INTO FROM...",
    .summary = "Unite results databases: those of the parts of a sweep, of several machines, of several people.",
    .help = "INTO is made when it is absent; the others are only read. In any order, and again, the outcome is the "
            "same: what is finished beats what is not, then more steps win. One run with two different curves is "
            "refused and INTO stays as it was. The final weights of finished runs come along where they lie beside "
            "their database, in checkpoints/.\n\n"
            "Example:\n"
            "  runner merge results/results.db part-0/results.db part-1/results.db",
    .options = options,
    .minimum_arguments = 2,
    .maximum_arguments = -1,
    .run = merge_run,
};
