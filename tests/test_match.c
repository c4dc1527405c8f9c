/* Reference cases: the twelve given ones pass, and each kind of mistake in one is named. */
#include "runner/match.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/bf16.h"
#include "core/memory.h"
#include "runner/file.h"

static const char *const golden[] = {"day1-baseline", "post-norm",  "rmsnorm",        "swiglu",
                                     "rope",          "sinusoidal", "gqa-2",          "untied",
                                     "mtp-depth-2",   "modern",     "padded-targets", "qwen-like"};
static const char *const case_files[] = {"case.yaml", "weights.safetensors", "inputs.safetensors",
                                         "expected.safetensors"};

/* ---- a copy of a case that a test may spoil ---- */

static void path_in(char path[128], const char *folder, const char *file)
{
    snprintf(path, 128, "%s/%s", folder, file);
}

static char *case_copy(const char *name)
{
    static char folder[64];
    snprintf(folder, sizeof folder, "/tmp/runner-match-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    for (size_t i = 0; i < 4; i++) {
        char from[128], to[128], *bytes;
        size_t size;
        struct error err;
        snprintf(from, sizeof from, "tests/golden/%s/%s", name, case_files[i]);
        path_in(to, folder, case_files[i]);
        cr_assert(file_read(from, 1 << 24, &bytes, &size, &err), "%s", err.text);
        cr_assert(file_write(to, bytes, size, &err), "%s", err.text);
        memory_free(bytes);
    }
    return folder;
}

static void case_remove(const char *folder)
{
    char path[128];
    for (size_t i = 0; i < 4; i++) {
        path_in(path, folder, case_files[i]);
        unlink(path);
    }
    cr_assert_eq(rmdir(folder), 0);
}

/* Replaces the first `old` in case.yaml. */
static void case_edit(const char *folder, const char *old, const char *new)
{
    char path[128], *text;
    size_t size;
    struct error err;
    path_in(path, folder, "case.yaml");
    cr_assert(file_read(path, 1 << 20, &text, &size, &err), "%s", err.text);
    char *at = strstr(text, old);
    cr_assert_not_null(at, "'%s' is not in case.yaml", old);
    size_t before = (size_t)(at - text), length = before + strlen(new) + strlen(at + strlen(old));
    char *edited = memory_alloc(length + 1, 1);
    snprintf(edited, length + 1, "%.*s%s%s", (int)before, text, new, at + strlen(old));
    cr_assert(file_write(path, edited, length, &err), "%s", err.text);
    memory_free(edited);
    memory_free(text);
}

/* Writes a file of tensors anew: without `drop`, `rename` called `name` (or with `add` besides), `factor` applied to
 * `scale`. Fields are NULL where nothing changes. */
struct tensor_edit {
    const char *drop, *rename, *name, *scale;
    float factor;
    const struct safetensors_entry *add;
};

static void tensors_edit(const char *folder, const char *file, struct tensor_edit edit)
{
    char path[128];
    struct error err;
    path_in(path, folder, file);
    struct safetensors *old = safetensors_open(path, &err);
    cr_assert_not_null(old, "%s", err.text);
    size_t count = safetensors_count(old), used = 0;
    struct safetensors_entry *entries = memory_alloc(count + 1, sizeof *entries);
    float *scaled = NULL;
    for (size_t i = 0; i < count; i++) {
        struct safetensors_entry entry = *safetensors_at(old, i);
        if (edit.drop && strcmp(entry.name, edit.drop) == 0)
            continue;
        if (edit.scale && strcmp(entry.name, edit.scale) == 0) {
            scaled = memory_alloc(entry.count, sizeof *scaled);
            safetensors_read_real(&entry, scaled, entry.count, &err);
            for (size_t k = 0; k < entry.count; k++)
                scaled[k] *= edit.factor;
            entry.data = scaled;
        }
        if (edit.rename && strcmp(entry.name, edit.rename) == 0)
            entry.name = edit.name;
        entries[used++] = entry;
    }
    if (edit.add)
        entries[used++] = *edit.add;
    cr_assert(safetensors_write(path, entries, used, NULL, &err), "%s", err.text);
    memory_free(entries);
    memory_free(scaled);
    safetensors_close(old);
}

/* ---- running ---- */

/* Name of the first tensor that departs, "" for none; the case must be comparable. */
static const char *first_departure(const char *folder)
{
    static char name[128];
    struct reference_case reference;
    struct match match = {.ok = false};
    struct problems problems;
    problems_init(&problems);
    bool good = case_open(folder, NULL, &reference, &problems) &&
                match_run(&reference, MATCH_TOLERANCE, NULL, &match, &problems);
    cr_assert(good, "%s", problems.count ? problems.items[0].text : "no reason given");
    cr_assert_eq(match.count, safetensors_count(reference.expected), "every expected tensor is compared");
    cr_assert_eq(match.ok, match.first == NULL);
    snprintf(name, sizeof name, "%s", match.first ? match.first->name : "");
    match_release(&match);
    case_close(&reference);
    problems_release(&problems);
    return name;
}

/* The case cannot be compared, and one of the problems holds `part`. */
static void assert_problem(const char *folder, const char *part)
{
    struct reference_case reference;
    struct match match = {.ok = false};
    struct problems problems;
    problems_init(&problems);
    bool good = case_open(folder, NULL, &reference, &problems) &&
                match_run(&reference, MATCH_TOLERANCE, NULL, &match, &problems);
    bool found = false;
    for (size_t i = 0; i < problems.count; i++)
        found = found || strstr(problems.items[i].text, part);
    cr_expect(!good, "should be refused for: %s", part);
    cr_expect(found, "'%s' should hold '%s'", problems.count ? problems.items[0].text : "", part);
    match_release(&match);
    case_close(&reference);
    problems_release(&problems);
}

static void assert_edit_departs(const char *name, const char *old, const char *new, const char *first)
{
    char *folder = case_copy(name);
    case_edit(folder, old, new);
    const char *departed = first_departure(folder);
    cr_expect_str_eq(departed, first, "%s with '%s': '%s' departs first, not '%s'", name, new, departed, first);
    case_remove(folder);
}

static void assert_edit_refused(const char *name, const char *old, const char *new, const char *part)
{
    char *folder = case_copy(name);
    case_edit(folder, old, new);
    assert_problem(folder, part);
    case_remove(folder);
}

/* ---- tests ---- */

Test(match, the_twelve_cases_match)
{
    for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++) {
        char folder[128];
        snprintf(folder, sizeof folder, "tests/golden/%s", golden[i]);
        const char *first = first_departure(folder);
        cr_expect_str_empty(first, "%s: '%s' departs", golden[i], first);
    }
}

/* Two bf16 parts are 2^-17 off, 8e-6; through the layers, and in the gradients, 1e-4 must hold. */
static void assert_cases_match_split(void)
{
    for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++) {
        char folder[128];
        struct reference_case reference;
        struct match match = {.ok = false};
        struct problems problems;
        problems_init(&problems);
        snprintf(folder, sizeof folder, "tests/golden/%s", golden[i]);
        cr_assert(case_open(folder, NULL, &reference, &problems));
        reference.config.training.precision = PRECISION_BF16X3;
        cr_assert(match_run(&reference, 1e-4, NULL, &match, &problems));
        cr_expect(match.ok, "%s: '%s' departs", golden[i], match.first ? match.first->name : "");
        match_release(&match);
        case_close(&reference);
        problems_release(&problems);
    }
}

Test(match, the_twelve_cases_match_in_bf16x3)
{
    cr_assert(bf16_select(BF16_SOFTWARE, NULL));
    assert_cases_match_split();
}

Test(match, the_twelve_cases_match_in_bf16x3_in_hardware)
{
    struct error err;
    if (bf16_select(BF16_HARDWARE, &err))
        assert_cases_match_split();
    else
        cr_skip_test("%s", err.text);
}

Test(match, no_case_is_forgotten)
{
    size_t cases = 0;
    DIR *folder = opendir("tests/golden");
    cr_assert_not_null(folder);
    for (struct dirent *item; (item = readdir(folder));) {
        char path[512];
        snprintf(path, sizeof path, "tests/golden/%s/case.yaml", item->d_name);
        cases += access(path, R_OK) == 0;
    }
    closedir(folder);
    cr_assert_eq(cases, sizeof golden / sizeof golden[0]);
}

Test(match, a_wrong_setting_is_found_where_it_first_matters)
{
    assert_edit_departs("rope", "rope_layout: adjacent", "rope_layout: split", "blocks.0.attention.query");
    assert_edit_departs("rope", "rope_base: 10000.0", "rope_base: 1000", "blocks.0.attention.query");
    assert_edit_departs("qwen-like", "norm_epsilon: 0.0", "norm_epsilon: 1e-3", "blocks.0.attention.query");
    assert_edit_departs("day1-baseline", "feed_forward: gelu", "feed_forward: gelu_tanh", "blocks.0.feed_forward");
    assert_edit_departs("day1-baseline", "residual: pre", "residual: post", "blocks.0.attention.query");
    assert_edit_departs("padded-targets", "grad_clip: 0.25", "grad_clip: 0", "train.loss");
    assert_edit_departs("day1-baseline", "beta2: 0.95", "beta2: 0.9", "train.loss");
    assert_edit_departs("day1-baseline", "weight_decay: 0.1", "weight_decay: 0.2", "train.loss");
}

Test(match, wrong_weights_are_found_where_they_are_used)
{
    static const struct {
        const char *name, *tensor, *first;
    } cases[] = {
        {"day1-baseline", "token_embedding.weight", "embed"},
        {"day1-baseline", "blocks.1.attention.value.weight", "blocks.1.attention"},
        {"swiglu", "blocks.1.feed_forward.gate.weight", "blocks.1.feed_forward"},
        {"post-norm", "blocks.0.feed_forward_norm.weight", "blocks.0"},
        {"day1-baseline", "final_norm.weight", "final_norm"},
        {"untied", "lm_head.weight", "logits"},
        {"mtp-depth-2", "mtp_adapters.0.weight", "logits.depth2"},
        {"qwen-like", "blocks.0.attention.key_norm.weight", "blocks.0.attention.key"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *folder = case_copy(cases[i].name);
        tensors_edit(folder, "weights.safetensors", (struct tensor_edit){.scale = cases[i].tensor, .factor = 1.001f});
        const char *first = first_departure(folder);
        cr_expect_str_eq(first, cases[i].first, "%s: '%s' departs first, not '%s'", cases[i].tensor, first,
                         cases[i].first);
        case_remove(folder);
    }
}

Test(match, what_is_not_a_number_departs)
{
    char *folder = case_copy("day1-baseline");
    tensors_edit(folder, "weights.safetensors", (struct tensor_edit){.scale = "final_norm.weight", .factor = NAN});
    cr_expect_str_eq(first_departure(folder), "final_norm");
    case_remove(folder);
    folder = case_copy("day1-baseline");
    tensors_edit(folder, "expected.safetensors", (struct tensor_edit){.scale = "logits", .factor = NAN});
    cr_expect_str_eq(first_departure(folder), "logits");
    case_remove(folder);
    folder = case_copy("day1-baseline");
    tensors_edit(folder, "expected.safetensors", (struct tensor_edit){.scale = "logits", .factor = 0});
    cr_expect_str_eq(first_departure(folder), "logits", "any size is far from zero");
    case_remove(folder);
}

Test(match, missing_and_left_over_weights_are_named)
{
    char *folder = case_copy("day1-baseline");
    tensors_edit(
        folder, "weights.safetensors",
        (struct tensor_edit){.rename = "blocks.1.attention.value.weight", .name = "blocks.1.attention.valve.weight"});
    assert_problem(folder, "weights.safetensors: tensor 'blocks.1.attention.value.weight' is missing");
    assert_problem(folder, "weights.safetensors: tensor 'blocks.1.attention.valve.weight' has no use in this model");
    case_remove(folder);
    assert_edit_refused("day1-baseline", "kv_heads: 0", "kv_heads: 2",
                        "tensor 'blocks.0.attention.key.weight' has shape [32, 32]: the model needs [16, 32]");
    assert_edit_refused("untied", "tied_embeddings: false", "tied_embeddings: true",
                        "tensor 'lm_head.weight' has no use in this model");
    assert_edit_refused("day1-baseline", "n_layers: 2", "n_layers: 1024", "'blocks.1023.feed_forward.down.weight' is");
}

Test(match, expected_tensors_that_cannot_be_compared_are_named)
{
    char *folder = case_copy("day1-baseline");
    tensors_edit(folder, "expected.safetensors", (struct tensor_edit){.rename = "blocks.0", .name = "blocks.7"});
    assert_problem(folder, "expected.safetensors: tensor 'blocks.7' is none that this model computes");
    case_remove(folder);

    folder = case_copy("day1-baseline");
    struct safetensors_entry wrong = {
        .name = "embed", .dtype = SAFETENSORS_F32, .dims = 1, .shape = {1}, .data = "abcd"};
    tensors_edit(folder, "expected.safetensors", (struct tensor_edit){.drop = "embed", .add = &wrong});
    assert_problem(folder, "tensor 'embed' has shape [1]: this model computes [2, 16, 32]");
    wrong.dtype = SAFETENSORS_I32;
    wrong.name = "grad.none";
    tensors_edit(folder, "expected.safetensors", (struct tensor_edit){.drop = "embed", .add = &wrong});
    assert_problem(folder, "tensor 'grad.none' is none that this model computes");
    case_remove(folder);

    folder = case_copy("day1-baseline");
    char path[128];
    path_in(path, folder, "expected.safetensors");
    struct error err;
    cr_assert(safetensors_write(path, NULL, 0, NULL, &err));
    assert_problem(folder, "holds no tensor to compare");
    case_remove(folder);
}

Test(match, bad_settings_are_refused_with_their_place)
{
    assert_edit_refused("rope", "vocab_size: 64", "", "case.yaml:3:3: model.vocab_size is missing");
    assert_edit_refused("rope", "vocab_size: 64", "vocab_size: 64x", "case.yaml:2:15: model.vocab_size is '64x'");
    assert_edit_refused("rope", "n_layers:", "n_layer:", "unknown key 'n_layer' in model: did you mean 'n_layers'?");
    assert_edit_refused("rope", "training:", "trainin:", "unknown key 'trainin': expected 'model' or 'training'");
    assert_edit_refused("rope", "n_heads: 4", "n_heads: 5", "does not divide into n_heads 5");
    assert_edit_refused("rope", "dropout: 0.0", "dropout: 0.5", "model.dropout is 0.5: expected 0");
    assert_edit_refused("rope", "residual: pre", "residual: [pre]", "model.residual: expected pre or post");
    assert_edit_refused("rope", "norm: layernorm", "norm: layernrom", "model.norm is 'layernrom'");
    assert_edit_refused("rope", "steps: 10", "steps: 9", "training has 10 batches, and training.steps is 9");
    assert_edit_refused("rope", "batch_size: 2", "batch_size: 3", "batches of 2, and training.batch_size is 3");
}

Test(match, bad_inputs_are_refused)
{
    assert_edit_refused("rope", "context_length: 16", "context_length: 15",
                        "'inputs' has sequences of 16 tokens, and context_length is 15");
    char *folder = case_copy("rope");
    case_edit(folder, "vocab_size: 64", "vocab_size: 60");
    assert_problem(folder, "expected 0 to 59");
    case_remove(folder);

    folder = case_copy("rope");
    tensors_edit(folder, "inputs.safetensors", (struct tensor_edit){.drop = "targets"});
    assert_problem(folder, "inputs.safetensors has no 'targets'");
    tensors_edit(folder, "inputs.safetensors", (struct tensor_edit){.rename = "inputs", .name = "input"});
    assert_problem(folder, "tensor 'input' has no use: expected 'inputs' and 'targets'");
    case_remove(folder);

    folder = case_copy("rope");
    const int32_t token = 7;
    struct safetensors_entry flat = {
        .name = "inputs", .dtype = SAFETENSORS_I32, .dims = 1, .shape = {1}, .data = &token};
    tensors_edit(folder, "inputs.safetensors", (struct tensor_edit){.drop = "inputs", .add = &flat});
    assert_problem(folder, "'inputs' has shape [1]: expected [steps, batch, length]");
    case_remove(folder);
    assert_problem("/nowhere", "/nowhere/case.yaml");
}

Test(match, a_case_of_activations_alone_needs_no_targets)
{
    char *folder = case_copy("rope");
    char path[128];
    struct error err;
    path_in(path, folder, "expected.safetensors");
    struct safetensors *file = safetensors_open(path, &err);
    cr_assert_not_null(file);
    struct safetensors_entry logits = *safetensors_find(file, "logits");
    cr_assert(safetensors_write(path, &logits, 1, NULL, &err), "%s", err.text);
    safetensors_close(file);
    tensors_edit(folder, "inputs.safetensors", (struct tensor_edit){.drop = "targets"});
    cr_expect_str_empty(first_departure(folder));
    case_edit(folder, "rope_scale: 1.0", "rope_scale: 2.0");
    cr_expect_str_eq(first_departure(folder), "logits");
    case_remove(folder);
}

Test(match, every_forward_tensor_knows_what_is_upstream)
{
    static const struct {
        const char *name, *tensor, *part;
    } cases[] = {
        {"day1-baseline", "embed", "token_embedding.weight + position_embedding.weight"},
        {"rope", "blocks.0.attention.query",
         "embed, through blocks.0.attention_norm, blocks.0.attention.query.weight, rotation"},
        {"qwen-like", "blocks.1.attention.key",
         "blocks.0, through blocks.1.attention_norm, blocks.1.attention.key.weight, "
         "blocks.1.attention.key_norm, rotation"},
        {"post-norm", "blocks.1.attention.query", "blocks.0, through blocks.1.attention.query.weight"},
        {"swiglu", "blocks.0.feed_forward", "feed_forward.up and .gate.weight, swiglu, feed_forward.down.weight"},
        {"post-norm", "blocks.1", "attention_norm(blocks.0 + blocks.1.attention)"},
        {"day1-baseline", "blocks.1", "blocks.0 + blocks.1.attention + blocks.1.feed_forward"},
        {"rope", "blocks.1.attention_norm", "blocks.0, through blocks.1.attention_norm"},
        {"post-norm", "blocks.0.attention_norm", "embed + blocks.0.attention, through blocks.0.attention_norm"},
        {"rope", "blocks.0.attention.value", "embed, through attention_norm, blocks.0.attention.value.weight"},
        {"rope", "blocks.0.attention.mix", "blocks.0.attention.query, .key and .value; scores / sqrt(head_dim)"},
        {"swiglu", "blocks.0.feed_forward_norm", "embed + blocks.0.attention, through blocks.0.feed_forward_norm"},
        {"swiglu", "blocks.0.feed_forward.up_gate", "feed_forward_norm, blocks.0.feed_forward.up and .gate.weight"},
        {"swiglu", "blocks.0.feed_forward.activation", "what up and gate of blocks.0 give, through swiglu"},
        {"day1-baseline", "blocks.0.feed_forward.activation", "what up of blocks.0 give, through gelu"},
        {"day1-baseline", "final_norm", "blocks.1, through final_norm"},
        {"untied", "logits", "lm_head.weight"},
        {"mtp-depth-2", "logits.depth2", "mtp_adapters.0.weight, token_embedding.weight (tied head)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char folder[128], text[MATCH_UPSTREAM_SIZE];
        struct reference_case reference;
        struct problems problems;
        problems_init(&problems);
        snprintf(folder, sizeof folder, "tests/golden/%s", cases[i].name);
        cr_assert(case_open(folder, NULL, &reference, &problems));
        struct match_row row = {.name = cases[i].tensor, .pass = MATCH_FORWARD};
        match_upstream(&reference, &row, text);
        cr_expect(strstr(text, cases[i].part), "%s of %s: '%s' should hold '%s'", row.name, cases[i].name, text,
                  cases[i].part);
        case_close(&reference);
        problems_release(&problems);
    }
}

Test(match, upstream_has_the_name_of_the_activation)
{
    /* Of block 9 the case has no tensors: then all of a block is named. */
    static const char *const tensors[] = {"blocks.9", "blocks.0.feed_forward", "blocks.0.feed_forward.activation"};
    const struct knob *knob = knob_find("model.feed_forward");
    struct reference_case reference;
    struct problems problems;
    problems_init(&problems);
    cr_assert(case_open("tests/golden/padded-targets", NULL, &reference, &problems));
    for (int choice = FEED_FORWARD_GELU; choice < FEED_FORWARD_COUNT; choice++)
        for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
            char text[MATCH_UPSTREAM_SIZE], name[KNOB_TEXT_SIZE], whole[KNOB_TEXT_SIZE + 16];
            struct match_row row = {.name = tensors[i], .pass = MATCH_FORWARD};
            reference.config.model.feed_forward = choice;
            match_upstream(&reference, &row, text);
            size_t length = strlen(knob_format(knob, (union knob_value){.choice = choice}, name));
            snprintf(whole, sizeof whole, " %s", name);
            const char *found = strstr(text, whole);
            cr_expect(found && (found[length + 1] == ',' || !found[length + 1]), "%s: '%s' should hold '%s'", row.name,
                      text, name);
            bool gated = model_shape_of(&reference.config.model, 1).ff_inputs == 2;
            cr_expect_eq(strstr(text, "gate") != NULL, gated, "%s: '%s'", row.name, text);
        }
    case_close(&reference);
    problems_release(&problems);
}
