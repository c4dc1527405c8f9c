/* A database with tables named and shaped as the public views that plots/ reads, and the figures drawn from it. */
#ifndef TESTS_PLOT_CASE_H
#define TESTS_PLOT_CASE_H

#include <criterion/criterion.h>
#include <dirent.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/file.h"
#include "runner/gnuplot.h"
#include "runner/plot.h"
#include "runner/plot_data.h"
#include "runner/plot_figure.h"
#include "runner/plot_fonts.h"
#include "runner/plot_text.h"
#include "tests/folder_case.h"

struct fixture {
    sqlite3 *db;
    char root[64], folder[256], figures[128];
    struct plot_request request;
    struct error err;
    size_t drawn;
};

static inline void statement_run(sqlite3 *db, const char *sql, const char *text1, const char *text2, const char *text3,
                                 double number1, double number2, double number3)
{
    sqlite3_stmt *statement;
    cr_assert_eq(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK, "%s", sqlite3_errmsg(db));
    const char *texts[] = {text1, text2, text3};
    const double numbers[] = {number1, number2, number3};
    for (int i = 0; i < 3; i++) {
        if (i + 1 <= sqlite3_bind_parameter_count(statement) && texts[i])
            sqlite3_bind_text(statement, i + 1, texts[i], -1, SQLITE_STATIC);
        if (i + 4 <= sqlite3_bind_parameter_count(statement))
            sqlite3_bind_double(statement, i + 4, numbers[i]);
    }
    cr_assert_eq(sqlite3_step(statement), SQLITE_DONE, "%s", sqlite3_errmsg(db));
    sqlite3_finalize(statement);
}

static inline void fixture_open(struct fixture *f)
{
    *f = (struct fixture){0};
    snprintf(f->root, sizeof f->root, "/tmp/test_plot.XXXXXX");
    cr_assert(mkdtemp(f->root));
    snprintf(f->folder, sizeof f->folder, "%s/it's \"a\"; `touch PWNED` folder", f->root);
    snprintf(f->figures, sizeof f->figures, "%s/figures", f->root);
    cr_assert_eq(sqlite3_open(":memory:", &f->db), SQLITE_OK);
    static const char schema[] =
        "create table experiments(experiment, description, margin default 0.01, alpha default 0.05);"
        "create table variants(experiment, variant, position, baseline);"
        "create table runs(experiment, variant, seed, state, steps, config, flops_per_token default 6000, "
        "started_at, ended_at);"
        "create table curves(experiment, variant, seed, step, tokens, train_seconds, split, metric, value);";
    cr_assert_eq(sqlite3_exec(f->db, schema, NULL, NULL, NULL), SQLITE_OK);
    f->request = (struct plot_request){.database_path = "unused", .experiment = "norms", .out_folder = f->figures};
}

static inline void fixture_close(struct fixture *f)
{
    sqlite3_close(f->db);
    folder_remove(f->root);
}

static inline void experiment_add(struct fixture *f, const char *name, const char *description)
{
    statement_run(f->db, "insert into experiments(experiment, description) values (?1, ?2)", name, description, NULL, 0,
                  0, 0);
}

static inline void variant_add(struct fixture *f, const char *label, int position)
{
    statement_run(f->db, "insert into variants values (?1, ?2, ?4, ?4 = 0)", "norms", label, NULL, position, 0, 0);
}

static inline void run_add(struct fixture *f, const char *label, int seed, const char *state, int steps)
{
    statement_run(f->db,
                  "insert into runs(experiment, variant, seed, state, steps) values (?1, ?2, cast(?4 as integer), ?3, "
                  "cast(?5 as integer))",
                  "norms", label, state, seed, steps, 0);
}

/* metric: "train/loss" or "validation/bits_per_byte". */
static inline void value_add(struct fixture *f, const char *label, int seed, int step, const char *metric, double value)
{
    statement_run(f->db,
                  "insert into curves values ('norms', ?2, cast(?4 as integer), cast(?5 as integer), 64 * ?5, ?5 / 2.0,"
                  " substr(?3, 1, instr(?3, '/') - 1), substr(?3, instr(?3, '/') + 1), ?6)",
                  "norms", label, metric, seed, step, value);
}

/* Two variants, three seeds, evaluations at 0, 10, 20: values chosen by hand. */
static inline void norms_add(struct fixture *f)
{
    static const double finals[2][3] = {{2.10, 2.14, 2.12}, {2.50, 2.60, 2.55}};
    static const char *const labels[] = {"pre", "post"};
    experiment_add(f, "norms", "Where the norm goes");
    for (int v = 0; v < 2; v++) {
        variant_add(f, labels[v], v);
        for (int s = 0; s < 3; s++) {
            run_add(f, labels[v], s, "finished", 20);
            for (int step = 0; step <= 20; step += 10) {
                double value = finals[v][s] + (20 - step) * 0.25;
                value_add(f, labels[v], s, step, "validation/bits_per_byte", value);
                value_add(f, labels[v], s, step, "validation/loss", value);
            }
            for (int step = 0; step < 20; step++)
                value_add(f, labels[v], s, step, "train/loss", 8 - 0.2 * step);
        }
    }
}

static inline enum plot_result draw(struct fixture *f)
{
    return plots_draw_open(f->db, &f->request, &f->drawn, &f->err);
}

static inline void draw_all(struct fixture *f)
{
    enum plot_result result = draw(f);
    cr_assert_eq(result, PLOT_DRAWN, "%s", f->err.text);
}

static inline bool figure_exists(const struct fixture *f, const char *name)
{
    char *path = path_join(f->request.out_folder, name);
    struct stat status;
    bool exists = stat(path, &status) == 0 && status.st_size > 0;
    memory_free(path);
    return exists;
}

/* The file's text; caller frees it. */
static inline char *figure_text(const struct fixture *f, const char *name, size_t *size)
{
    struct error err;
    static char *text; /* gcc 12 takes what is read into a local for its address, and that for dangling */
    char *path = path_join(f->request.out_folder, name);
    size_t bytes;
    cr_assert(file_read(path, 1 << 24, &text, size ? size : &bytes, &err), "%s", err.text);
    memory_free(path);
    return text;
}

static inline bool figure_has(const struct fixture *f, const char *name, const char *wanted)
{
    char *text = figure_text(f, name, NULL);
    bool has = strstr(text, wanted) != NULL;
    memory_free(text);
    return has;
}

static inline size_t files_with(const char *path, const char *part)
{
    size_t count = 0;
    DIR *files = opendir(path);
    for (struct dirent *entry; files && (entry = readdir(files));)
        count += strstr(entry->d_name, part) ? 1 : 0;
    if (files)
        closedir(files);
    return count;
}

static inline size_t occurrences(const char *text, const char *part)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, part)); at++)
        count++;
    return count;
}

#endif
