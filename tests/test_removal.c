/* Hiding, collecting, backing up: what is thrown away and, above all, what is not. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "runner/backup.h"
#include "runner/disk.h"
#include "runner/file.h"
#include "runner/removal.h"
#include "runner/schema.h"
#include "tests/database_case.h"

static const char *const labels[] = {"baseline", "other"};
static const int64_t seeds[] = {1, 2};

static int64_t number(sqlite3 *db, const char *sql)
{
    int64_t value = -1;
    struct error err;
    cr_assert(sql_integer(db, &value, -1, sql, NULL, &err), "%s", err.text);
    return value;
}

static void freeze_two(struct fixture *f, const char *name, const char *salt)
{
    struct error err;
    struct sweep *sweep = sweep_make(name, labels, 2, seeds, 2, salt);
    cr_assert(database_freeze(f->db, sweep, &err), "%s", err.text);
    sweep_release(sweep);
}

Test(removal, a_run_of_two_experiments_is_hidden_only_when_both_are)
{
    struct fixture f;
    struct error err;
    int64_t runs;
    fixture_open(&f);
    freeze_two(&f, "first", "a");
    freeze_two(&f, "second", "a");
    sqlite3 *db = database_handle(f.db);
    cr_assert(sql_begin(db, 1, &err));
    cr_assert(removal_hide_experiment(db, database_find_experiment(db, "first", &err), &runs, &err), "%s", err.text);
    cr_expect_eq(runs, 0);
    cr_assert(removal_hide_experiment(db, database_find_experiment(db, "second", &err), &runs, &err), "%s", err.text);
    cr_expect_eq(runs, 4);
    cr_assert(sql_end(db, true, NULL, &err));
    cr_expect_eq(number(db, "select count(*) from runs"), 0);
    cr_expect_eq(number(db, "select count(*) from run_config"), 0);
    cr_expect_eq(number(db, "select count(*) from run"), 4);
    cr_expect_eq(number(db, "select count(*) from pragma_foreign_key_check"), 0);
    freeze_two(&f, "first", "a");
    cr_expect_eq(number(db, "select count(*) from runs"), 4, "planned again, it is back");
    cr_expect_eq(number(db, "select count(*) from run_config"), 4, "once, whatever has it");
    fixture_remove(&f);
}

Test(removal, counting_removes_nothing_and_collecting_keeps_every_run_that_is_planned)
{
    struct fixture f;
    struct error err;
    struct garbage_found found;
    int64_t runs;
    fixture_open(&f);
    freeze_two(&f, "kept", "a");
    freeze_two(&f, "hidden", "b");
    sqlite3 *db = database_handle(f.db);
    cr_assert(sql_begin(db, 1, &err));
    cr_assert(removal_hide_experiment(db, database_find_experiment(db, "hidden", &err), &runs, &err));
    cr_assert(sql_end(db, true, NULL, &err));
    cr_assert(garbage_collect(db, f.path, false, &found, &err), "%s", err.text);
    cr_expect_eq(found.count[GARBAGE_RUNS], 4);
    cr_expect_eq(number(db, "select count(*) from run"), 8);
    cr_assert(garbage_collect(db, f.path, true, &found, &err), "%s", err.text);
    cr_expect_eq(number(db, "select count(*) from run"), 4);
    cr_expect_eq(number(db, "select count(*) from runs where experiment = 'kept'"), 4);
    cr_expect_eq(number(db, "select count(*) from setting where run not in (select id from run)"), 0);
    cr_expect_eq(number(db, "select count(*) from pragma_foreign_key_check"), 0);
    fixture_remove(&f);
}

/* Another database in the folder, `other.db`, after the script; then garbage is collected, which leaves or takes the
 * checkpoint of a run that this one does not have. */
static bool collected_beside(const char *script, struct error *err)
{
    struct fixture f;
    struct garbage_found found;
    char other[128], checkpoints[128], folder[256], file[300];
    sqlite3 *db;
    fixture_open(&f);
    snprintf(other, sizeof other, "%s/other.db", f.folder);
    cr_assert_eq(sqlite3_open(other, &db), SQLITE_OK);
    cr_assert(sql_script(db, script, err), "%s", err->text);
    sqlite3_close(db);
    snprintf(checkpoints, sizeof checkpoints, "%s/checkpoints", f.folder);
    snprintf(folder, sizeof folder, "%s/%064d", checkpoints, 7);
    snprintf(file, sizeof file, "%s/final.safetensors", folder);
    cr_assert(folder_make(folder, err) && file_write(file, "x", 1, err), "%s", err->text);
    bool good = garbage_collect(database_handle(f.db), f.path, true, &found, err);
    cr_expect_eq(access(file, F_OK) == 0, !good, "what is left and what was said differ");
    cr_expect_eq(found.count[GARBAGE_CHECKPOINTS], good);
    unlink(file);
    rmdir(folder);
    rmdir(checkpoints);
    fixture_remove(&f);
    return good;
}

Test(removal, nothing_goes_that_a_database_in_the_folder_may_need_which_cannot_be_read)
{
    struct error err;
    char script[128];
    snprintf(script, sizeof script, "pragma application_id = %d; pragma user_version = 999; create table run (key)",
             SCHEMA_APPLICATION_ID);
    cr_expect_not(collected_beside(script, &err));
    cr_expect_not_null(strstr(err.text, "other.db"), "%s", err.text);
    cr_expect_not_null(strstr(err.text, "schema version 999"), "%s", err.text);
    cr_expect(collected_beside("pragma application_id = 5; create table run (key)", &err), "another program's: %s",
              err.text);
}

Test(removal, fresh_temporary_files_belong_to_somebody)
{
    struct fixture f;
    struct error err;
    struct garbage_found found;
    fixture_open(&f);
    char fresh[128], stale[128];
    snprintf(fresh, sizeof fresh, "%s/.tmp-1-0", f.folder);
    snprintf(stale, sizeof stale, "%s/.tmp-2-0", f.folder);
    cr_assert(file_write(fresh, "x", 1, &err) && file_write(stale, "xy", 2, &err), "%s", err.text);
    struct timespec old[2] = {{.tv_sec = time(NULL) - 120}, {.tv_sec = time(NULL) - 120}};
    cr_assert_eq(utimensat(AT_FDCWD, stale, old, 0), 0);
    cr_assert(garbage_collect(database_handle(f.db), f.path, true, &found, &err), "%s", err.text);
    cr_expect_eq(found.count[GARBAGE_TEMPORARY], 1);
    cr_expect_eq(found.bytes[GARBAGE_TEMPORARY], 2);
    cr_expect_eq(access(fresh, F_OK), 0);
    cr_expect_neq(access(stale, F_OK), 0);
    unlink(fresh);
    fixture_remove(&f);
}

Test(backup, a_copy_has_what_is_committed_and_overwrites_no_other)
{
    struct fixture f;
    struct error err;
    char *first, *second;
    fixture_open(&f);
    freeze_two(&f, "quick", "a");
    sqlite3 *db = database_handle(f.db);
    cr_assert(backup_make(db, f.path, 1, &first, &err), "%s", err.text);
    cr_assert(backup_make(db, f.path, 1, &second, &err), "%s", err.text);
    cr_expect(strstr(first, "results.db.version-1") && strstr(second, "results.db.version-1-2"), "%s %s", first,
              second);
    sqlite3 *copy = database_open_reader(first, &err);
    cr_assert(copy, "%s", err.text);
    cr_expect_eq(number(copy, "select count(*) from runs"), 4);
    sqlite3_close(copy);
    unlink(first);
    unlink(second);
    memory_free(first);
    memory_free(second);
    fixture_remove(&f);
}

Test(backup, without_a_copy_nothing_is_changed_and_no_part_of_one_is_left)
{
    struct fixture f;
    struct error err;
    char *copy, path[160];
    fixture_open(&f);
    snprintf(path, sizeof path, "%s/none/results.db", f.folder);
    cr_assert_not(backup_make(database_handle(f.db), path, 1, &copy, &err));
    cr_expect_null(copy);
    cr_expect_not_null(strstr(err.text, "the database is not changed"), "%s", err.text);
    fixture_remove(&f);
}

/* A file as the first version of the schema made it. */
static void old_database_make(const char *path)
{
    sqlite3 *db;
    struct error err;
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    cr_assert(sql_script(db, schema_migrations[0], &err) && sql_script(db, "pragma user_version = 1", &err) &&
                  sql_script(db, "pragma application_id = 0x72756e72", &err),
              "%s", err.text);
    sqlite3_close(db);
}

Test(backup, an_older_database_is_kept_beside_the_one_that_was_brought_up_to_date)
{
    char folder[] = "/tmp/runner-old-XXXXXX", path[64], copy[80];
    struct error err;
    size_t version;
    cr_assert(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/old.db", folder);
    snprintf(copy, sizeof copy, "%s.version-1", path);
    old_database_make(path);
    struct database *database = database_open(path, NULL, &err);
    cr_assert(database, "%s", err.text);
    cr_assert(schema_check(database_handle(database), schema_version, &version, &err));
    cr_expect_eq(version, schema_version);
    cr_assert(database_close(database, &err), "%s", err.text);
    cr_expect_eq(access(copy, F_OK) == 0, schema_version > 1, "a copy is made when there is something to bring up");
    unlink(copy);
    unlink(path);
    cr_expect_eq(rmdir(folder), 0);
}

Test(disk, a_refusal_names_what_is_needed_and_what_is_free)
{
    struct error err;
    cr_expect(disk_fits("results", 1000, 1000, &err));
    cr_expect_not(disk_fits("results", 12345678901, 4321000, &err));
    cr_expect_not_null(strstr(err.text, "needs about 12.3 GB of disk and 'results' has 4.3 MB free"), "%s", err.text);
}

Test(disk, what_is_free_is_asked_of_the_system)
{
    struct error err = {0};
    uint64_t bytes = 0;
    cr_assert(disk_free("/tmp", &bytes, &err), "%s", err.text);
    cr_expect_gt(bytes, 0);
    cr_expect_not(disk_free("/tmp/there-is-no-such-folder", &bytes, &err));
    cr_expect(disk_has_room("/tmp", 1, &err));
    cr_expect_not(disk_has_room("/tmp", UINT64_MAX - 1, &err));
}

Test(database, one_that_could_not_be_made_to_its_end_is_made_the_next_time)
{
    struct fixture f;
    struct error err;
    fixture_open(&f);
    fixture_close(&f);
    unlink(f.path);
    sqlite3 *db;
    cr_assert_eq(sqlite3_open(f.path, &db), SQLITE_OK);
    cr_assert(sql_script(db, "create table x (y); drop table x", &err), "%s", err.text);
    sqlite3_close(db);
    cr_expect(database_path_check(f.path, &err), "%s", err.text);
    f.db = database_open(f.path, NULL, &err);
    cr_assert(f.db, "%s", err.text);
    cr_expect_eq(number(database_handle(f.db), "select count(*) from knobs") > 0, true);
    fixture_remove(&f);
}
