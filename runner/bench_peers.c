/* Other people's training of the same model, timed by a script that prints JSON (tests/bench/peers), beside ours. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "core/memory.h"
#include "runner/bench_rows.h"
#include "runner/child.h"

enum { SAID_SIZE = 65536 };
static const double patience = 400; /* seconds; compiling a model takes most of them */

/* The last line of what it printed is its JSON: warnings come before. */
static const char *last_line(const char *text)
{
    size_t end = strlen(text);
    while (end && text[end - 1] == '\n')
        end--;
    while (end && text[end - 1] != '\n')
        end--;
    return text + end;
}

static void peers_run(struct bench *bench)
{
    struct child_output out = {.text = memory_alloc(SAID_SIZE, 1), .size = SAID_SIZE};
    char *program = memory_copy_text(bench->peers), *argv[] = {program, (char[]){"--json"}, NULL};
    struct error err;
    int status;
    enum child_result result = child_run(NULL, argv, patience, &out, &status, &err);
    bench->peers_done = true;
    if (result == CHILD_ENDED && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        bench->peers_said = memory_copy_text(last_line(out.text));
    else
        snprintf(bench->peers_failed, sizeof bench->peers_failed, "%.*s", (int)(sizeof bench->peers_failed - 1),
                 result == CHILD_ENDED ? last_line(out.text) : err.text);
    memory_free(program);
    memory_free(out.text);
}

/* The fastest of theirs a core: {"cases": [{"name", "precision", "threads", "seconds_per_step"}..]}. */
static const json_t *best_of(const json_t *root, const char *precision, double *seconds)
{
    const json_t *best = NULL, *row;
    size_t i;
    *seconds = INFINITY;
    json_array_foreach(json_object_get(root, "cases"), i, row)
    {
        const char *name = json_string_value(json_object_get(row, "precision"));
        double cores = json_number_value(json_object_get(row, "threads"));
        double taken = json_number_value(json_object_get(row, "seconds_per_step")) * cores;
        if (name && strcmp(name, precision) == 0 && taken > 0 && taken < *seconds) {
            *seconds = taken;
            best = row;
        }
    }
    return best;
}

void bench_measure_peers(struct bench *bench, int64_t bf16, struct bench_figure *figure)
{
    double theirs;
    if (!bench->peers) {
        bench_absent(figure, "no --peers PROGRAM given (tests/bench/peers)");
        return;
    }
    if (!bench->peers_done)
        peers_run(bench);
    json_t *root = bench->peers_said ? json_loads(bench->peers_said, 0, NULL) : NULL;
    const json_t *best = best_of(root, bf16 ? "bf16" : "fp32", &theirs);
    /* Ours measured around theirs, in the same minutes. */
    struct bench_share share;
    if (!best) {
        const char *why = json_string_value(json_object_get(root, "reason"));
        bench_absent(figure, "%.250s", why ? why : bench->peers_failed);
    } else {
        bench_share_measure(&bench_cases[BENCH_DAY2], 3, &share);
        double ours = share.step_seconds;
        bench_value(figure, theirs / ours, "ours %.0f ms a step; theirs %.0f ms for each core: %s %s, %d thread%s, %s",
                    ours * 1e3, theirs * 1e3, json_string_value(json_object_get(best, "name")),
                    bf16 ? "bf16 autocast" : "fp32", (int)json_number_value(json_object_get(best, "threads")),
                    json_number_value(json_object_get(best, "threads")) > 1 ? "s" : "",
                    json_string_value(json_object_get(root, "version")));
    }
    json_decref(root);
}
