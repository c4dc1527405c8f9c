/* runner match: does our model compute what someone else's does? */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/cpu.h"
#include "core/memory.h"
#include "runner/command.h"
#include "runner/json.h"
#include "runner/match.h"
#include "runner/precision.h"

static void print_json(const struct match *match)
{
    json_t *root = json_object(), *tensors = json_array();
    for (size_t i = 0; i < match->count; i++) {
        const struct match_row *row = &match->rows[i];
        json_t *tensor = json_object(), *shape = json_array();
        for (int k = 0; k < row->dims; k++)
            json_push(shape, json_integer(row->shape[k]));
        json_put(tensor, "name", json_from_text(row->name));
        json_put(tensor, "shape", shape);
        json_put(tensor, "max_abs", json_from_double(row->max_abs));
        json_put(tensor, "rel_l2", json_from_double(row->rel_l2));
        json_put(tensor, "ok", json_boolean(row->ok));
        if (row->pass == MATCH_GREEDY) {
            json_put(tensor, "equal", json_integer(row->equal));
            json_put(tensor, "of", json_integer(row->compared));
        }
        json_push(tensors, tensor);
    }
    json_put(root, "ok", json_boolean(match->ok));
    json_put(root, "first", match->first ? json_from_text(match->first->name) : json_null());
    json_put(root, "hint", match->hint[0] ? json_from_text(match->hint) : json_null());
    json_put(root, "tensors", tensors);
    json_print(root, stdout);
    json_decref(root);
}

static void print_greedy(const struct match_row *row, int width, const char *shape)
{
    printf("%-*s  %-16s  %" PRId64 " of %" PRId64 " equal  ", width, row->name, shape, row->equal, row->compared);
    if (row->ok)
        printf("ok\n");
    else
        printf("departs at token %" PRId64 "\n", row->unequal_at);
}

static void print_text(const struct reference_case *reference, const struct match *match, double tolerance)
{
    char shape[SAFETENSORS_SHAPE_TEXT], upstream[MATCH_UPSTREAM_SIZE];
    int width = (int)strlen("tensor");
    size_t good = 0;
    for (size_t i = 0; i < match->count; i++)
        width = (int)strlen(match->rows[i].name) > width ? (int)strlen(match->rows[i].name) : width;
    printf("%-*s  %-16s  %8s  %8s\n", width, "tensor", "shape", "max abs", "rel L2");
    for (size_t i = 0; i < match->count; i++) {
        const struct match_row *row = &match->rows[i];
        good += row->ok;
        safetensors_shape_text(row->dims, row->shape, shape);
        if (row->pass == MATCH_GREEDY)
            print_greedy(row, width, shape);
        else
            printf("%-*s  %-16s  %8.1e  %8.1e  %s\n", width, row->name, shape, row->max_abs, row->rel_l2,
                   row->ok ? "ok" : "departs");
    }
    printf("\n%zu of %zu tensors match: relative L2 at most %g, trained.* %g\n", good, match->count, tolerance,
           MATCH_TRAINED_FACTOR * tolerance);
    if (match->first) {
        printf("first to depart: %s\n", match->first->name);
        if (match->first > match->rows)
            printf("  last good one: %s\n", match->first[-1].name);
        printf("  upstream of it: %s\n", match_upstream(reference, match->first, upstream));
    }
    if (match->hint[0])
        printf("hint: %s\n", match->hint);
}

/* Puts in the mistake that --break asks for, if any. */
static bool break_case(struct reference_case *reference, const char *kind)
{
    struct error err;
    char text[MISTAKE_TEXT_SIZE];
    if (!kind)
        return true;
    if (!mistake_put_in(mistake_find(kind), reference, text, &err)) {
        message("--break %s: %s", kind, err.text);
        return false;
    }
    message("broken on purpose: %s", text);
    return true;
}

static void report_sets(void *problems, const struct knob *knob, const char *text)
{
    (void)knob;
    problem_add(problems, (struct place){.file = NULL}, "--set: %s", text);
}

/* One training setting in place of the case's. */
static bool set_apply(struct config *config, const char *set, struct error *err)
{
    union knob_value value;
    const char *equals = strchr(set, '=');
    char *name = memory_copy_bytes(set, equals ? (size_t)(equals - set) : strlen(set));
    const struct knob *knob = knob_find(name);
    memory_free(name);
    if (!knob || strcmp(knob->group, "training") != 0 || !equals)
        return error_set(err, "expected a setting of training, as in training.precision=bf16x3");
    if (!knob_parse(knob, equals + 1, false, &value, err))
        return false;
    knob_set(knob, config, value);
    return true;
}

/* All of them before they are looked at together: one may need another. */
static bool sets_apply(struct reference_case *reference, const struct arguments *arguments, struct problems *problems)
{
    struct error err;
    const char *const *sets;
    size_t before = problems->errors, count = option_list(arguments, "set", &sets);
    for (size_t i = 0; i < count; i++)
        if (!set_apply(&reference->config, sets[i], &err))
            problem_add(problems, (struct place){.file = NULL}, "--set %.100s: %s", sets[i], err.text);
    if (count && problems->errors == before)
        config_check(&reference->config, report_sets, problems);
    if (problems->errors == before)
        precision_note(reference->config.training.precision);
    return problems->errors == before;
}

static bool write_dump(const struct activations *seen, const char *path)
{
    struct error err;
    if (!path || activations_write(seen, path, &err))
        return true;
    message("%s", err.text);
    return false;
}

static int match_command(const struct command *command, const struct arguments *arguments)
{
    (void)command;
    struct reference_case reference;
    struct match match = {.ok = false};
    struct activations seen = {.count = 0};
    struct problems problems;
    double tolerance = option_number(arguments, "tolerance", MATCH_TOLERANCE);
    const char *dump = option_text(arguments, "dump", NULL);
    if (!(tolerance >= 0))
        die(EXIT_USAGE, "--tolerance is %g: expected a number of at least 0", tolerance);
    blas_use_one_thread();
    problems_init(&problems);
    int code = EXIT_USAGE;
    if (case_open(arguments->positional[0], option_text(arguments, "hf", NULL), &reference, &problems) &&
        sets_apply(&reference, arguments, &problems) && break_case(&reference, option_text(arguments, "break", NULL)) &&
        match_run(&reference, tolerance, dump ? &seen : NULL, &match, &problems) && write_dump(&seen, dump)) {
        if (arguments->json)
            print_json(&match);
        else
            print_text(&reference, &match, tolerance);
        code = match.ok ? EXIT_DONE : EXIT_RUNS_FAILED;
    }
    problems_print(&problems, stderr);
    problems_release(&problems);
    activations_release(&seen);
    match_release(&match);
    case_close(&reference);
    return code;
}

static const struct option match_options[] = {
    {.name = "hf",
     .kind = OPTION_TEXT,
     .argument = "DIR",
     .doc = "settings and weights from a Hugging Face folder: config.json and safetensors of Llama, Qwen3 or GPT-2"},
    {.name = "tolerance",
     .kind = OPTION_NUMBER,
     .argument = "X",
     .doc = "largest relative L2 difference of a tensor (default 2e-5; five times that for trained.*)"},
    {.name = "set",
     .kind = OPTION_LIST,
     .argument = "KEY=VALUE",
     .doc = "a training setting in place of the case's, as in training.precision=bf16x3; may be given again"},
    {.name = "dump",
     .kind = OPTION_TEXT,
     .argument = "FILE",
     .doc = "write our own activations there (safetensors), for others to compare with"},
    {.name = "break",
     .kind = OPTION_TEXT,
     .argument = "KIND",
     .choices = MISTAKE_CHOICES,
     .doc = "put one classic mistake in on purpose, and see where it shows"},
    {.name = NULL},
};

extern const struct command command_match;
const struct command command_match = {
    .name = "match",
    .arguments = "CASE",
    .summary = "Compare our model, layer by layer, with what another one computed.",
    .help = "CASE is a folder with case.yaml, weights.safetensors, inputs.safetensors and\n"
            "expected.safetensors. Every expected tensor (activations, gradients, losses of\n"
            "training, trained weights) is compared, in forward order; the first that departs\n"
            "is named with what is upstream of it, and a hint where its numbers give one.\n"
            "Exit code 0 when all match, else 1.\n"
            "\n"
            "With --hf DIR, CASE holds inputs.safetensors ('inputs' [1, length]) and\n"
            "expected.safetensors (activations, and greedy.prompt with greedy.tokens, the\n"
            "prompt and what follows it at temperature 0); settings and weights are in DIR.\n"
            "\n"
            "Examples:\n"
            "  runner match tests/golden/rope\n"
            "  runner match --hf tests/golden/hf/qwen3/model tests/golden/hf/qwen3",
    .options = match_options,
    .json = true,
    .minimum_arguments = 1,
    .maximum_arguments = 1,
    .run = match_command,
};
