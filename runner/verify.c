/* Recomputes what can be recomputed and compares. */
#include "runner/verify.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "runner/checkpoint.h"
#include "runner/experiment.h"
#include "runner/file.h"
#include "runner/sql.h"
#include "runner/trained_run.h"

const char *verify_name(enum verify_check check)
{
    static const char *const names[VERIFY_COUNT] = {[VERIFY_DATABASE] = "database",
                                                    [VERIFY_LINKS] = "links",
                                                    [VERIFY_KEYS] = "keys",
                                                    [VERIFY_CURVES] = "curves",
                                                    [VERIFY_CHECKPOINTS] = "checkpoints",
                                                    [VERIFY_WEIGHTS] = "weights"};
    return names[check];
}

__attribute__((format(printf, 3, 4))) static void wrong(struct verify *verify, enum verify_check check,
                                                        const char *format, ...)
{
    char text[1600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    verify->wrong[check]++;
    verify->tell(verify->context, check, text);
}

/* Every row of the query is something wrong; but the one row "ok" is not. */
static bool pragma_check(sqlite3 *db, struct verify *verify, enum verify_check check, const char *sql,
                         struct error *err)
{
    sqlite3_stmt *s = sql_prepare(db, sql, NULL, err);
    bool row, ok = s != NULL;
    verify->looked_at[check] = 1;
    while (ok && (ok = sql_step(s, &row, err)) && row)
        if (strcmp(sql_text(s, 0), "ok") != 0)
            wrong(verify, check, "%s", sql_text(s, 0));
    sqlite3_finalize(s);
    return ok;
}

/* Columns: key, seed, corpus hash, tokenizer hash, configuration. */
static void key_check(struct verify *verify, sqlite3_stmt *s)
{
    struct config config;
    struct error err;
    char key[65];
    const char *stored = sql_text(s, 0);
    verify->looked_at[VERIFY_KEYS]++;
    if (!config_from_json(sql_text(s, 4), &config, &err)) {
        wrong(verify, VERIFY_KEYS, "run %.12s: its configuration cannot be read: %s", stored, err.text);
        return;
    }
    run_key_make(&config, sqlite3_column_int64(s, 1), sql_text(s, 2), sql_text(s, 3), key);
    if (strcmp(key, stored) != 0)
        wrong(verify, VERIFY_KEYS, "run %.12s: its configuration, seed, text and tokenizer have the key %.12s", stored,
              key);
}

/* Columns 5 to 9: state, steps, rows of its curve, first and last of them. */
static void curve_check(struct verify *verify, sqlite3_stmt *s)
{
    int64_t steps = sqlite3_column_int64(s, 6), rows = sqlite3_column_int64(s, 7);
    verify->looked_at[VERIFY_CURVES]++;
    if (rows != steps || (steps && (sqlite3_column_int64(s, 8) != 0 || sqlite3_column_int64(s, 9) != steps - 1)))
        wrong(verify, VERIFY_CURVES, "run %.12s is finished with %" PRId64 " of %" PRId64 " steps", sql_text(s, 0),
              rows, steps);
}

static void checkpoints_check(struct verify *verify, const char *folder, const char *key)
{
    size_t count;
    struct error err;
    int64_t *steps = checkpoint_list(folder, key, &count);
    for (size_t i = 0; i < count; i++) {
        bool gone;
        if (checkpoint_check(folder, key, steps[i], &gone, &err))
            verify->looked_at[VERIFY_CHECKPOINTS]++;
        else if (!gone) {
            verify->looked_at[VERIFY_CHECKPOINTS]++;
            wrong(verify, VERIFY_CHECKPOINTS, "checkpoint '%s/%s/step-%" PRId64 ".ckpt' %s", folder, key, steps[i],
                  err.text);
        }
    }
    memory_free(steps);
}

static void weights_check(struct verify *verify, const char *database_path, const char *key)
{
    struct trained_run run;
    struct error err;
    verify->looked_at[VERIFY_WEIGHTS]++;
    if (trained_run_open(database_path, key, &run, &err) != EXIT_DONE)
        wrong(verify, VERIFY_WEIGHTS, "%s", err.text);
    trained_run_close(&run);
}

bool verify_all(sqlite3 *db, const char *database_path, struct verify *verify, struct error *err)
{
    static const char sql[] =
        "select r.key, r.seed, r.corpus_hash, t.hash, r.config, r.state, r.steps, "
        "(select count(*) from step where run = r.id), (select min(step) from step where run = r.id), "
        "(select max(step) from step where run = r.id) from run r join tokenizer t on t.id = r.tokenizer order by r.id";
    static const char links[] =
        "select 'a row of ' || \"table\" || ' names a row of ' || parent || ' that is not there' "
        "from pragma_foreign_key_check";
    char *parent = path_folder(database_path), *folder = path_join(parent, "checkpoints");
    bool row, ok = pragma_check(db, verify, VERIFY_DATABASE, "pragma integrity_check", err);
    /* Nothing else can be told from a damaged file. */
    bool whole = ok && verify->wrong[VERIFY_DATABASE] == 0;
    ok = ok && (!whole || pragma_check(db, verify, VERIFY_LINKS, links, err));
    sqlite3_stmt *s = ok && whole ? sql_prepare(db, sql, NULL, err) : NULL;
    ok = ok && (!whole || s);
    while (ok && whole && (ok = sql_step(s, &row, err)) && row) {
        key_check(verify, s);
        checkpoints_check(verify, folder, sql_text(s, 0));
        if (strcmp(sql_text(s, 5), "finished") == 0) {
            curve_check(verify, s);
            weights_check(verify, database_path, sql_text(s, 0));
        }
    }
    sqlite3_finalize(s);
    memory_free(folder);
    memory_free(parent);
    return ok;
}
