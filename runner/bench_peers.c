/* Other people's training of the same model, timed by a script that prints JSON (tests/bench/peers), beside ours. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "core/memory.h"
#include "core/onednn.h"
#include "runner/bench_rows.h"
#include "runner/child.h"
#include "runner/precision.h"

enum { SAID_SIZE = 65536, REASON_SIZE = 256, ROUNDS = 5 };
/* Seconds: tests/bench/peers waits 150 for each of the four ways that --short leaves, mostly compiling. */
static const double patience = 4 * 150 + 150;

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

/* The JSON that the program prints of one precision, or NULL and why there is none. */
static json_t *peers_run(const char *peers, const char *precision, char why[REASON_SIZE])
{
    struct child_output out = {.text = memory_alloc(SAID_SIZE, 1), .size = SAID_SIZE};
    char *program = memory_copy_text(peers), *word = memory_copy_text(precision),
         *argv[] = {program, (char[]){"--json"}, (char[]){"--short"}, (char[]){"--precision"}, word, NULL};
    struct error err;
    int status;
    enum child_result result = child_run(NULL, argv, patience, &out, &status, &err);
    json_t *root = NULL;
    if (result == CHILD_ENDED && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        root = json_loads(last_line(out.text), 0, NULL);
    if (!root)
        snprintf(why, REASON_SIZE, "%.*s", REASON_SIZE - 1, result == CHILD_ENDED ? last_line(out.text) : err.text);
    memory_free(program);
    memory_free(word);
    memory_free(out.text);
    return root;
}

/* Whatever program it was that wrote it. */
static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "(not named)";
}

/* The fastest of theirs a core: {"cases": [{"name", "threads", "seconds_per_step"}..]}. */
static const json_t *best_of(const json_t *root, double *seconds)
{
    const json_t *best = NULL, *row;
    size_t i;
    *seconds = INFINITY;
    json_array_foreach(json_object_get(root, "cases"), i, row)
    {
        double cores = json_number_value(json_object_get(row, "threads"));
        double taken = json_number_value(json_object_get(row, "seconds_per_step")) * cores;
        if (taken > 0 && taken < *seconds) {
            *seconds = taken;
            best = row;
        }
    }
    return best;
}

/* Seconds of our steps, [ROUNDS]. */
static void ours_measure(int precision, double *seconds)
{
    struct config config = bench_case_config(&bench_cases[BENCH_DAY2]);
    struct bench_model model;
    config.training.precision = precision;
    bench_model_init(&model, &config, bench_cases[BENCH_DAY2].vocab_size);
    bench_model_step(&model);
    for (int i = 0; i < ROUNDS; i++)
        seconds[i] = bench_model_step(&model);
    bench_model_release(&model);
}

void bench_measure_peers(struct bench *bench, int64_t precision, struct bench_figure *figure)
{
    bool away = precision != PRECISION_FP32 && !bench_has_amx();
    if (!bench->peers) {
        bench_absent(figure, "no --peers PROGRAM given (tests/bench/peers)");
        return;
    }
    if (away && !onednn_has_bf16()) {
        bench_absent(figure, "no AMX here, nor other instructions for bf16: theirs and ours round in software");
        return;
    }
    /* Ours before and after theirs, which take minutes: a machine's pace changes meanwhile. */
    double ours[2 * ROUNDS], theirs;
    char why[REASON_SIZE];
    ours_measure((int)precision, ours);
    json_t *root = peers_run(bench->peers, precision_name((int)precision), why);
    const json_t *best = best_of(root, &theirs);
    if (best) {
        ours_measure((int)precision, ours + ROUNDS);
        double step = bench_median(ours, 2 * ROUNDS), threads = json_number_value(json_object_get(best, "threads"));
        bench_value(figure, theirs / step, "%sours %.0f ms a step; theirs %.0f ms for each core: %s, %s, %.0f thread%s",
                    away ? "no AMX here; " : "", step * 1e3, theirs * 1e3, text_of(root, "version"),
                    text_of(best, "name"), threads, threads > 1 ? "s" : "");
        figure->elsewhere = away;
    } else {
        const char *reason = json_string_value(json_object_get(root, "reason"));
        bench_absent(figure, "%.250s",
                     reason ? reason
                     : root ? "none of theirs ended"
                     : *why ? why
                            : "it said nothing");
    }
    json_decref(root);
}
