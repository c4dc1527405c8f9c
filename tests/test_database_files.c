/* Files that are no results.db, full disks, and files of other versions. */
#include <sys/stat.h>

#include "runner/schema.h"
#include "tests/database_case.h"

/* ---- what is refused ---- */

static void refused(const char *path, const char *part)
{
    struct error err = {""};
    cr_assert_null(database_open(path, NULL, &err));
    cr_assert(strstr(err.text, part) && strstr(err.text, path), "%s", err.text);
    err.text[0] = 0;
    cr_assert_null(database_open_reader(path, &err));
    cr_assert(strstr(err.text, path), "%s", err.text);
}

static void other_file(const struct fixture *f, char path[160], const char *text)
{
    snprintf(path, 160, "%s/other.db", f->folder);
    FILE *out = fopen(path, "w");
    fputs(text, out);
    fclose(out);
}

static void other_database(const struct fixture *f, char path[160], const char *script)
{
    sqlite3 *db;
    struct error err;
    snprintf(path, 160, "%s/other.db", f->folder);
    unlink(path);
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    cr_assert(sql_script(db, script, &err), "%s", err.text);
    sqlite3_close(db);
}

Test(database, files_that_are_not_ours_are_refused_and_left_alone)
{
    struct fixture f;
    char path[160];
    fixture_open(&f);
    fixture_close(&f);
    other_file(&f, path, "This is a letter, not a database, and long enough to look like a header of one.\n");
    struct stat before, after;
    stat(path, &before);
    refused(path, "file is not a database");
    stat(path, &after);
    cr_assert_eq(before.st_size, after.st_size);
    other_database(&f, path, "create table t (x)");
    refused(path, "another program (application id 0)");
    other_database(&f, path, "pragma application_id = 42; create table t (x)");
    refused(path, "another program (application id 42)");
    other_database(&f, path, "pragma application_id = 1920298610; pragma user_version = 99; create table t (x)");
    refused(path, "schema version 99 and this runner knows versions 1 to ");
    refused(f.folder, "is a folder: expected a database file");
    snprintf(path, sizeof path, "%s/results.db/x.db", f.folder);
    refused(path, "");
    fixture_remove(&f);
}

Test(database, a_reader_says_how_a_missing_database_is_made)
{
    struct error err;
    cr_assert_null(database_open_reader("/tmp/runner-there-is-none/results.db", &err));
    cr_assert_str_eq(err.text,
                     "there is no database '/tmp/runner-there-is-none/results.db': `runner run FILE` makes one");
}

Test(database, names_that_sqlite_or_a_uri_would_read_are_plain_names)
{
    struct fixture f;
    struct error err;
    fixture_open(&f);
    fixture_close(&f);
    char path[160];
    snprintf(path, sizeof path, "/%s/a?mode=memory#%%20 ' \".db", f.folder); /* a URI's "//" would name a host */
    struct database *db = database_open(path, NULL, &err);
    cr_assert(db, "%s", err.text);
    cr_assert(database_close(db, &err));
    sqlite3 *reader = database_open_reader(path, &err);
    cr_assert(reader, "%s", err.text);
    sqlite3_close(reader);
    sqlite3 *shard = database_open_source(path, true, &err);
    cr_assert(shard, "%s", err.text);
    sqlite3_close(shard);
    cr_assert_eq(unlink(path), 0);
    fixture_remove(&f);
}

/* SQLite's own limit stands in for a full disk: the same code, SQLITE_FULL. */
Test(database, a_full_disk_is_told_and_nothing_is_lost_once_there_is_room)
{
    struct fixture f;
    fixture_open(&f);
    struct sweep *sweep = sweep_small("quick", "a");
    freeze(f.db, sweep);
    struct error err = {""};
    const char *key = sweep->runs[0].key;
    cr_assert(database_run_start(f.db, key, 0, &environment, NULL, 0, NULL, 0, &err));
    char sql[64];
    int64_t pages;
    cr_assert(sql_integer(database_handle(f.db), &pages, 0, "pragma page_count", NULL, &err));
    snprintf(sql, sizeof sql, "pragma max_page_count = %" PRId64, pages);
    rows_of(database_handle(f.db), sql);
    for (int64_t s = 0; s < 5000; s++) {
        struct step_record record = step_of(s, 2);
        (void)database_step(f.db, key, &record, &err);
    }
    cr_assert_not(database_flush(f.db, 1, &err));
    cr_assert(strstr(err.text, "database or disk is full") && strstr(err.text, f.path), "%s", err.text);
    ROWS(database_handle(f.db), "select count(*) from step", "0\n");
    rows_of(database_handle(f.db), "pragma max_page_count = 1000000");
    cr_assert(database_flush(f.db, 1, &err), "%s", err.text);
    ROWS(database_handle(f.db), "select count(*) from step", "5000\n");
    sweep_release(sweep);
    fixture_remove(&f);
}

/* ---- versions ---- */

enum { MIGRATIONS_MOST = 16 };

/* Those there are and one more. Returns their number. */
static size_t migrations_with(const char *next, const char *newer[MIGRATIONS_MOST])
{
    cr_assert_lt(schema_version, MIGRATIONS_MOST);
    memcpy(newer, schema_migrations, schema_version * sizeof *newer);
    newer[schema_version] = next;
    return schema_version + 1;
}

Test(database, an_older_database_is_migrated_and_gets_new_views)
{
    struct fixture f;
    fixture_open(&f);
    struct error err;
    struct sweep *sweep = sweep_small("quick", "a");
    freeze(f.db, sweep);
    sqlite3 *db = database_handle(f.db);
    const char *newer[MIGRATIONS_MOST];
    char text[80];
    size_t next = migrations_with("alter table run add column colour text;", newer);
    cr_assert(sql_script(db, "drop view losses; create view runs_old as select 1", &err));
    cr_assert(sql_begin(db, 1, &err) && sql_end(db, schema_update(db, newer, next, &err), NULL, &err), "%s", err.text);
    snprintf(text, sizeof text, "%zu\n", next);
    ROWS(db, "pragma user_version", text);
    ROWS(db, "select count(*), count(colour) from run", "6|0\n");
    ROWS(db, "select group_concat(name, ' ') from (select name from sqlite_schema where type = 'view' order by 1)",
         "comparisons curves experiments knobs losses run_config runs variants\n");
    fixture_close(&f);
    snprintf(text, sizeof text, "schema version %zu and this runner knows versions 1 to %zu", next, schema_version);
    refused(f.path, text);
    sweep_release(sweep);
    fixture_remove(&f);
}

/* As the first version left it: read as if it were of today, and left as it is. */
Test(database, readers_read_an_older_database_and_leave_it_as_it_is)
{
    struct fixture f;
    fixture_open(&f);
    struct error err;
    struct sweep *sweep = sweep_small("quick", "a");
    freeze(f.db, sweep);
    run_through(f.db, sweep->runs[0].key, 2.5, RUN_FINISHED);
    cr_assert(database_flush(f.db, 1, &err));
    cr_assert(sql_script(database_handle(f.db),
                         "drop view runs; alter table run drop column floor; alter table run drop column earlier_cpus; "
                         "alter table experiment drop column choices; pragma user_version = 1",
                         &err),
              "%s", err.text);
    fixture_close(&f);
    sqlite3 *reader = database_open_reader(f.path, &err), *plain;
    cr_assert(reader, "%s", err.text);
    ROWS(reader, "select count(*), sum(state = 'finished') from runs", "6|1\n");
    sqlite3_close(reader);
    cr_assert_eq(sqlite3_open_v2(f.path, &plain, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    ROWS(plain, "pragma user_version", "1\n");
    sqlite3_close(plain);
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(database, a_migration_that_fails_changes_nothing)
{
    struct fixture f;
    fixture_open(&f);
    struct error err;
    sqlite3 *db = database_handle(f.db);
    const char *newer[MIGRATIONS_MOST];
    char text[32];
    size_t next = migrations_with("create table extra (x); alter table none add column y;", newer);
    cr_assert(sql_begin(db, 1, &err));
    cr_assert_not(sql_end(db, schema_update(db, newer, next, &err), NULL, &err));
    snprintf(text, sizeof text, "schema version %zu", next);
    cr_assert(strstr(err.text, text), "%s", err.text);
    snprintf(text, sizeof text, "%zu\n", schema_version);
    ROWS(db, "pragma user_version", text);
    ROWS(db, "select count(*) from sqlite_schema where name = 'extra'", "0\n");
    fixture_remove(&f);
}
