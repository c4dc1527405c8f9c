/* One results.db and several processes: who may write, who waits, and what a killed one loses. */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "runner/child.h"
#include "runner/clock.h"
#include "runner/file.h"
#include "runner/lockfile.h"
#include "tests/database_case.h"

static void nap(double seconds)
{
    struct timespec pause = {(time_t)seconds, (long)(1e9 * (seconds - floor(seconds)))};
    nanosleep(&pause, NULL);
}

/* ---- other processes ---- */

Test(database, a_second_writer_is_refused_by_the_name_of_the_first)
{
    struct fixture f;
    fixture_open(&f);
    fixture_close(&f);
    struct error err;
    struct database_options options = {.command = "runner run quick.yaml"};
    f.db = database_open(f.path, &options, &err);
    char mine[64], holder[256];
    snprintf(mine, sizeof mine, "pid %ld on ", (long)getpid());
    cr_assert_null(database_open(f.path, NULL, &err));
    cr_assert(strstr(err.text, mine) && strstr(err.text, "runner run quick.yaml"), "%s", err.text);
    cr_assert(database_lock_holder(f.path, holder, sizeof holder));
    cr_assert(strstr(holder, mine) == holder, "%s", holder);
    fixture_close(&f);
    cr_assert_not(database_lock_holder(f.path, holder, sizeof holder));
    fixture_remove(&f);
}

Test(database, a_stale_lock_file_is_no_lock)
{
    struct fixture f;
    fixture_open(&f);
    fixture_close(&f);
    char path[160], holder[64], host[256] = "";
    snprintf(path, sizeof path, "%s.lock", f.path);
    gethostname(host, sizeof host - 1);
    FILE *stale = fopen(path, "w");
    fprintf(stale, "pid 1 on %s: gone\n", host);
    fclose(stale);
    struct error err;
    cr_assert_not(database_lock_holder(f.path, holder, sizeof holder));
    f.db = database_open(f.path, NULL, &err);
    cr_assert(f.db, "%s", err.text);
    fixture_remove(&f);
}

/* Locks of some network file systems do not reach other machines: what is written in the file does. */
Test(database, a_holder_on_another_machine_counts_until_it_gives_no_sign_of_life)
{
    struct fixture f;
    fixture_open(&f);
    fixture_close(&f);
    struct error err;
    char lock[160], holder[LOCKFILE_HOLDER_SIZE];
    snprintf(lock, sizeof lock, "%s.lock", f.path);
    static const char text[] = "pid 77 on login-b.example: runner run grid.yaml\n";
    cr_assert(file_write(lock, text, strlen(text), &err), "%s", err.text);
    cr_assert(database_lock_holder(f.path, holder, sizeof holder));
    cr_assert_str_eq(holder, "pid 77 on login-b.example: runner run grid.yaml");
    struct database_options options = {.wait_seconds = 0.2};
    cr_assert_null(database_open(f.path, &options, &err));
    cr_assert(strstr(err.text, "held by pid 77 on login-b.example"), "%s", err.text);
    struct timespec then[2] = {{.tv_sec = time(NULL) - LOCKFILE_FRESH_SECONDS}};
    then[1] = then[0];
    cr_assert_eq(utimensat(AT_FDCWD, lock, then, 0), 0);
    cr_assert_not(database_lock_holder(f.path, holder, sizeof holder));
    f.db = database_open(f.path, &options, &err);
    cr_assert(f.db, "%s", err.text);
    /* And we give ours. */
    struct stat status;
    cr_assert_eq(utimensat(AT_FDCWD, lock, then, 0), 0);
    cr_assert(database_pump(f.db, &err), "%s", err.text);
    cr_assert_eq(stat(lock, &status), 0);
    cr_assert_lt(time(NULL) - status.st_mtime, LOCKFILE_RENEW_SECONDS);
    fixture_remove(&f);
}

/* Makes the database's lock file an hour old; wait() then gives a sign of life. */
static void sign_of_life_check(const struct fixture *f, void (*wait)(void), const char *what)
{
    char lock[160];
    struct stat status;
    struct timespec then[2] = {{.tv_sec = time(NULL) - 3600}, {.tv_sec = time(NULL) - 3600}};
    snprintf(lock, sizeof lock, "%s.lock", f->path);
    cr_assert_eq(utimensat(AT_FDCWD, lock, then, 0), 0);
    wait();
    cr_assert_eq(stat(lock, &status), 0);
    cr_expect_lt(time(NULL) - status.st_mtime, LOCKFILE_RENEW_SECONDS, "none: %s", what);
}

static void helper_wait(void)
{
    char sleep[] = "sleep", seconds[] = "0.1", text[8];
    char *const argv[] = {sleep, seconds, NULL};
    struct child_output out = {.text = text, .size = sizeof text};
    struct error err = {""};
    int code;
    cr_assert_eq(child_run(NULL, argv, 20, &out, &code, &err), CHILD_ENDED, "%s", err.text);
}

static void pause_wait(void)
{
    lockfile_pause(0.01);
}

Test(database, a_holder_that_waits_for_a_helper_or_pauses_gives_signs_of_life)
{
    struct fixture f, other;
    fixture_open(&f);
    fixture_open(&other);
    sign_of_life_check(&f, helper_wait, "a helper");
    sign_of_life_check(&f, pause_wait, "a pause");
    sign_of_life_check(&other, pause_wait, "the second lock");
    fixture_remove(&other);
    sign_of_life_check(&f, pause_wait, "the lock that is left");
    fixture_remove(&f);
    lockfile_pause(0.01);
}

/* Four processes, each told to wait: all get it, one after the other, and each adds its own row. */
Test(database, four_processes_take_turns)
{
    struct fixture f;
    fixture_open(&f);
    fixture_close(&f);
    pid_t children[4];
    for (int i = 0; i < 4; i++)
        if ((children[i] = fork()) == 0) {
            struct error err;
            struct database_options options = {.wait_seconds = 30};
            struct database *db = database_open(f.path, &options, &err);
            char sql[128];
            snprintf(sql, sizeof sql, "insert into tokenizer (hash, image) values ('%d', x'00')", i);
            bool ok = db && sql_script(database_handle(db), sql, &err);
            nap(0.05);
            ok = database_close(db, &err) && ok;
            _exit(ok ? 0 : 1);
        }
    for (int i = 0; i < 4; i++) {
        int status;
        cr_assert_eq(waitpid(children[i], &status, 0), children[i]);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    struct error err;
    sqlite3 *reader = database_open_reader(f.path, &err);
    ROWS(reader, "select count(*) from tokenizer", "4\n");
    sqlite3_close(reader);
    fixture_remove(&f);
}

Test(database, of_four_that_do_not_wait_one_wins)
{
    struct fixture f;
    fixture_open(&f);
    fixture_close(&f);
    int gate[2], hold[2];
    cr_assert(pipe(gate) == 0 && pipe(hold) == 0);
    pid_t children[4];
    for (int i = 0; i < 4; i++)
        if ((children[i] = fork()) == 0) {
            char byte;
            struct error err = {""};
            close(gate[1]);
            close(hold[0]);
            ssize_t ended = read(gate[0], &byte, 1); /* all start when the parent closes its end */
            struct database *db = database_open(f.path, NULL, &err);
            if (!db)
                _exit(strstr(err.text, "is held by") ? 1 : 2);
            nap(0.5); /* longer than the others need to find out */
            _exit(database_close(db, &err) && ended == 0 ? 0 : 2);
        }
    close(gate[1]);
    int counts[3] = {0};
    for (int i = 0; i < 4; i++) {
        int status;
        waitpid(children[i], &status, 0);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) < 3);
        counts[WEXITSTATUS(status)]++;
    }
    cr_assert(counts[0] == 1 && counts[1] == 3, "%d won, %d were refused", counts[0], counts[1]);
    fixture_remove(&f);
}

/* A step may meet one attempt to commit: PENDING_PATIENCE is 40 ms; 0.3 s leaves room for a busy machine. */
static double slowest_step(struct database *db, const char *key, double seconds)
{
    struct error err;
    double slowest = 0, end = seconds_now() + seconds;
    for (int64_t s = 0; seconds_now() < end; s++) {
        struct step_record record = step_of(s, 2);
        double start = seconds_now();
        cr_assert(database_step(db, key, &record, &err), "%s", err.text);
        slowest = fmax(slowest, seconds_now() - start);
        nap(0.002);
    }
    return slowest;
}

Test(database, a_foreign_writer_neither_stops_training_nor_costs_a_row)
{
    struct fixture f;
    fixture_open(&f);
    struct sweep *sweep = sweep_small("quick", "a");
    freeze(f.db, sweep);
    struct error err;
    const char *key = sweep->runs[0].key;
    cr_assert(database_run_start(f.db, key, 0, &environment, NULL, 0, NULL, 0, &err));
    sqlite3 *other;
    cr_assert_eq(sqlite3_open(f.path, &other), SQLITE_OK);
    cr_assert(sql_script(other, "begin immediate; insert into tokenizer (hash, image) values ('x', x'00')", &err));
    double slowest = slowest_step(f.db, key, 2.5);
    cr_assert(slowest < 0.3, "a step took %.3f s", slowest);
    double start = seconds_now();
    cr_assert(database_run_end(f.db, key, RUN_FINISHED, NULL, NULL, &err), "%s", err.text);
    cr_assert(seconds_now() - start < 0.3);
    cr_assert_not(database_flush(f.db, 0.1, &err));
    cr_assert(strstr(err.text, "rows are not stored") && strstr(err.text, f.path), "%s", err.text);
    ROWS(database_handle(f.db), "select count(*) from step", "0\n");
    cr_assert(sql_script(other, "commit", &err));
    sqlite3_close(other);
    cr_assert(database_flush(f.db, 10, &err), "%s", err.text);
    ROWS(database_handle(f.db), "select count(*) = max(step) + 1, count(*) > 100 from step", "1|1\n");
    ROWS(database_handle(f.db), "select count(*) from runs where state = 'finished'", "1\n");
    sweep_release(sweep);
    fixture_remove(&f);
}

static void reader_in_the_way(bool no_wal)
{
    struct fixture f;
    fixture_open(&f);
    fixture_close(&f);
    struct error err;
    struct database_options options = {.no_wal = no_wal};
    f.db = database_open(f.path, &options, &err);
    cr_assert(f.db, "%s", err.text);
    ROWS(database_handle(f.db), "pragma journal_mode", no_wal ? "delete\n" : "wal\n");
    struct sweep *sweep = sweep_small("quick", "a");
    freeze(f.db, sweep);
    const char *key = sweep->runs[0].key;
    cr_assert(database_run_start(f.db, key, 0, &environment, NULL, 0, NULL, 0, &err));
    sqlite3 *reader = database_open_reader(f.path, &err);
    cr_assert(reader && sql_script(reader, "begin; select count(*) from step", &err), "%s", err.text);
    ROWS(reader, "select state from runs where variant = 'baseline' and seed = 1", "running\n");
    double slowest = slowest_step(f.db, key, 1.5);
    cr_assert(slowest < 0.3, "a step took %.3f s", slowest);
    if (!no_wal)
        cr_assert(database_flush(f.db, 0.1, &err), "%s", err.text); /* WAL: readers are in nobody's way */
    ROWS(reader, "select count(*) from step", "0\n");               /* and keep their view */
    cr_assert(sql_script(reader, "commit", &err));
    cr_assert(database_flush(f.db, 10, &err), "%s", err.text);
    ROWS(reader, "select count(*) = max(step) + 1, count(*) > 50 from step", "1|1\n");
    sqlite3_close(reader);
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(database, a_long_reader_is_in_nobodys_way)
{
    reader_in_the_way(false);
}

Test(database, a_long_reader_of_a_rollback_journal_loses_no_row)
{
    reader_in_the_way(true);
}

Test(database, a_reader_that_stays_only_delays_the_tidying)
{
    struct fixture f;
    fixture_open(&f);
    fixture_close(&f);
    struct error err;
    struct database_options options = {.note = keep_note};
    f.db = database_open(f.path, &options, &err);
    sqlite3 *reader = database_open_reader(f.path, &err);
    ROWS(reader, "select count(*) from runs", "0\n");
    fixture_close(&f);
    cr_assert(strstr(noted, "another process is reading it"), "%s", noted);
    sqlite3_close(reader);
    f.db = database_open(f.path, &options, &err);
    fixture_close(&f);
    cr_assert_not(exists(&f, "results.db-wal"));
    fixture_remove(&f);
}

Test(database, a_killed_writer_loses_at_most_what_was_not_committed)
{
    struct fixture f;
    fixture_open(&f);
    fixture_close(&f);
    struct sweep *sweep = sweep_small("quick", "a");
    int ready[2];
    cr_assert_eq(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        struct error err;
        struct database *db = database_open(f.path, NULL, &err);
        struct step_record record = step_of(0, 2);
        bool ok = db && database_freeze(db, sweep, &err) &&
                  database_run_start(db, sweep->runs[0].key, 0, &environment, NULL, 0, NULL, 0, &err) &&
                  database_step(db, sweep->runs[0].key, &record, &err) && database_flush(db, 5, &err);
        if (write(ready[1], ok ? "y" : "n", 1) == 1)
            pause();
        _exit(1);
    }
    char answer;
    cr_assert(read(ready[0], &answer, 1) == 1 && answer == 'y');
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    cr_assert(exists(&f, "results.db-wal"));
    struct error err;
    sqlite3 *reader = database_open_reader(f.path, &err);
    cr_assert(reader, "%s", err.text);
    ROWS(reader, "select state, step from runs where variant = 'baseline' and seed = 1", "running|1\n");
    sqlite3_close(reader);
    f.db = database_open(f.path, NULL, &err);
    cr_assert(f.db, "%s", err.text);
    cr_assert(database_recover(f.db, &err), "%s", err.text);
    ROWS(database_handle(f.db), "select state, reason from runs where step = 1", "interrupted|its process is gone\n");
    ROWS(database_handle(f.db), "pragma integrity_check", "ok\n");
    sweep_release(sweep);
    fixture_remove(&f);
}
