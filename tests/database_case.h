/* A folder with a results.db, and sweeps made by hand to fill it. */
#ifndef TESTS_DATABASE_CASE_H
#define TESTS_DATABASE_CASE_H

#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/database.h"
#include "runner/hash.h"
#include "runner/sql.h"

struct fixture {
    char folder[64], path[96];
    struct database *db;
};

static inline void fixture_open(struct fixture *f)
{
    struct error err;
    snprintf(f->folder, sizeof f->folder, "/tmp/runner-db-XXXXXX");
    cr_assert(mkdtemp(f->folder));
    snprintf(f->path, sizeof f->path, "%s/results.db", f->folder);
    f->db = database_open(f->path, NULL, &err);
    cr_assert(f->db, "%s", err.text);
}

static inline void fixture_close(struct fixture *f)
{
    struct error err;
    cr_assert(database_close(f->db, &err), "%s", err.text);
    f->db = NULL;
}

static inline void fixture_remove(struct fixture *f)
{
    char command[128];
    static const char *const names[] = {"results.db",         "results.db-wal",  "results.db-shm",
                                        "results.db-journal", "results.db.lock", "other.db"};
    if (f->db)
        fixture_close(f);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(command, sizeof command, "%s/%s", f->folder, names[i]);
        unlink(command);
    }
    cr_assert_eq(rmdir(f->folder), 0, "something is left in %s", f->folder);
}

static inline bool exists(const struct fixture *f, const char *name)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", f->folder, name);
    return access(path, F_OK) == 0;
}

/* The last note of a database opened with .note = keep_note. */
static char noted[512];

static inline void keep_note(void *context, const char *text)
{
    (void)context;
    snprintf(noted, sizeof noted, "%s", text);
}

/* "baseline" and others, each with the given seeds; keys are hashes of salt, label and seed. */
static inline struct sweep *sweep_make(const char *name, const char *const *labels, size_t label_count,
                                       const int64_t *seeds, size_t seed_count, const char *salt)
{
    struct sweep *sweep = memory_alloc(1, sizeof *sweep);
    struct experiment *e = sweep->experiment = memory_alloc(1, sizeof *e);
    e->path = memory_copy_text("experiments/quick.yaml");
    e->name = memory_copy_text(name);
    e->description = memory_copy_text("made by hand");
    e->question = memory_copy_text("Does it matter?");
    e->text = memory_copy_text(salt);
    e->compare =
        (struct comparison_settings){memory_copy_text("bits_per_byte"), memory_copy_text("validation"), 0.01, 0.05};
    e->variants = memory_alloc(label_count, sizeof *e->variants);
    e->variant_count = label_count;
    sweep->datasets = memory_alloc(1, sizeof *sweep->datasets);
    sweep->dataset_count = 1;
    snprintf(sweep->datasets->corpus_hash, 65, "c0ffee");
    snprintf(sweep->datasets->tokenizer_hash, 65, "70ce");
    sweep->datasets->tokenizer_image = memory_copy_bytes("image\0bytes", 11);
    sweep->datasets->tokenizer_image_size = 11;
    sweep->runs = memory_alloc(label_count * seed_count, sizeof *sweep->runs);
    for (size_t v = 0; v < label_count; v++) {
        struct variant *variant = &e->variants[v];
        variant->label = memory_copy_text(labels[v]);
        variant->baseline = strcmp(labels[v], "baseline") == 0;
        config_init(&variant->config);
        variant->config.training.steps = 4;
        variant->config.training.learning_rate = 1e-3;
        variant->config.model.norm = NORM_RMSNORM;
        variant->config.model.qk_norm = true;
        if (!variant->baseline) {
            variant->override_count = 1;
            variant->overrides = memory_alloc(1, sizeof *variant->overrides);
            variant->overrides[0] = (struct override){memory_copy_text("model.norm"), memory_copy_text(labels[v])};
        }
        for (size_t s = 0; s < seed_count; s++) {
            struct run *run = &sweep->runs[sweep->run_count++];
            char text[256];
            run->variant = v;
            run->seed = seeds[s];
            run->parameters = variant->baseline ? 1000 : 900;
            run->flops_per_token = 6000;
            run->config_json =
                memory_copy_text("{\"model.dropout\":0,\"model.norm\":\"rmsnorm\",\"model.qk_norm\":true}");
            snprintf(text, sizeof text, "%s/%s/%" PRId64, salt, labels[v], seeds[s]);
            hash_bytes(text, strlen(text), run->key);
        }
    }
    return sweep;
}

static inline void sweep_release(struct sweep *sweep)
{
    struct experiment *e = sweep->experiment;
    for (size_t v = 0; v < e->variant_count; v++) {
        for (size_t o = 0; o < e->variants[v].override_count; o++) {
            memory_free(e->variants[v].overrides[o].name);
            memory_free(e->variants[v].overrides[o].value);
        }
        memory_free(e->variants[v].overrides);
        memory_free(e->variants[v].label);
    }
    for (size_t r = 0; r < sweep->run_count; r++)
        memory_free(sweep->runs[r].config_json);
    char *const texts[] = {e->path, e->name, e->description, e->question, e->text, e->compare.metric, e->compare.split};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        memory_free(texts[i]);
    memory_free(sweep->datasets->tokenizer_image);
    memory_free(sweep->datasets);
    memory_free(sweep->choice);
    memory_free(sweep->runs);
    memory_free(e->variants);
    memory_free(e);
    memory_free(sweep);
}

static const char *const two_labels[] = {"baseline", "rmsnorm"};
static const int64_t three_seeds[] = {1, 2, 3};

static inline struct sweep *sweep_small(const char *name, const char *salt)
{
    return sweep_make(name, two_labels, 2, three_seeds, 3, salt);
}

static const struct run_environment environment = {"box", "Zen 3", "v3", "Haswell", "fp32", "abc123", "0.1.0"};

static inline struct step_record step_of(int64_t step, double loss)
{
    return (struct step_record){step, (step + 1) * 1024, loss, 1.5, 3e-4, 0.5 * (double)(step + 1), 77};
}

static inline struct evaluation_row evaluation_of(int64_t step, const char *split, double bits)
{
    struct evaluation_row row = {.step = step, .tokens = step * 1024, .seconds = 0.5 * (double)step};
    snprintf(row.split, sizeof row.split, "%s", split);
    row.record = (struct evaluation_record){.blocks = 8,
                                            .tokens = 1024,
                                            .bytes = 4096,
                                            .loss = bits * 2,
                                            .bits_per_byte = bits,
                                            .perplexity = exp(bits * 2)};
    return row;
}

/* Four steps, an evaluation before and after, the given end. */
static inline void run_through(struct database *db, const char *key, double bits, enum run_state state)
{
    struct error err;
    struct evaluation_row before = evaluation_of(0, "validation", 8), after = evaluation_of(4, "validation", bits);
    cr_assert(database_run_start(db, key, 0, &environment, NULL, 0, NULL, 0, &err), "%s", err.text);
    cr_assert(database_evaluation(db, key, &before, &err));
    for (int64_t s = 0; s < 4; s++) {
        bool last_bad = state == RUN_DIVERGED && s == 3;
        struct step_record record = step_of(s, last_bad ? (double)NAN : 5 - (double)s + bits);
        cr_assert(database_step(db, key, &record, &err), "%s", err.text);
    }
    if (state == RUN_FINISHED)
        cr_assert(database_evaluation(db, key, &after, &err));
    cr_assert(database_run_end(db, key, state, state == RUN_DIVERGED ? "loss is nan at step 3" : NULL, NULL, &err),
              "%s", err.text);
}

static inline void freeze(struct database *db, const struct sweep *sweep)
{
    struct error err;
    cr_assert(database_freeze(db, sweep, &err), "%s", err.text);
}

/* All rows of a query, columns by '|', rows by newline. */
static inline const char *rows_of(sqlite3 *db, const char *sql)
{
    static char text[8192];
    struct error err;
    bool row;
    size_t used = 0;
    text[0] = 0;
    sqlite3_stmt *s = sql_prepare(db, sql, NULL, &err);
    cr_assert(s, "%s", err.text);
    while (sql_step(s, &row, &err) && row)
        for (int c = 0; c < sqlite3_column_count(s); c++) {
            double number = sqlite3_column_double(s, c);
            bool is_real = sqlite3_column_type(s, c) == SQLITE_FLOAT;
            bool null = sqlite3_column_type(s, c) == SQLITE_NULL;
            char shown[64];
            snprintf(shown, sizeof shown, "%.4f", number);
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s",
                                     null      ? "null"
                                     : is_real ? shown
                                               : sql_text(s, c),
                                     c + 1 < sqlite3_column_count(s) ? "|" : "\n");
        }
    sqlite3_finalize(s);
    return text;
}

#define ROWS(db, sql, want)                                                                                            \
    do {                                                                                                               \
        const char *got_ = rows_of(db, sql);                                                                           \
        cr_assert(strcmp(got_, want) == 0, "%s gives\n%sexpected\n%s", sql, got_, want);                               \
    } while (0)

#endif
