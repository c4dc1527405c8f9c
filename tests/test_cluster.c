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
