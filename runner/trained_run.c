/* Finds a run's settings and tokenizer in results.db and its final weights beside it. */
#include "runner/trained_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "runner/database.h"
#include "runner/experiment.h"
#include "runner/shell_word.h"
#include "runner/sql.h"
#include "runner/weights.h"

/* ---- why there are no weights ---- */

/* The experiment file that trains the run. Owner: caller, memory_free(). */
static char *experiment_path(sqlite3 *db, const char *key)
{
    static const char sql[] = "select e.path from run r join member m on m.run = r.id join variant v on v.id = "
                              "m.variant join experiment e on e.id = v.experiment where r.key = ? order by e.id desc";
    bool row = false;
    sqlite3_stmt *s = sql_prepare(db, sql, "t", NULL, key);
    char *path = memory_copy_text(s && sql_step(s, &row, NULL) && row ? sql_text(s, 0) : "FILE");
    sqlite3_finalize(s);
    return path;
}

/* False with the state of a run that is not finished, and what finishes it. */
static bool state_check(sqlite3 *db, const struct trained_run *run, struct error *err)
{
    int64_t done = 0;
    char reason[256] = "";
    enum run_state state = database_run_state(db, run->key, &done, reason, sizeof reason);
    if (state == RUN_FINISHED)
        return true;
    char *path = experiment_path(db, run->key), *file = shell_word(path);
    bool ended = state == RUN_DIVERGED || state == RUN_FAILED;
    error_set(err, "run %.12s is %s at step %" PRId64 " of %" PRId64 "%s%s%s, so it has no final weights: ", run->key,
              run_state_name(state), done, run->config.training.steps, reason[0] ? " (" : "", reason,
              reason[0] ? ")" : "");
    size_t used = strlen(err->text);
    char *rest = err->text + used;
    if (state == RUN_RUNNING)
        snprintf(rest, sizeof err->text - used, "`runner status` shows when it will");
    else
        snprintf(rest, sizeof err->text - used, "`runner run %s%s%s` %s", file, ended ? " --retry " : "",
                 ended ? run_state_name(state) : "",
                 ended                 ? "trains it again"
                 : state == RUN_QUEUED ? "trains it"
                                       : "goes on with it");
    memory_free(file);
    memory_free(path);
    return false;
}

/* ---- the weights ---- */

static bool weights_check(const struct trained_run *run, struct error *err)
{
    const char *of = safetensors_metadata(run->weights, "run_key");
    if (!of || strcmp(of, run->key) != 0)
        return error_set(err, "these are the weights of run %.64s: expected %s", of ? of : "(not named)", run->key);
    for (size_t i = 0; i < run->table->count; i++)
        if (!safetensors_fits(safetensors_find(run->weights, run->table->tensors[i].name), &run->table->tensors[i],
                              err))
            return false;
    for (size_t i = 0; i < safetensors_count(run->weights); i++) {
        const char *name = safetensors_at(run->weights, i)->name;
        if (!tensor_find(run->table, name))
            return error_set(err, "tensor '%.100s' has no place in the run's model", name);
    }
    return true;
}

static bool weights_open(struct trained_run *run, const char *database, struct error *err)
{
    bool there, good = false;
    char *path = weights_path(database, run->key, &there);
    if (!there)
        error_set(err,
                  "run %.12s is finished, but its final weights are not beside the database: there is no '%s'; put the "
                  "file there (from beside the database the run was trained into), or train the run again with another "
                  "--db",
                  run->key, path);
    else if ((run->weights = safetensors_open(path, err)))
        good = weights_check(run, err) || error_wrap(err, "'%s'", path);
    memory_free(path);
    return good;
}

void trained_run_read(const struct trained_run *run, real *parameters)
{
    for (size_t i = 0; i < run->table->count; i++) {
        const struct tensor *tensor = &run->table->tensors[i];
        safetensors_read_real(safetensors_find(run->weights, tensor->name), parameters + tensor->offset, tensor->count,
                              NULL);
    }
}

/* ---- the run ---- */

static void report_first(void *context, const struct knob *knob, const char *text)
{
    struct error *err = context;
    if (!*err->text)
        error_set(err, "the database has settings that cannot be: %s: %s", knob->name, text);
}

static bool settings_read(sqlite3 *db, struct trained_run *run, struct error *err)
{
    size_t size;
    char *json = database_run_config(db, run->key, err);
    bool good = json && config_from_json(json, &run->config, err);
    void *image = good ? database_tokenizer(db, run->key, &size, err) : NULL;
    struct error problem = {""};
    if (good && config_check(&run->config, report_first, &problem) > 0)
        good = error_set(err, "%s", problem.text);
    if (good)
        run->tokenizer = image ? tokenizer_load(image, size, err) : NULL;
    if (run->tokenizer)
        run->table = tensor_table_create(&run->config.model, tokenizer_vocab_size(run->tokenizer));
    memory_free(json);
    memory_free(image);
    return run->table != NULL;
}

enum exit_code trained_run_open(const char *database, const char *name, struct trained_run *run, struct error *err)
{
    *run = (struct trained_run){.tokenizer = NULL};
    sqlite3 *db = database_open_reader(database, err);
    if (!db)
        return EXIT_ENVIRONMENT;
    bool good = database_find_run(db, name, run->key, err) && settings_read(db, run, err) &&
                state_check(db, run, err) && weights_open(run, database, err);
    enum exit_code code = good ? EXIT_DONE : sql_has_failed(db) ? EXIT_ENVIRONMENT : EXIT_USAGE;
    sqlite3_close(db);
    return code;
}

void trained_run_close(struct trained_run *run)
{
    tokenizer_free(run->tokenizer);
    tensor_table_free(run->table);
    safetensors_close(run->weights);
    *run = (struct trained_run){.tokenizer = NULL};
}
