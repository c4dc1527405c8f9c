/* What users name, found in results.db: runs, experiments, and what belongs to a run. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "runner/database.h"
#include "runner/problem.h"
#include "runner/sql.h"

/* First column of a query as texts. */
struct names {
    char **texts;
    size_t count;
};

static void names_release(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        memory_free(names->texts[i]);
    memory_free(names->texts);
}

/* Finalizes the statement; NULL: false. Owner of the names: caller, names_release(), also after a failure. */
static bool names_read(sqlite3_stmt *statement, struct names *names, struct error *err)
{
    bool row, ok = statement != NULL;
    *names = (struct names){NULL, 0};
    while (ok && (ok = sql_step(statement, &row, err)) && row) {
        size_t n = names->count;
        names->texts = memory_grow(names->texts, n * sizeof *names->texts, n + 1, sizeof *names->texts);
        names->texts[names->count++] = memory_copy_text(sql_text(statement, 0));
    }
    sqlite3_finalize(statement);
    return ok;
}

/* "what 'word' is not there: did you mean ...", or the list of what is: the rows of `there`. Finalizes it. */
static bool refuse_unknown(const char *what, const char *word, const char *where, sqlite3_stmt *there,
                           struct error *err)
{
    struct names names;
    if (!names_read(there, &names, err)) {
        names_release(&names);
        return false;
    }
    const char *nearest = suggest_nearest(word, (const char *const *)names.texts, names.count);
    if (names.count == 0)
        error_set(err, "there is no %s '%.200s': %s has none", what, word, where);
    else if (nearest)
        error_set(err, "there is no %s '%.200s' in %s: did you mean '%.200s'?", what, word, where, nearest);
    else {
        char list[512] = "";
        size_t used = 0, i = 0;
        for (; i < names.count && used + strlen(names.texts[i]) + 8 < sizeof list - 16; i++)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s'%s'", i ? ", " : "", names.texts[i]);
        error_set(err, "there is no %s '%.200s' in %s: it has %s%s", what, word, where, list,
                  i < names.count ? ", ..." : "");
    }
    names_release(&names);
    return false;
}

int64_t database_find_experiment(sqlite3 *db, const char *name, struct error *err)
{
    int64_t id;
    if (!sql_integer(db, &id, 0, "select id from experiment where name = ?", "t", err, name))
        return 0;
    if (!id)
        refuse_unknown("experiment", name, "the database",
                       sql_prepare(db, "select name from experiment order by id desc", NULL, err), err);
    return id;
}

/* experiment/variant/seed: labels may hold slashes, the other two do not. */
static bool run_by_name(sqlite3 *db, const char *text, const char *first, const char *last, char key[65],
                        struct error *err)
{
    char *name = memory_copy_bytes(text, (size_t)(first - text));
    char *label = memory_copy_bytes(first + 1, (size_t)(last - first - 1));
    int64_t id = database_find_experiment(db, name, err), variant = 0;
    bool ok = id && sql_integer(db, &variant, 0, "select id from variant where experiment = ? and label = ?", "it", err,
                                id, label);
    char where[160];
    snprintf(where, sizeof where, "experiment '%.100s'", name);
    if (ok && !variant)
        ok = refuse_unknown(
            "variant", label, where,
            sql_prepare(db, "select label from variant where experiment = ? order by position", "i", err, id), err);
    if (ok) {
        bool row = false;
        sqlite3_stmt *s = sql_prepare(db,
                                      "select r.key from member m join run r on r.id = m.run where m.variant = ? and "
                                      "cast(m.seed as text) = ?",
                                      "it", err, variant, last + 1);
        ok = s && sql_step(s, &row, err);
        if (row)
            snprintf(key, 65, "%s", sql_text(s, 0));
        sqlite3_finalize(s);
        if (ok && !row)
            ok = refuse_unknown(
                "seed", last + 1, "this variant",
                sql_prepare(db, "select seed from member where variant = ? order by seed", "i", err, variant), err);
    }
    memory_free(name);
    memory_free(label);
    return ok;
}

static bool run_by_prefix(sqlite3 *db, const char *text, char key[65], struct error *err)
{
    struct names keys;
    bool ok = names_read(
        sql_prepare(db, "select key from run where key >= ?1 and key < ?1 || 'g' order by key limit 4", "t", err, text),
        &keys, err);
    if (!ok) {
        names_release(&keys);
        return false;
    }
    ok = keys.count == 1;
    if (ok)
        snprintf(key, 65, "%s", keys.texts[0]);
    else if (keys.count == 0)
        error_set(err, "no run's key begins with '%s': `runner status` and the view runs list what is there", text);
    else
        error_set(err, "'%s' is the beginning of more than one run's key: %.12s, %.12s%s; give more of it", text,
                  keys.texts[0], keys.texts[1], keys.count > 2 ? ", ..." : "");
    names_release(&keys);
    return ok;
}

bool database_find_run(sqlite3 *db, const char *text, char key[65], struct error *err)
{
    const char *first = strchr(text, '/'), *last = strrchr(text, '/');
    if (first && last > first)
        return run_by_name(db, text, first, last, key, err);
    size_t length = strlen(text);
    bool hexadecimal = length > 0 && strspn(text, "0123456789abcdef") == length;
    if (!hexadecimal || length > 64)
        return error_set(err,
                         "'%.200s' names no run: expected the first 1 to 64 hexadecimal digits of its key, or "
                         "experiment/variant/seed",
                         text);
    return run_by_prefix(db, text, key, err);
}

void *database_tokenizer(sqlite3 *db, const char *key, size_t *size, struct error *err)
{
    bool row = false;
    void *image = NULL;
    sqlite3_stmt *s = sql_prepare(
        db, "select t.image from run r join tokenizer t on t.id = r.tokenizer where r.key = ?", "t", err, key);
    if (s && sql_step(s, &row, err)) {
        if (row) {
            *size = (size_t)sqlite3_column_bytes(s, 0);
            image = memory_copy_bytes(sqlite3_column_blob(s, 0), *size);
        } else {
            error_set(err, "the database has no run %s", key);
        }
    }
    sqlite3_finalize(s);
    return image;
}

char *database_run_config(sqlite3 *db, const char *key, struct error *err)
{
    bool row = false;
    char *config = NULL;
    sqlite3_stmt *s = sql_prepare(db, "select config from run where key = ?", "t", err, key);
    if (s && sql_step(s, &row, err)) {
        if (row)
            config = memory_copy_text(sql_text(s, 0));
        else
            error_set(err, "the database has no run %s", key);
    }
    sqlite3_finalize(s);
    return config;
}
