/* Runs found by prefix and name, and that no query of ours scans the curves. */
#include "runner/database.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/query.h"
#include "runner/schema.h"
#include "runner/sql.h"
#include "tests/database_case.h"

/* ---- plans ---- */

/* "SCAN s" over an alias counts as well: every row of the plan that scans names step or evaluation by alias s. */
Test(database, no_query_of_ours_scans_the_curves)
{
    struct fixture f;
    fixture_open(&f);
    struct error err;
    static const char *const public_queries[] = {
        "select * from runs where experiment = 'x'",
        "select * from runs where run_key = 'x'",
        "select count(*) from runs",
        "select * from curves where experiment = 'x' and variant = 'y' and seed = 1 and split = 'train' and metric = "
        "'loss' order by step",
        "select step, avg(value) from curves where experiment = 'x' and split = 'validation' and metric = 'loss' group "
        "by step",
        "select * from losses where experiment = 'x'",
        "select * from comparisons where experiment = 'x'",
    };
    size_t total = QUERY_COUNT + sizeof public_queries / sizeof public_queries[0];
    for (size_t i = 0; i < total; i++) {
        char sql[4096];
        const char *query = i < QUERY_COUNT ? query_text((enum query)i) : public_queries[i - QUERY_COUNT];
        snprintf(sql, sizeof sql, "explain query plan %s", query);
        sqlite3_stmt *s = sql_prepare(database_handle(f.db), sql, NULL, &err);
        cr_assert(s, "%s: %s", query, err.text);
        bool row;
        size_t lines = 0;
        for (; sql_step(s, &row, &err) && row; lines++) {
            const char *detail = sql_text(s, 3);
            bool scan = strncmp(detail, "SCAN ", 5) == 0;
            cr_assert_not(scan && (strcmp(detail + 5, "s") == 0 || strncmp(detail + 5, "s ", 2) == 0 ||
                                   strncmp(detail + 5, "step", 4) == 0 || strncmp(detail + 5, "evaluation", 10) == 0),
                          "%s: %s", query, detail);
        }
        cr_assert(lines > 0);
        sqlite3_finalize(s);
    }
    fixture_remove(&f);
}

/* ---- finding ---- */

Test(database, runs_are_found_by_prefix_and_by_name)
{
    struct fixture f;
    fixture_open(&f);
    struct error err;
    static const char *const labels[] = {"baseline", "a/b"};
    struct sweep *sweep = sweep_make("quick", labels, 2, three_seeds, 3, "a");
    freeze(f.db, sweep);
    sqlite3 *db = database_handle(f.db);
    char key[65], prefix[9];
    snprintf(prefix, sizeof prefix, "%.8s", sweep->runs[2].key);
    cr_assert(database_find_run(db, prefix, key, &err), "%s", err.text);
    cr_assert_str_eq(key, sweep->runs[2].key);
    cr_assert(database_find_run(db, sweep->runs[2].key, key, &err));
    cr_assert(database_find_run(db, "quick/a/b/2", key, &err), "%s", err.text);
    cr_assert_str_eq(key, sweep->runs[4].key);

    static const char *const wrong[][2] = {
        {"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0", "expected the first 1 to 64 hexadecimal"},
        {"", "expected the first 1 to 64 hexadecimal digits"},
        {"xyzw", "experiment/variant/seed"},
        {"ffffffffffffffff", "no run's key begins with"},
        {"quik/baseline/1", "did you mean 'quick'"},
        {"quick/baselin/1", "did you mean 'baseline'"},
        {"quick/baseline/9", "it has '1', '2', '3'"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        cr_assert_not(database_find_run(db, wrong[i][0], key, &err));
        cr_assert(strstr(err.text, wrong[i][1]), "%s: %s", wrong[i][0], err.text);
    }
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(database, an_ambiguous_prefix_names_candidates)
{
    struct fixture f;
    fixture_open(&f);
    struct error err;
    struct sweep *sweep = sweep_small("quick", "a");
    snprintf(sweep->runs[0].key, 65, "abcd1%059d", 0);
    snprintf(sweep->runs[1].key, 65, "abcd2%059d", 0);
    freeze(f.db, sweep);
    char key[65];
    cr_assert_not(database_find_run(database_handle(f.db), "abcd", key, &err));
    cr_assert(strstr(err.text, "more than one run's key: abcd10000000, abcd20000000; give more"), "%s", err.text);
    cr_assert(database_find_run(database_handle(f.db), "abcd2", key, &err));
    cr_assert_not(database_find_run(database_handle(f.db), "a", key, &err));
    cr_assert(strstr(err.text, "'a' is the beginning of more than one run's key"), "%s", err.text);
    cr_assert_not(sql_has_failed(database_handle(f.db)));
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(database, one_digit_will_do_where_it_is_one_run)
{
    struct fixture f;
    fixture_open(&f);
    struct error err;
    struct sweep *sweep = sweep_small("quick", "a");
    for (int i = 0; i < 6; i++)
        snprintf(sweep->runs[i].key, 65, "%d%063d", i, 0);
    freeze(f.db, sweep);
    char key[65];
    cr_assert(database_find_run(database_handle(f.db), "3", key, &err), "%s", err.text);
    cr_assert_str_eq(key, sweep->runs[3].key);
    sweep_release(sweep);
    fixture_remove(&f);
}

/* Overwrites the first page of an index. */
static void index_damage(const struct fixture *f, const char *name)
{
    struct error err;
    char page[4096];
    int64_t root = 0;
    sqlite3 *db;
    memset(page, 'x', sizeof page);
    cr_assert_eq(sqlite3_open(f->path, &db), SQLITE_OK);
    cr_assert(sql_integer(db, &root, 0, "select rootpage from sqlite_schema where name = ?", "t", &err, name) && root);
    sqlite3_close(db);
    int fd = open(f->path, O_WRONLY);
    cr_assert_eq(pwrite(fd, page, sizeof page, (root - 1) * (off_t)sizeof page), sizeof page);
    close(fd);
}

Test(database, a_database_that_cannot_be_read_is_not_one_without_the_run)
{
    static const char *const names[][2] = {
        {"sqlite_autoindex_run_1", "abcd"},
        {"sqlite_autoindex_experiment_1", "quick/baseline/1"},
        {"sqlite_autoindex_variant_1", "quick/none/1"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct fixture f;
        fixture_open(&f);
        struct error err;
        char key[65];
        struct sweep *sweep = sweep_small("quick", "a");
        freeze(f.db, sweep);
        sweep_release(sweep);
        fixture_close(&f);
        index_damage(&f, names[i][0]);
        sqlite3 *db = database_open_reader(f.path, &err);
        cr_assert(db, "%s", err.text);
        cr_assert_not(database_find_run(db, names[i][1], key, &err));
        cr_assert(strstr(err.text, "malformed"), "%s: %s", names[i][1], err.text);
        cr_assert(sql_has_failed(db));
        sqlite3_close(db);
        fixture_remove(&f);
    }
}

Test(database, the_tokenizer_and_configuration_of_a_run_come_back)
{
    struct fixture f;
    fixture_open(&f);
    struct error err;
    struct sweep *sweep = sweep_small("quick", "a");
    freeze(f.db, sweep);
    size_t size;
    void *image = database_tokenizer(database_handle(f.db), sweep->runs[0].key, &size, &err);
    cr_assert(image && size == 11 && memcmp(image, "image\0bytes", 11) == 0);
    memory_free(image);
    char *config = database_run_config(database_handle(f.db), sweep->runs[0].key, &err);
    cr_assert_str_eq(config, sweep->runs[0].config_json);
    memory_free(config);
    cr_assert_null(database_tokenizer(database_handle(f.db), "beef", &size, &err));
    cr_assert(strstr(err.text, "no run beef"));
    ROWS(database_handle(f.db), "select count(*) from tokenizer", "1\n");
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(database, hostile_names_are_only_names)
{
    struct fixture f;
    fixture_open(&f);
    static const char *const labels[] = {"baseline", "'); drop table run; --", "`touch x` $(x) %n \xff"};
    struct sweep *sweep = sweep_make("q'; delete from run; --", labels, 3, three_seeds, 1, "a");
    freeze(f.db, sweep);
    for (size_t r = 0; r < 3; r++)
        run_through(f.db, sweep->runs[r].key, 2.0, RUN_FINISHED);
    ROWS(database_handle(f.db), "select count(*) from runs where state = 'finished'", "3\n");
    sweep_release(sweep);
    fixture_remove(&f);
}
