/* The files that say what was submitted to a cluster, and names of its jobs. */
#include "runner/cluster.h"

#include <criterion/criterion.h>

#include "tests/folder_case.h"

TestSuite(cluster, .init = folder_open, .fini = folder_close, .timeout = 60);

/* Of experiment `a`, in the test's folder. */
static void cluster_read(struct cluster *cluster)
{
    struct error err = {""};
    char *logs = path_join(folder, "logs"), *database = path_join(folder, "results.db");
    cr_assert(cluster_open(cluster, folder, logs, database, "a", &err), "%s", err.text);
    memory_free(logs);
    memory_free(database);
}

/* A round of three runs, two an array. head: more of the list's first line. */
static void round_put(size_t round, const char *head)
{
    struct cluster cluster;
    char name[300], text[600];
    cluster_read(&cluster);
    snprintf(name, sizeof name, "logs/slurm/%s.%zu.tasks", cluster.name, round);
    int used = snprintf(text, sizeof text, "{\"experiment\":\"a\",\"tasks\":3,\"chunk\":2%s}\n", head);
    for (int i = 0; i < 3; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "{\"job\":{\"key\":\"%064d\"}}\n", i);
    file_put(name, text);
    cluster_close(&cluster);
}

Test(cluster, a_job_is_known_by_its_whole_name)
{
    static const char *const others[] = {".0.0x", ".0.2", ".1.0", ".0", "", "x.0.0", ".0.0 ", ".00.0"};
    struct cluster cluster;
    size_t round = 9, chunk = 9;
    round_put(0, "");
    cluster_read(&cluster);
    char *name = cluster_job_name(&cluster, 0, 1);
    cr_assert(cluster_job_parse(&cluster, name, &round, &chunk), "%s", name);
    cr_expect_eq(round, 0);
    cr_expect_eq(chunk, 1);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char other[300];
        snprintf(other, sizeof other, "%s%s", cluster.name, others[i]);
        cr_expect_not(cluster_job_parse(&cluster, other, &round, &chunk), "%s", other);
    }
    memory_free(name);
    cluster_close(&cluster);
}

Test(cluster, a_list_has_a_token_which_is_in_its_jobs_names_and_older_lists_have_none)
{
    struct cluster cluster;
    struct error err = {""};
    size_t round, chunk;
    round_put(0, "");
    round_put(1, ",\"token\":\"18c3f0-2a\"");
    cluster_read(&cluster);
    cr_assert_eq(cluster.round_count, 2);
    char *older = cluster_job_name(&cluster, 0, 1), *name = cluster_job_name(&cluster, 1, 1);
    cr_expect_str_eq(older + strlen(cluster.name), ".0.1");
    cr_expect_str_eq(name + strlen(cluster.name), ".1.1.18c3f0-2a");
    cr_expect(cluster_job_parse(&cluster, older, &round, &chunk) && round == 0);
    cr_expect(cluster_job_parse(&cluster, name, &round, &chunk) && round == 1);
    name[strlen(name) - 1] = 'b';
    cr_expect_not(cluster_job_parse(&cluster, name, &round, &chunk), "of a list that is gone");
    name[strlen(cluster.name) + strlen(".1.1")] = 0;
    cr_expect_not(cluster_job_parse(&cluster, name, &round, &chunk), "of one without a token");
    memory_free(older);
    memory_free(name);
    cluster_close(&cluster);
    file_put("list.tasks", "{\"experiment\":\"a\",\"tasks\":1,\"chunk\":1,\"token\":\"a b\"}\n");
    char token[TASK_TOKEN_SIZE], *path = path_join(folder, "list.tasks");
    cr_expect_not(task_list_token(path, token, &err));
    cr_expect_not_null(strstr(err.text, "is not a list of tasks"), "%s", err.text);
    memory_free(path);
}
