/* Taking over what tasks of a cluster have written. */
#include "runner/gather.h"

#include <criterion/criterion.h>
#include <unistd.h>

#include "tests/folder_case.h"

TestSuite(gather, .init = folder_open, .fini = folder_close, .timeout = 60);

/* Killed on another machine, amid a transaction, a moment ago. That it has ended is what Slurm says. */
Test(gather, a_task_that_is_over_holds_nothing_whatever_its_lock_file_says)
{
    struct error err = {""};
    struct database_options options = {.no_wal = true};
    char *shards = path_join(folder, "shards"), *path = path_join(folder, "shards/key/run.db");
    struct database *shard = database_open(path, &options, &err);
    cr_assert(shard && database_close(shard, &err), "%s", err.text);
    file_put("shards/key/run.db-journal", "");
    file_put("shards/key/run.db.lock", "pid 77 on node-b.example: runner work\n");
    cr_assert_null(database_open(path, &options, &err), "to anybody else it may live");
    cr_assert(gather_tidy(shards, "key", &err), "%s", err.text);
    shard = database_open(path, &options, &err);
    cr_assert(shard && database_close(shard, &err), "%s", err.text);
    memory_free(shards);
    memory_free(path);
}
