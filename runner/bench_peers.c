/* Other people's training of the same model, timed by a script that prints JSON (tests/bench/peers), beside ours. */
#include <inttypes.h>
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
/* Seconds for one way: tests/bench/peers waits 150, mostly for compiling. */
static const double patience = 2 * 150;

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

/* The JSON that the program prints of its way number `way`, or NULL and why there is none:
 * {"version", "ways": how many, "cases": [{"name", "threads", "seconds_per_step"}]}, or a "reason" in it. */
static json_t *peers_run(const char *peers, const char *precision, int64_t way, char why[REASON_SIZE])
{
    struct child_output out = {.text = memory_alloc(SAID_SIZE, 1), .size = SAID_SIZE};
    char number[32],
        *program = memory_copy_text(peers), *word = memory_copy_text(precision),
        *argv[] = {
            program, (char[]){"--json"}, (char[]){"--short"}, (char[]){"--precision"}, word, (char[]){"--way"}, number,
            NULL};
    snprintf(number, sizeof number, "%" PRId64, way);
    struct error err;
    int status;
    enum child_result result = child_run(NULL, argv, patience, &out, &status, &err);
    json_t *root = NULL;
    if (result == CHILD_ENDED && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        root = json_loads(last_line(out.text), 0, NULL);
    const char *reason = json_string_value(json_object_get(root, "reason"));
    const char *said = root ? reason : result == CHILD_ENDED ? last_line(out.text) : err.text;
    if (said)
        snprintf(why, REASON_SIZE, "%.*s", REASON_SIZE - 1, *said ? said : "it said nothing");
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

static void steps_measure(struct bench_model *model, double seconds[ROUNDS])
{
    for (int i = 0; i < ROUNDS; i++)
        seconds[i] = bench_model_step(model);
}

void bench_peers_best(const char *peers, const char *precision, struct bench_model *model, const char *mark,
                      struct bench_figure *figure)
{
    double around[2 * ROUNDS], least = INFINITY;
    char why[REASON_SIZE];
    bench_absent(figure, "none of theirs ended");
    bench_model_step(model);
    steps_measure(model, around + ROUNDS);
    for (int64_t way = 1, ways = 1; way <= ways; way++) {
        memcpy(around, around + ROUNDS, sizeof around / 2);
        json_t *root = peers_run(peers, precision, way, why);
        if (!root || json_object_get(root, "reason")) { /* the best of some of theirs is not their best */
            json_decref(root);
            bench_absent(figure, "%s", why);
            return;
        }
        ways = json_integer_value(json_object_get(root, "ways"));
        const json_t *theirs = json_array_get(json_object_get(root, "cases"), 0);
        double threads = json_number_value(json_object_get(theirs, "threads")),
               taken = json_number_value(json_object_get(theirs, "seconds_per_step")) * threads;
        steps_measure(model, around + ROUNDS);
        double sorted[2 * ROUNDS];
        memcpy(sorted, around, sizeof sorted);
        double ours = bench_median(sorted, 2 * ROUNDS);
        if (taken > 0 && taken / ours < least) {
            least = taken / ours;
            bench_value(figure, least,
                        "%sours %.0f ms a step (%.0f to %.0f); theirs %.0f ms for each core: %s, %s, %.0f thread%s",
                        mark, ours * 1e3, sorted[0] * 1e3, sorted[2 * ROUNDS - 1] * 1e3, taken * 1e3,
                        text_of(root, "version"), text_of(theirs, "name"), threads, threads > 1 ? "s" : "");
        }
        json_decref(root);
    }
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
    struct config config = bench_case_config(&bench_cases[BENCH_DAY2]);
    struct bench_model model;
    config.training.precision = (int)precision;
    bench_model_init(&model, &config, bench_cases[BENCH_DAY2].vocab_size);
    bench_peers_best(bench->peers, precision_name((int)precision), &model, away ? "no AMX here; " : "", figure);
    figure->elsewhere = away;
    bench_model_release(&model);
}
