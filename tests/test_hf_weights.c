/* Weights of other people's models: every tensor has one parameter, whatever the file, and hostile folders are refused.
 */
#include "runner/hf_weights.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/file.h"
#include "runner/safetensors.h"

/* ---- folders that a test may spoil ---- */

static const char *const folder_files[] = {"config.json", "model.safetensors", "model.safetensors.index.json",
                                           "a.safetensors", "b.safetensors"};

static char *path_in(const char *folder, const char *file)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    return path;
}

static void folder_make_empty(char folder[32])
{
    snprintf(folder, 32, "/tmp/runner-hf-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
}

static void folder_remove(const char *folder)
{
    for (size_t i = 0; i < sizeof folder_files / sizeof folder_files[0]; i++)
        unlink(path_in(folder, folder_files[i]));
    cr_assert_eq(rmdir(folder), 0);
}

static void write_text(const char *folder, const char *file, const char *text)
{
    struct error err;
    cr_assert(file_write(path_in(folder, file), text, strlen(text), &err), "%s", err.text);
}

/* What to change of a model's tensors on the way into a new file. */
struct edit {
    const char *skip;                    /* without this one */
    const char *rename, *to;             /* this one under another name */
    const char *strip;                   /* no name begins with this */
    int half;                            /* 1, 2: the first or second half of the tensors; 0: all */
    bool bf16;                           /* numbers rounded to their upper 16 bits */
    const struct safetensors_entry *add; /* more of them */
    size_t adds;
};

static void write_tensors(const char *model, const char *folder, const char *file, struct edit edit)
{
    struct error err;
    char from[128];
    snprintf(from, sizeof from, "tests/golden/hf/%s/model/model.safetensors", model);
    struct safetensors *old = safetensors_open(from, &err);
    cr_assert_not_null(old, "%s", err.text);
    size_t count = safetensors_count(old), used = 0, first = edit.half == 2 ? count / 2 : 0;
    size_t last = edit.half == 1 ? count / 2 : count;
    size_t adds = edit.add && !edit.adds ? 1 : edit.adds;
    struct safetensors_entry *entries = memory_alloc(count + adds, sizeof *entries);
    void **blocks = memory_alloc(count, sizeof *blocks);
    for (size_t i = first; i < last; i++) {
        struct safetensors_entry entry = *safetensors_at(old, i);
        if (edit.skip && strcmp(entry.name, edit.skip) == 0)
            continue;
        if (edit.rename && strcmp(entry.name, edit.rename) == 0)
            entry.name = edit.to;
        if (edit.strip && strncmp(entry.name, edit.strip, strlen(edit.strip)) == 0)
            entry.name += strlen(edit.strip);
        if (edit.bf16) {
            const unsigned char *bytes = entry.data;
            unsigned char *half = blocks[i] = memory_alloc(entry.count, 2);
            for (size_t k = 0; k < entry.count; k++)
                memcpy(half + 2 * k, bytes + 4 * k + 2, 2);
            entry.dtype = SAFETENSORS_BF16;
            entry.data = half;
        }
        entries[used++] = entry;
    }
    for (size_t i = 0; i < adds; i++)
        entries[used++] = edit.add[i];
    cr_assert(safetensors_write(path_in(folder, file), entries, used, NULL, &err), "%s", err.text);
    for (size_t i = 0; i < count; i++)
        memory_free(blocks[i]);
    memory_free(blocks);
    memory_free(entries);
    safetensors_close(old);
}

/* The model's config.json with the first `old`, if any, replaced. */
static void write_config(const char *model, const char *folder, const char *old, const char *new)
{
    char from[128], *text;
    size_t size;
    struct error err;
    snprintf(from, sizeof from, "tests/golden/hf/%s/model/config.json", model);
    cr_assert(file_read(from, 1 << 20, &text, &size, &err), "%s", err.text);
    char *at = old ? strstr(text, old) : text, *out = memory_alloc(size + 256, 1);
    cr_assert_not_null(at, "'%s' is not in config.json", old);
    snprintf(out, size + 256, "%.*s%s%s", (int)(at - text), text, old ? new : "", at + (old ? strlen(old) : 0));
    write_text(folder, "config.json", out);
    memory_free(out);
    memory_free(text);
}

/* weight_map of a half and a half. */
static void write_index(const char *model, const char *folder, const char *a, const char *b, const char *more)
{
    char from[128], *text = memory_alloc(1 << 16, 1);
    struct error err;
    snprintf(from, sizeof from, "tests/golden/hf/%s/model/model.safetensors", model);
    struct safetensors *file = safetensors_open(from, &err);
    cr_assert_not_null(file);
    size_t count = safetensors_count(file), used = 0;
    used += (size_t)snprintf(text, 1 << 16, "{\"metadata\": {\"total_size\": 1}, \"weight_map\": {");
    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, (1 << 16) - used, "%s\"%s\": \"%s\"", i ? ", " : "",
                                 safetensors_at(file, i)->name, i < count / 2 ? a : b);
    snprintf(text + used, (1 << 16) - used, "%s}}", more);
    write_text(folder, "model.safetensors.index.json", text);
    safetensors_close(file);
    memory_free(text);
}

/* ---- loading ---- */

/* The model of a folder, or NULL; the first problem's text in *text, owner: the caller, memory_free(). */
static struct model *load(const char *folder, struct problems *problems)
{
    struct hf_config config;
    struct model *model = NULL;
    struct hf_weights *weights = NULL;
    struct error err;
    if (hf_config_read(path_in(folder, "config.json"), &config, problems))
        weights = hf_weights_open(folder, &config, problems);
    if (weights) {
        model = model_create(&config.config.model, config.vocab_size, 8, &err);
        for (size_t i = 0; i < model_tensors(model)->total; i++)
            model_parameters(model)[i] = NAN; /* shows what nobody filled */
        hf_weights_load(weights, model);
    }
    hf_weights_close(weights);
    hf_config_release(&config);
    return model;
}

static struct model *load_good(const char *folder)
{
    struct problems problems;
    problems_init(&problems);
    struct model *model = load(folder, &problems);
    cr_assert_not_null(model, "%s", problems.count ? problems.items[0].text : "no reason");
    problems_release(&problems);
    return model;
}

/* Refused or, with a note, taken: one text holds part. */
static void assert_told(const char *folder, bool refused, const char *part)
{
    struct problems problems;
    problems_init(&problems);
    struct model *model = load(folder, &problems);
    bool found = false;
    for (size_t i = 0; i < problems.count; i++)
        found = found || strstr(problems.items[i].text, part);
    cr_expect_eq(model == NULL, refused, "with %s", part);
    cr_expect(found, "'%s' should hold '%s'", problems.count ? problems.items[0].text : "", part);
    model_free(model);
    problems_release(&problems);
}

static void assert_same(struct model *a, struct model *b)
{
    cr_assert_eq(model_tensors(a)->total, model_tensors(b)->total);
    cr_expect_eq(memcmp(model_parameters(a), model_parameters(b), model_tensors(a)->total * sizeof(real)), 0);
}

static const real *weights_of(struct model *model, const char *name)
{
    const struct tensor *tensor = tensor_find(model_tensors(model), name);
    cr_assert_not_null(tensor, "%s", name);
    return model_parameters(model) + tensor->offset;
}

/* Numbers that are not all 0. */
static const float ones[64 * 101] = {1, 2, 3};

static struct safetensors_entry entry_make(const char *name, int dims, int64_t rows, int64_t columns)
{
    return (struct safetensors_entry){
        .name = name, .dtype = SAFETENSORS_F32, .dims = dims, .shape = {rows, columns}, .data = ones};
}

/* ---- tests ---- */

static const char *const models[] = {"llama", "qwen3", "gpt2"};

Test(hf_weights, every_parameter_is_filled)
{
    for (size_t i = 0; i < 3; i++) {
        char folder[128];
        snprintf(folder, sizeof folder, "tests/golden/hf/%s/model", models[i]);
        struct model *model = load_good(folder);
        for (size_t k = 0; k < model_tensors(model)->total; k++)
            cr_assert(isfinite(model_parameters(model)[k]), "%s: parameter %zu", models[i], k);
        model_free(model);
    }
}

Test(hf_weights, fused_and_transposed_matrices_become_three)
{
    struct error err;
    struct safetensors *file = safetensors_open("tests/golden/hf/gpt2/model/model.safetensors", &err);
    struct model *model = load_good("tests/golden/hf/gpt2/model");
    const struct safetensors_entry *fused = safetensors_find(file, "transformer.h.1.attn.c_attn.weight"),
                                   *bias = safetensors_find(file, "transformer.h.1.attn.c_attn.bias");
    enum { C = 48 };
    real theirs[C * 3 * C], their_bias[3 * C];
    cr_assert(safetensors_read_real(fused, theirs, C * 3 * C, &err) &&
              safetensors_read_real(bias, their_bias, 3 * C, &err));
    static const char *const parts[] = {"query", "key", "value"};
    for (int part = 0; part < 3; part++) {
        char name[80];
        snprintf(name, sizeof name, "blocks.1.attention.%s.weight", parts[part]);
        const real *ours = weights_of(model, name);
        for (int out = 0; out < C; out++)
            for (int in = 0; in < C; in++)
                cr_assert_eq(memcmp(&ours[out * C + in], &theirs[in * 3 * C + part * C + out], sizeof(real)), 0);
        snprintf(name, sizeof name, "blocks.1.attention.%s.bias", parts[part]);
        cr_assert_arr_eq(weights_of(model, name), their_bias + part * C, C * sizeof(real));
    }
    model_free(model);
    safetensors_close(file);
}

Test(hf_weights, shards_are_the_same_as_one_file)
{
    for (size_t i = 0; i < 3; i++) {
        char folder[32], original[128];
        folder_make_empty(folder);
        snprintf(original, sizeof original, "tests/golden/hf/%s/model", models[i]);
        write_config(models[i], folder, NULL, NULL);
        write_tensors(models[i], folder, "a.safetensors", (struct edit){.half = 1});
        write_tensors(models[i], folder, "b.safetensors", (struct edit){.half = 2});
        write_index(models[i], folder, "a.safetensors", "b.safetensors", "");
        struct model *sharded = load_good(folder), *whole = load_good(original);
        assert_same(sharded, whole);
        model_free(sharded);
        model_free(whole);
        folder_remove(folder);
    }
}

Test(hf_weights, sixteen_bits_are_converted_exactly)
{
    char folder[32];
    folder_make_empty(folder);
    write_config("gpt2", folder, NULL, NULL);
    write_tensors("gpt2", folder, "model.safetensors", (struct edit){.bf16 = true});
    struct model *rounded = load_good(folder), *whole = load_good("tests/golden/hf/gpt2/model");
    for (size_t i = 0; i < model_tensors(whole)->total; i++) {
        uint32_t bits, ours;
        memcpy(&bits, &model_parameters(whole)[i], sizeof bits);
        memcpy(&ours, &model_parameters(rounded)[i], sizeof ours);
        cr_assert_eq(ours, bits & 0xffff0000u);
    }
    model_free(rounded);
    model_free(whole);
    folder_remove(folder);
}

Test(hf_weights, names_may_lack_the_prefix)
{
    static const char *const prefixes[] = {"model.", "model.", "transformer."};
    for (size_t i = 0; i < 3; i++) {
        char folder[32], original[128];
        folder_make_empty(folder);
        snprintf(original, sizeof original, "tests/golden/hf/%s/model", models[i]);
        write_config(models[i], folder, NULL, NULL);
        write_tensors(models[i], folder, "model.safetensors", (struct edit){.strip = prefixes[i]});
        struct model *bare = load_good(folder), *whole = load_good(original);
        assert_same(bare, whole);
        model_free(bare);
        model_free(whole);
        folder_remove(folder);
    }
}

Test(hf_weights, biases_on_some_layers_leave_zeros_on_the_others)
{
    enum { LAYERS = 3, BIASES = 4 };
    static const char *const parts[BIASES] = {"q_proj", "k_proj", "v_proj", "o_proj"};
    static const int64_t sizes[BIASES] = {48, 16, 16, 48};
    char folder[32], names[LAYERS * BIASES][64];
    struct safetensors_entry biases[LAYERS * BIASES];
    folder_make_empty(folder);
    for (int i = 0; i < LAYERS * BIASES; i++) {
        snprintf(names[i], sizeof names[i], "model.layers.%d.self_attn.%s.bias", i / BIASES, parts[i % BIASES]);
        biases[i] = entry_make(names[i], 1, sizes[i % BIASES], 1);
    }
    write_config("llama", folder, "\"attention_bias\": false", "\"attention_bias\": true");
    write_tensors("llama", folder, "model.safetensors", (struct edit){.add = biases, .adds = LAYERS * BIASES});
    struct model *model = load_good(folder);
    static const float zeros[88] = {0};
    cr_expect_arr_eq(weights_of(model, "blocks.2.attention.key.bias"), ones, 16 * sizeof(real));
    cr_expect_arr_eq(weights_of(model, "blocks.2.feed_forward.up.bias"), zeros, 88 * sizeof(real));
    cr_expect_arr_eq(weights_of(model, "blocks.0.feed_forward.down.bias"), zeros, 48 * sizeof(real));
    model_free(model);

    write_tensors("llama", folder, "model.safetensors", (struct edit){.add = biases, .adds = 3});
    assert_told(folder, true, "tensor 'model.layers.0.self_attn.o_proj.bias' is missing");
    write_config("llama", folder, NULL, NULL);
    assert_told(folder, true, "tensor 'model.layers.0.self_attn.q_proj.bias' is not used");
    folder_remove(folder);
}

Test(hf_weights, missing_and_unused_tensors_are_named)
{
    char folder[32];
    folder_make_empty(folder);
    write_config("qwen3", folder, NULL, NULL);
    write_tensors("qwen3", folder, "model.safetensors",
                  (struct edit){.rename = "model.layers.1.self_attn.k_norm.weight", .to = "model.layers.1.k_norm"});
    assert_told(folder, true, "tensor 'model.layers.1.self_attn.k_norm.weight' is missing");
    assert_told(folder, true, "tensor 'model.layers.1.k_norm' is not used: it has no place in a Qwen3ForCausalLM");
    write_tensors("qwen3", folder, "model.safetensors",
                  (struct edit){.rename = "model.norm.weight", .to = "norm.weight"});
    assert_told(folder, true, "tensor 'model.norm.weight' is missing");
    assert_told(folder, true, "tensor 'norm.weight' is not used");
    write_config("qwen3", folder, "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1");
    write_config("qwen3", folder, "\"num_key_value_heads\": 2", "\"num_key_value_heads\": 4");
    write_tensors("qwen3", folder, "model.safetensors", (struct edit){.skip = NULL});
    assert_told(folder, true,
                "tensor 'model.layers.0.self_attn.k_proj.weight' has shape [32, 40]: expected [64, 40] by config.json");
    folder_remove(folder);
}

Test(hf_weights, a_norm_of_queries_that_the_settings_lack_is_an_error_that_names_it)
{
    char folder[32];
    const struct safetensors_entry norm = entry_make("model.layers.0.self_attn.q_norm.weight", 1, 8, 1);
    folder_make_empty(folder);
    write_config("llama", folder, NULL, NULL);
    write_tensors("llama", folder, "model.safetensors", (struct edit){.add = &norm});
    assert_told(folder, true, "tensor 'model.layers.0.self_attn.q_norm.weight' is not used");
    folder_remove(folder);
}

Test(hf_weights, a_tied_head_may_be_saved_again)
{
    char folder[32];
    struct error err;
    folder_make_empty(folder);
    write_config("qwen3", folder, NULL, NULL);
    struct safetensors *file = safetensors_open("tests/golden/hf/qwen3/model/model.safetensors", &err);
    struct safetensors_entry head = *safetensors_find(file, "model.embed_tokens.weight");
    head.name = "lm_head.weight";
    write_tensors("qwen3", folder, "model.safetensors", (struct edit){.add = &head});
    assert_told(folder, false, "note: tensor 'lm_head.weight' is not used: it equals the embedding");
    struct safetensors_entry other = entry_make("lm_head.weight", 2, 101, 40);
    write_tensors("qwen3", folder, "model.safetensors", (struct edit){.add = &other});
    assert_told(folder, true, "tie_word_embeddings is true, and it differs from the embedding");
    write_config("qwen3", folder, "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false");
    write_tensors("qwen3", folder, "model.safetensors", (struct edit){.skip = NULL});
    assert_told(folder, true, "tensor 'lm_head.weight' is missing");
    safetensors_close(file);
    folder_remove(folder);
}

Test(hf_weights, buffers_of_the_reference_library_are_noted)
{
    char folder[32];
    struct safetensors_entry mask = entry_make("transformer.h.1.attn.bias", 2, 64, 64),
                             rotary = entry_make("model.layers.0.self_attn.rotary_emb.inv_freq", 1, 4, 1);
    folder_make_empty(folder);
    write_config("gpt2", folder, NULL, NULL);
    write_tensors("gpt2", folder, "model.safetensors", (struct edit){.add = &mask});
    assert_told(folder, false, "note: 1 tensor 'transformer.h.*.attn.bias' is not used");
    mask.name = "transformer.h.2.attn.bias";
    write_tensors("gpt2", folder, "model.safetensors", (struct edit){.add = &mask});
    assert_told(folder, true, "tensor 'transformer.h.2.attn.bias' is not used");
    write_config("llama", folder, NULL, NULL);
    write_tensors("llama", folder, "model.safetensors", (struct edit){.add = &rotary});
    assert_told(folder, false, "note: 1 tensor 'model.layers.*.self_attn.rotary_emb.inv_freq' is not used");
    folder_remove(folder);
}

Test(hf_weights, whole_numbers_are_no_weights)
{
    char folder[32];
    struct safetensors_entry norm = entry_make("model.norm.weight", 1, 40, 1);
    norm.dtype = SAFETENSORS_I32;
    folder_make_empty(folder);
    write_config("qwen3", folder, NULL, NULL);
    write_tensors("qwen3", folder, "model.safetensors", (struct edit){.skip = "model.norm.weight", .add = &norm});
    assert_told(folder, true, "tensor 'model.norm.weight' is of dtype I32: expected F32, F16 or BF16");
    folder_remove(folder);
}

Test(hf_weights, an_index_that_lies_is_refused)
{
    char folder[32];
    const struct safetensors_entry twice = entry_make("model.norm.weight", 1, 40, 1);
    folder_make_empty(folder);
    write_config("qwen3", folder, NULL, NULL);
    assert_told(folder, true, "has no model.safetensors and no model.safetensors.index.json");
    write_tensors("qwen3", folder, "a.safetensors", (struct edit){.half = 1});
    write_tensors("qwen3", folder, "b.safetensors", (struct edit){.half = 2});

    write_index("qwen3", folder, "a.safetensors", "a.safetensors", "");
    assert_told(folder, true, "is not in 'a.safetensors', where weight_map has it");
    write_index("qwen3", folder, "a.safetensors", "c.safetensors", "");
    assert_told(folder, true, "c.safetensors");
    write_index("qwen3", folder, "a.safetensors", "../b.safetensors", "");
    assert_told(folder, true, "weight_map has '../b.safetensors' for tensor");
    write_index("qwen3", folder, "a.safetensors", "/etc/b.safetensors", "");
    assert_told(folder, true, "weight_map has '/etc/b.safetensors' for tensor");
    write_index("qwen3", folder, "a.safetensors", ".safetensors", "");
    assert_told(folder, true, "weight_map has '.safetensors' for tensor");
    write_index("qwen3", folder, "a.safetensors", "b.bin", "");
    assert_told(folder, true, "weight_map has 'b.bin' for tensor");
    write_index("qwen3", folder, "a.safetensors", "b.safetensors", ", \"more\": 7");
    assert_told(folder, true, "weight_map has 'no text' for tensor 'more'");
    write_index("qwen3", folder, "a.safetensors", "b.safetensors", ", \"more\": \"a.safetensors\"");
    assert_told(folder, true, "tensor 'more' is not in 'a.safetensors'");
    write_index("qwen3", folder, "a.safetensors", "b.safetensors", ", \"model.norm.weight\": \"a.safetensors\"");
    assert_told(folder, true, "not correct JSON: duplicate object key");
    write_index("qwen3", folder, "a.safetensors", "b.safetensors", "");
    write_tensors("qwen3", folder, "a.safetensors", (struct edit){.half = 1, .add = &twice});
    assert_told(folder, true, "tensor 'model.norm.weight' is here, and weight_map has it in b.safetensors");
    write_text(folder, "model.safetensors.index.json", "{\"weight_map\": {}}");
    assert_told(folder, true, "weight_map is missing or empty");
    write_text(folder, "model.safetensors.index.json", "[[[[");
    assert_told(folder, true, "not correct JSON");
    write_tensors("qwen3", folder, "model.safetensors", (struct edit){.skip = NULL});
    assert_told(folder, true, "has both model.safetensors and model.safetensors.index.json");
    folder_remove(folder);
}

Test(hf_weights, a_file_cut_by_one_byte_is_refused)
{
    char folder[32], *bytes;
    size_t size;
    struct error err;
    folder_make_empty(folder);
    write_config("llama", folder, NULL, NULL);
    cr_assert(file_read("tests/golden/hf/llama/model/model.safetensors", 1 << 24, &bytes, &size, &err));
    cr_assert(file_write(path_in(folder, "model.safetensors"), bytes, size - 1, &err));
    assert_told(folder, true, "past the end of the data");
    memory_free(bytes);
    folder_remove(folder);
}

Test(hf_weights, nothing_is_allocated_for_sizes_that_only_the_settings_claim)
{
    char folder[32];
    folder_make_empty(folder);
    write_config("llama", folder, "\"intermediate_size\": 88", "\"intermediate_size\": 1048576");
    write_tensors("llama", folder, "model.safetensors", (struct edit){.skip = NULL});
    assert_told(folder, true, "has shape [88, 48]: expected [1048576, 48] by config.json");
    folder_remove(folder);
}
