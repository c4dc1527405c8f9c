/* config.json of other people's models: both layouts, and what is refused by its key. */
#include "runner/hf_config.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char llama[] =
    "{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\", \"vocab_size\": 100, \"hidden_size\": 48, "
    "\"intermediate_size\": 88, \"num_hidden_layers\": 3, \"num_attention_heads\": 6, \"num_key_value_heads\": 2, "
    "\"head_dim\": 16, \"max_position_embeddings\": 64, \"rms_norm_eps\": 1e-05, \"hidden_act\": \"silu\", "
    "\"rope_theta\": 500000, \"rope_scaling\": null, \"tie_word_embeddings\": false, \"torch_dtype\": \"bfloat16\"}";
static const char qwen3[] =
    "{\"architectures\": [\"Qwen3ForCausalLM\"], \"model_type\": \"qwen3\", \"vocab_size\": 100, \"hidden_size\": 40, "
    "\"intermediate_size\": 72, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"num_key_value_heads\": 2, "
    "\"head_dim\": 16, \"max_position_embeddings\": 64, \"rms_norm_eps\": 1e-06, \"hidden_act\": \"silu\", "
    "\"rope_parameters\": {\"rope_theta\": 1000000.0, \"rope_type\": \"default\"}, \"use_sliding_window\": false, "
    "\"layer_types\": [\"full_attention\", \"full_attention\"], \"tie_word_embeddings\": true, \"dtype\": \"float32\"}";
static const char gpt2[] =
    "{\"architectures\": [\"GPT2LMHeadModel\"], \"model_type\": \"gpt2\", \"vocab_size\": 89, \"n_embd\": 48, "
    "\"n_head\": 4, \"n_inner\": null, \"n_layer\": 2, \"n_positions\": 64, \"n_ctx\": 64, "
    "\"layer_norm_epsilon\": 1e-05, \"activation_function\": \"gelu_new\", \"scale_attn_weights\": true}";

/* ---- reading an edited text ---- */

/* text with the first `old` replaced. Owner: caller, free(). */
static char *edited(const char *text, const char *old, const char *new)
{
    const char *at = strstr(text, old);
    cr_assert_not_null(at, "'%s' is not in the text", old);
    size_t size = strlen(text) + strlen(new) + 1;
    char *out = malloc(size);
    snprintf(out, size, "%.*s%s%s", (int)(at - text), text, new, at + strlen(old));
    return out;
}

static struct hf_config read_good(const char *text)
{
    struct hf_config config;
    struct problems problems;
    problems_init(&problems);
    bool good = hf_config_parse("config.json", text, strlen(text), &config, &problems);
    cr_assert(good, "%s", problems.count ? problems.items[0].text : "refused without a reason");
    cr_assert_eq(problems.count, 0, "%s", problems.items[0].text);
    problems_release(&problems);
    return config;
}

static struct hf_config read_edited(const char *text, const char *old, const char *new)
{
    char *changed = edited(text, old, new);
    struct hf_config config = read_good(changed);
    free(changed);
    return config;
}

/* Refused, or noted: one of the problems holds part. */
static void assert_problem(const char *text, size_t size, bool refused, const char *part)
{
    struct hf_config config;
    struct problems problems;
    problems_init(&problems);
    bool good = hf_config_parse("config.json", text, size, &config, &problems), found = false;
    for (size_t i = 0; i < problems.count; i++)
        found = found || strstr(problems.items[i].text, part);
    cr_expect_eq(good, !refused, "with %s", part);
    cr_expect(found, "'%s' should hold '%s'", problems.count ? problems.items[0].text : "", part);
    hf_config_release(&config);
    problems_release(&problems);
}

static void assert_refused(const char *base, const char *old, const char *new, const char *part)
{
    char *text = edited(base, old, new);
    assert_problem(text, strlen(text), true, part);
    free(text);
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-12 * fabs(b);
}

/* ---- tests ---- */

Test(hf_config, llama_means_these_settings)
{
    struct hf_config config = read_good(llama);
    const struct model_config *m = &config.config.model;
    cr_expect(config.architecture == &hf_llama);
    cr_expect_eq(config.vocab_size, 100);
    cr_expect_eq(m->d_model, 48);
    cr_expect_eq(m->n_layers, 3);
    cr_expect_eq(m->n_heads, 6);
    cr_expect_eq(m->kv_heads, 2);
    cr_expect_eq(m->head_dim, 16);
    cr_expect_eq(m->ff_hidden, 88);
    cr_expect_eq(m->context_length, 64);
    cr_expect_eq(m->norm, NORM_RMSNORM);
    cr_expect_eq(m->feed_forward, FEED_FORWARD_SWIGLU);
    cr_expect_eq(m->position, POSITION_ROPE);
    cr_expect_eq(m->rope_layout, ROPE_SPLIT);
    cr_expect_eq(m->residual, RESIDUAL_PRE);
    cr_expect(near(m->norm_epsilon, 1e-5));
    cr_expect(near(m->rope_base, 500000));
    cr_expect(near(m->rope_scale, 1));
    cr_expect(!m->qk_norm && !m->tied_embeddings && !m->linear_bias);
    cr_expect_null(config.frequencies);
}

Test(hf_config, qwen3_means_these_settings)
{
    struct hf_config config = read_good(qwen3);
    const struct model_config *m = &config.config.model;
    cr_expect(config.architecture == &hf_qwen3);
    cr_expect(m->qk_norm && m->tied_embeddings && !m->linear_bias);
    cr_expect(near(m->rope_base, 1e6));
    cr_expect(near(m->norm_epsilon, 1e-6));
    cr_expect_eq(m->rope_layout, ROPE_SPLIT);
}

Test(hf_config, gpt2_means_these_settings)
{
    struct hf_config config = read_good(gpt2);
    const struct model_config *m = &config.config.model;
    struct model_shape shape = model_shape_of(m, config.vocab_size);
    cr_expect(config.architecture == &hf_gpt2);
    cr_expect_eq(shape.ff_hidden, 4 * 48);
    cr_expect_eq(shape.head_dim, 12);
    cr_expect_eq(m->norm, NORM_LAYERNORM);
    cr_expect_eq(m->feed_forward, FEED_FORWARD_GELU_TANH);
    cr_expect_eq(m->position, POSITION_LEARNED);
    cr_expect(m->linear_bias && m->tied_embeddings, "tied unless said otherwise");
    config = read_edited(gpt2, "\"n_inner\": null", "\"n_inner\": 100");
    cr_expect_eq(config.config.model.ff_hidden, 100);
    config = read_edited(gpt2, "gelu_new", "gelu");
    cr_expect_eq(config.config.model.feed_forward, FEED_FORWARD_GELU);
    config = read_edited(gpt2, "\"n_ctx\": 64", "\"tie_word_embeddings\": false");
    cr_expect(!config.config.model.tied_embeddings);
}

Test(hf_config, sizes_left_out_are_derived)
{
    struct hf_config config = read_edited(llama, "\"num_key_value_heads\": 2, \"head_dim\": 16, ", "");
    struct model_shape shape = model_shape_of(&config.config.model, 1);
    cr_expect_eq(shape.kv_heads, 6);
    cr_expect_eq(shape.head_dim, 8);
    config = read_edited(llama, "\"head_dim\": 16", "\"head_dim\": null");
    cr_expect_eq(model_shape_of(&config.config.model, 1).head_dim, 8);
    config = read_edited(llama, "\"rope_theta\": 500000, ", "");
    cr_expect(near(config.config.model.rope_base, 10000), "the default of the reference library");
    assert_refused(qwen3, "\"head_dim\": 16, ", "",
                   "head_dim is missing: expected a whole number from 0 to 65536, and above 0");
    assert_refused(llama, "\"hidden_size\": 48, ", "", "hidden_size is missing: expected a whole number");
    assert_refused(llama, "\"rms_norm_eps\": 1e-05, ", "", "rms_norm_eps is missing");
}

Test(hf_config, both_layouts_of_rotation_mean_the_same)
{
    struct hf_config config =
        read_edited(llama, "\"rope_scaling\": null", "\"rope_scaling\": {\"type\": \"linear\", \"factor\": 4.0}");
    cr_expect(near(config.config.model.rope_scale, 4));
    cr_expect(near(config.config.model.rope_base, 500000));
    config = read_edited(llama, "\"rope_theta\": 500000, \"rope_scaling\": null",
                         "\"rope_parameters\": {\"rope_type\": \"linear\", \"factor\": 4, \"rope_theta\": 500000.0}");
    cr_expect(near(config.config.model.rope_scale, 4));
    cr_expect(near(config.config.model.rope_base, 500000));
    config = read_edited(llama, "\"rope_scaling\": null",
                         "\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 500000.0}");
    cr_expect(near(config.config.model.rope_scale, 1));
}

/* Expected values: the formula of the reference library (branches on wavelengths), run apart from our code. */
Test(hf_config, llama3_scaling_stretches_long_wavelengths)
{
    static const double expected[] = {1.0,
                                      0.19392274474868576,
                                      0.03760603093086393,
                                      0.0072926647372171085,
                                      0.0005248461609929547,
                                      3.428102195952591e-05,
                                      6.647869871181236e-06,
                                      1.2891731721515574e-06};
    struct hf_config config =
        read_edited(llama, "\"rope_scaling\": null",
                    "\"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8.0, \"low_freq_factor\": 1.0, "
                    "\"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 8192}");
    cr_assert_not_null(config.frequencies);
    for (size_t i = 0; i < 8; i++)
        cr_expect(near(config.frequencies[i], expected[i]), "pair %zu: %.17g, not %.17g", i, config.frequencies[i],
                  expected[i]);
    hf_config_release(&config);
}

Test(hf_config, rotations_that_core_cannot_do_are_refused)
{
    static const struct {
        const char *scaling, *part;
    } cases[] = {
        {"{\"type\": \"yarn\", \"factor\": 4}",
         "rope_scaling.type is \"yarn\": expected \"default\", \"linear\" or \"llama3\""},
        {"{\"rope_type\": \"dynamic\", \"factor\": 4}", "rope_scaling.rope_type is \"dynamic\""},
        {"{\"rope_type\": \"longrope\"}", "rope_scaling.rope_type is \"longrope\""},
        {"{\"factor\": 4}", "rope_scaling.rope_type is missing"},
        {"{\"rope_type\": 7}", "rope_scaling.rope_type is 7"},
        {"{\"rope_type\": \"linear\", \"type\": \"default\", \"factor\": 2}", "rope_scaling.type is \"default\""},
        {"{\"rope_type\": \"linear\"}", "rope_scaling.factor is missing: expected a"},
        {"{\"rope_type\": \"linear\", \"factor\": 0}", "rope_scaling.factor is 0"},
        {"{\"rope_type\": \"linear\", \"factor\": -2}", "rope_scaling.factor is -2"},
        {"{\"rope_type\": \"linear\", \"factor\": \"2\"}", "rope_scaling.factor is \"2\""},
        {"{\"rope_type\": \"default\", \"factor\": 2}", "rope_scaling.factor is 2: expected no such key"},
        {"{\"rope_type\": \"linear\", \"factor\": 2, \"beta_fast\": 32}", "rope_scaling.beta_fast is 32"},
        {"{\"rope_type\": \"default\", \"partial_rotary_factor\": 0.5}", "partial_rotary_factor is 0.5: expected 1.0"},
        {"{\"rope_type\": \"default\", \"rope_theta\": 7}",
         "rope_theta is 500000: expected the same as rope_scaling.r"},
        {"{\"rope_type\": \"llama3\", \"factor\": 8}", "rope_scaling.low_freq_factor is missing"},
        {"{\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 4, \"high_freq_factor\": 4, "
         "\"original_max_position_embeddings\": 8192}",
         "rope_scaling.high_freq_factor is 4: expected more than low_freq_factor"},
        {"{\"rope_type\": \"llama3\", \"factor\": 1e-320, \"low_freq_factor\": 1, \"high_freq_factor\": 4, "
         "\"original_max_position_embeddings\": 8192}",
         "expected one that gives finite rotation speeds with rope_theta 500000"},
        {"{\"rope_type\": \"linear\", \"factor\": 1e-308}", "rope_scaling: rope_scale 1e-308 makes rotation speeds"},
        {"[1]", "rope_scaling is [1]: expected null or an object"},
        {"{\"full_attention\": {\"rope_type\": \"default\"}}", "rope_scaling.full_attention is "},
        {"null, \"rope_parameters\": {\"rope_theta\": 0}", "rope_parameters.rope_theta is 0"},
        {"{\"rope_type\": \"default\"}, \"rope_parameters\": {\"rope_theta\": 1}", "rope_scaling is {"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char new[256];
        snprintf(new, sizeof new, "\"rope_scaling\": %s", cases[i].scaling);
        assert_refused(llama, "\"rope_scaling\": null", new, cases[i].part);
    }
}

Test(hf_config, what_core_cannot_do_is_refused_by_its_key)
{
    static const struct {
        const char *base, *old, *new, *part;
    } cases[] = {
        {llama, "\"silu\"", "\"gelu\"", "hidden_act is \"gelu\": expected silu or swish"},
        {gpt2, "gelu_new", "relu", "activation_function is \"relu\": expected gelu_new, gelu_pytorch_tanh or gelu"},
        {qwen3, "\"use_sliding_window\": false", "\"use_sliding_window\": true",
         "use_sliding_window is true: expected false or null"},
        {qwen3, "[\"full_attention\", \"full_attention\"]", "[\"full_attention\", \"sliding_attention\"]",
         "layer_types[1] is \"sliding_attention\": expected \"full_attention\""},
        {qwen3, "[\"full_attention\", \"full_attention\"]", "[\"full_attention\"]", "expected null or a list of 2"},
        {llama, "\"rope_scaling\": null", "\"sliding_window\": 4096", "sliding_window is 4096: expected null"},
        {llama, "\"rope_scaling\": null", "\"num_local_experts\": 8", "num_local_experts is 8: expected 0 or null"},
        {llama, "\"rope_scaling\": null", "\"partial_rotary_factor\": 0.5", "partial_rotary_factor is 0.5"},
        {llama, "\"rope_scaling\": null", "\"attn_logit_softcapping\": 50.0", "attn_logit_softcapping is 50.0"},
        {llama, "\"rope_scaling\": null", "\"quantization_config\": {\"bits\": 4}",
         "quantization_config is {\"bits\":4}"},
        {llama, "\"rope_scaling\": null", "\"pretraining_tp\": 2", "pretraining_tp is 2: expected 1"},
        {gpt2, "\"n_ctx\": 64", "\"scale_attn_by_inverse_layer_idx\": true", "scale_attn_by_inverse_layer_idx is true"},
        {gpt2, "\"scale_attn_weights\": true", "\"scale_attn_weights\": false", "scale_attn_weights is false"},
        {gpt2, "\"n_ctx\": 64", "\"add_cross_attention\": true", "add_cross_attention is true"},
        {gpt2, "\"n_ctx\": 64", "\"rope_scaling\": {\"rope_type\": \"yarn\"}", "rope_scaling is {"},
        {qwen3, "1000000.0, \"rope_type\": \"default\"", "1e-323, \"rope_type\": \"linear\", \"factor\": 1e-30",
         "rope_theta: rope_base 1e-323 with rope_scale 1e-30 makes rotation speeds"},
        {llama, "LlamaForCausalLM", "MistralForCausalLM",
         "architectures is [\"MistralForCausalLM\"]: expected [\"LlamaForCausalLM\"], [\"Qwen3ForCausalLM\"] or "
         "[\"GPT2LMHeadModel\"]"},
        {llama, "\"LlamaForCausalLM\"", "\"LlamaForCausalLM\", \"Qwen3ForCausalLM\"", "architectures is ["},
        {llama, "\"architectures\": [\"LlamaForCausalLM\"], ", "", "architectures is missing"},
        {llama, "\"llama\"", "\"mistral\"", "model_type is \"mistral\": expected \"llama\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_refused(cases[i].base, cases[i].old, cases[i].new, cases[i].part);
}

Test(hf_config, wrong_kinds_and_ranges_are_refused)
{
    static const struct {
        const char *old, *new, *part;
    } cases[] = {
        {"\"hidden_size\": 48", "\"hidden_size\": \"48\"", "hidden_size is \"48\": expected a whole number"},
        {"\"hidden_size\": 48", "\"hidden_size\": 48.0", "hidden_size is 48.0: expected a whole number"},
        {"\"hidden_size\": 48", "\"hidden_size\": 0", "hidden_size is 0: expected a whole number from 1 to 65536"},
        {"\"hidden_size\": 48", "\"hidden_size\": -48", "hidden_size is -48"},
        {"\"hidden_size\": 48", "\"hidden_size\": 9223372036854775807", "hidden_size is 9223372036854775807"},
        {"\"hidden_size\": 48", "\"hidden_size\": 92233720368547758070", "not correct JSON: too big integer"},
        {"\"hidden_size\": 48", "\"hidden_size\": null", "hidden_size is null"},
        {"\"hidden_size\": 48", "\"hidden_size\": 48, \"hidden_size\": 48", "duplicate object key"},
        {"\"num_key_value_heads\": 2", "\"num_key_value_heads\": 4",
         "num_key_value_heads: kv_heads 4 is not a divisor"},
        {"\"num_key_value_heads\": 2", "\"num_key_value_heads\": 0",
         "num_key_value_heads is 0: expected a whole number "
         "from 0 to 4096, and above 0"},
        {"\"head_dim\": 16", "\"head_dim\": 15", "head_dim: position rope needs an even head_dim"},
        {"\"num_attention_heads\": 6", "\"num_attention_heads\": 4097", "num_attention_heads is 4097"},
        {"\"num_hidden_layers\": 3", "\"num_hidden_layers\": 1025", "num_hidden_layers is 1025"},
        {"\"vocab_size\": 100", "\"vocab_size\": 0", "vocab_size is 0: expected a whole number from 1 to 1000000"},
        {"\"vocab_size\": 100", "\"vocab_size\": 1e2", "vocab_size is 100.0"},
        {"\"rms_norm_eps\": 1e-05", "\"rms_norm_eps\": 0",
         "rms_norm_eps is 0: expected a number of at least 0 and at most 1, and above 0"},
        {"\"rms_norm_eps\": 1e-05", "\"rms_norm_eps\": -1e-05", "rms_norm_eps is -1"},
        {"\"rms_norm_eps\": 1e-05", "\"rms_norm_eps\": 1e999", "not correct JSON: real number overflow"},
        {"\"rms_norm_eps\": 1e-05", "\"rms_norm_eps\": NaN", "not correct JSON"},
        {"\"rope_theta\": 500000", "\"rope_theta\": -1", "rope_theta is -1: expected a"},
        {"\"rope_theta\": 500000", "\"rope_theta\": [1]", "rope_theta is [1]"},
        {"\"tie_word_embeddings\": false", "\"tie_word_embeddings\": 0", "tie_word_embeddings is 0: expected true"},
        {"\"tie_word_embeddings\": false", "\"attention_bias\": \"no\"", "attention_bias is \"no\": expected true or"},
        {"\"model_type\": \"llama\"", "\"model_type\": 7", "model_type is 7"},
        {"[\"LlamaForCausalLM\"]", "\"LlamaForCausalLM\"", "architectures is \"LlamaForCausalLM\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)

        assert_refused(llama, cases[i].old, cases[i].new, cases[i].part);
}

Test(hf_config, all_that_is_wrong_is_named_at_once)
{
    char *first = edited(llama, "\"hidden_size\": 48", "\"hidden_size\": 0"),
         *text = edited(first, "\"silu\"", "\"gelu\"");
    assert_problem(text, strlen(text), true, "hidden_size is 0");
    assert_problem(text, strlen(text), true, "hidden_act is \"gelu\"");
    free(first);
    free(text);
}

Test(hf_config, keys_not_known_are_named_in_a_note)
{
    char *text = edited(llama, "\"rope_scaling\": null", "\"unsloth_version\": \"x\", \"_name_or_path\": \"y\"");
    assert_problem(text, strlen(text), false, "note: keys not known here, and not used: 'unsloth_version'");
    free(text);
}

Test(hf_config, biases_may_be_on_one_kind_of_layer)
{
    struct hf_config config = read_edited(llama, "\"rope_scaling\": null", "\"attention_bias\": true");
    cr_expect(config.attention_bias && !config.feed_forward_bias);
    cr_expect(config.config.model.linear_bias);
    config = read_edited(llama, "\"rope_scaling\": null", "\"mlp_bias\": true");
    cr_expect(!config.attention_bias && config.feed_forward_bias);
}

Test(hf_config, text_that_is_no_configuration_is_refused)
{
    enum { DEPTH = 100000 };
    char *nested = malloc(DEPTH + 1);
    memset(nested, '[', DEPTH);
    nested[DEPTH] = 0;
    assert_problem(nested, DEPTH, true, "not correct JSON: maximum parsing depth");
    memcpy(nested, "{\"a\":", 5);
    assert_problem(nested, DEPTH, true, "not correct JSON: maximum parsing depth");
    free(nested);
    assert_problem("", 0, true, "not correct JSON");
    assert_problem("[]", 2, true, "expected an object with \"architectures\"");
    assert_problem("{}", 2, true, "architectures is missing");
    assert_problem("{\"a\xff\": 1}", 8, true, "not correct JSON");
    assert_problem("{\"a\\u0000b\": 1}", 14, true, "not correct JSON");
    for (size_t size = 0; size + 1 < sizeof llama; size += 7)
        assert_problem(llama, size, true, "not correct JSON");
    struct problems problems;
    struct hf_config config;
    problems_init(&problems);
    cr_expect(!hf_config_read("/nowhere/config.json", &config, &problems));
    cr_expect_eq(problems.errors, 1);
    hf_config_release(&config);
    problems_release(&problems);
}
