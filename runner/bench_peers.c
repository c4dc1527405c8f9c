/* Other people's training of the same model, timed by a script that prints JSON (tests/bench/peers), beside ours. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "core/memory.h"
#include "runner/bench_rows.h"
#include "runner/child.h"
#include "runner/precision.h"

enum { SAID_SIZE = 65536 };
/* Seconds: tests/bench/peers waits 150 for each of the seven ways that --short leaves, mostly compiling. */
static const double patience = 7 * 150 + 150;

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
    char *program = memory_copy_text(bench->peers), *argv[] = {program, (char[]){"--json"}, (char[]){"--short"}, NULL};
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

/* Whatever program it was that wrote it. */
static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "(not named)";
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

/* Seconds of our step, measured in the same minutes. */
static double ours_measure(int precision)
{
    enum { ROUNDS = 5 };
    struct config config = bench_case_config(&bench_cases[BENCH_DAY2]);
    struct bench_model model;
    double seconds[ROUNDS];
    config.training.precision = precision;
    bench_model_init(&model, &config, bench_cases[BENCH_DAY2].vocab_size);
    bench_model_step(&model);
    for (int i = 0; i < ROUNDS; i++)
        seconds[i] = bench_model_step(&model);
    bench_model_release(&model);
    return bench_median(seconds, ROUNDS);
}

void bench_measure_peers(struct bench *bench, int64_t precision, struct bench_figure *figure)
{
    if (!bench->peers) {
        bench_absent(figure, "no --peers PROGRAM given (tests/bench/peers)");
        return;
    }
    if (!bench->peers_done)
        peers_run(bench);
    double theirs;
    json_t *root = bench->peers_said ? json_loads(bench->peers_said, 0, NULL) : NULL;
    const json_t *best = best_of(root, precision_name((int)precision), &theirs);
    if (best) {
        double ours = ours_measure((int)precision), threads = json_number_value(json_object_get(best, "threads"));
        bool away = precision != PRECISION_FP32 && !bench_has_amx();
        bench_value(figure, theirs / ours, "%sours %.0f ms a step; theirs %.0f ms for each core: %s, %s, %.0f thread%s",
                    away ? "no AMX here; " : "", ours * 1e3, theirs * 1e3, text_of(root, "version"),
                    text_of(best, "name"), threads, threads > 1 ? "s" : "");
        figure->elsewhere = away;
    } else {
        const char *why = json_string_value(json_object_get(root, "reason"));
        bench_absent(figure, "%.250s", why ? why : *bench->peers_failed ? bench->peers_failed : "none of theirs ended");
    }
    json_decref(root);
}
