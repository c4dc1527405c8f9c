/* libFuzzer target: any text as a config.json, and as an index of shards. What is taken must be a model that could be
 * made; what is refused has a reason. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "core/tensor.h"
#include "runner/hf_config.h"
#include "runner/hf_shards.h"
#include "tests/fuzz/json_mutator.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned seed);

enum { FEW = 4 };

static const char *const keys[] = {"hidden_size",
                                   "num_hidden_layers",
                                   "num_attention_heads",
                                   "num_key_value_heads",
                                   "head_dim",
                                   "intermediate_size",
                                   "max_position_embeddings",
                                   "rms_norm_eps",
                                   "tie_word_embeddings",
                                   "vocab_size",
                                   "hidden_act",
                                   "attention_bias",
                                   "mlp_bias",
                                   "rope_theta",
                                   "rope_scaling",
                                   "rope_parameters",
                                   "runner_rope_layout",
                                   "pretraining_tp",
                                   "sliding_window",
                                   "layer_types",
                                   "max_window_layers",
                                   "n_embd",
                                   "n_layer",
                                   "n_head",
                                   "n_inner",
                                   "n_positions",
                                   "layer_norm_epsilon",
                                   "activation_function",
                                   "scale_attn_weights",
                                   "scale_attn_by_inverse_layer_idx",
                                   "reorder_and_upcast_attn",
                                   "n_ctx",
                                   "embd_pdrop",
                                   "attn_pdrop",
                                   "resid_pdrop",
                                   "summary_activation",
                                   "summary_first_dropout",
                                   "summary_proj_to_labels",
                                   "summary_type",
                                   "summary_use_proj",
                                   "architectures",
                                   "model_type",
                                   "use_sliding_window",
                                   "sliding_window_pattern",
                                   "attention_chunk_size",
                                   "partial_rotary_factor",
                                   "rotary_pct",
                                   "no_rope_layers",
                                   "attn_logit_softcapping",
                                   "final_logit_softcapping",
                                   "query_pre_attn_scalar",
                                   "attention_multiplier",
                                   "embedding_multiplier",
                                   "residual_multiplier",
                                   "logits_scaling",
                                   "num_experts",
                                   "num_local_experts",
                                   "num_experts_per_tok",
                                   "n_routed_experts",
                                   "moe_intermediate_size",
                                   "alibi",
                                   "qk_layernorm",
                                   "use_qk_norm",
                                   "add_cross_attention",
                                   "is_encoder_decoder",
                                   "tie_encoder_decoder",
                                   "pruned_heads",
                                   "quantization_config",
                                   "compression_config",
                                   "attention_dropout",
                                   "type",
                                   "rope_type",
                                   "factor",
                                   "low_freq_factor",
                                   "high_freq_factor",
                                   "original_max_position_embeddings",
                                   "weight_map",
                                   "metadata",
                                   "a",
                                   NULL};
static const char *const words[] = {"0",
                                    "1",
                                    "-1",
                                    "2",
                                    "3",
                                    "4",
                                    "7",
                                    "8",
                                    "16",
                                    "64",
                                    "4096",
                                    "65536",
                                    "1048576",
                                    "9223372036854775807",
                                    "1e-5",
                                    "0.5",
                                    "1.0",
                                    "1e308",
                                    "4.9e-324",
                                    "null",
                                    "true",
                                    "false",
                                    "{}",
                                    "[]",
                                    "\"\"",
                                    "\"default\"",
                                    "\"linear\"",
                                    "\"llama3\"",
                                    "\"yarn\"",
                                    "\"adjacent\"",
                                    "\"split\"",
                                    "\"silu\"",
                                    "\"gelu\"",
                                    "\"gelu_new\"",
                                    "\"llama\"",
                                    "\"qwen3\"",
                                    "\"gpt2\"",
                                    "\"full_attention\"",
                                    "\"a.safetensors\"",
                                    "\"../a.safetensors\"",
                                    "\"LlamaForCausalLM\"",
                                    "[\"LlamaForCausalLM\"]",
                                    "[\"Qwen3ForCausalLM\"]",
                                    "[\"GPT2LMHeadModel\"]",
                                    "[\"full_attention\",\"full_attention\"]",
                                    "{\"rope_type\":\"linear\",\"factor\":2}",
                                    "{\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":1,\"high_freq_factor\":"
                                    "4,\"original_max_position_embeddings\":64}",
                                    "{\"a\":\"a.safetensors\",\"b\":\"b.safetensors\"}",
                                    NULL};

static void check_config(const struct hf_config *config)
{
    struct model_shape s = model_shape_of(&config->config.model, config->vocab_size);
    assert(s.vocab_size > 0 && s.d_model > 0 && s.n_layers > 0 && s.n_heads > 0 && s.kv_heads > 0 && s.head_dim > 0);
    assert(s.ff_hidden > 0 && s.context_length > 0 && s.n_heads % s.kv_heads == 0 && s.norm_epsilon > 0);
    assert(!config_check(&config->config, NULL, NULL));
    for (int64_t i = 0; config->frequencies && i < s.head_dim / 2; i++)
        assert(isfinite(config->frequencies[i]));
    if (s.n_layers > FEW) /* one block is like the other, and thousands of names take their time */
        return;
    struct tensor_table *table = tensor_table_create(&config->config.model, config->vocab_size);
    assert(table->total > 0);
    for (size_t i = 0; i < table->count; i++) {
        int64_t block;
        assert(hf_tensor_find(config->architecture, table->tensors[i].name, &block));
    }
    tensor_table_free(table);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct hf_config config;
    struct problems problems;
    json_t *root = NULL;
    problems_init(&problems);
    bool good = hf_config_parse("fuzz", (const char *)bytes, size, &config, &problems);
    assert(good == (problems.errors == 0));
    if (good)
        check_config(&config);
    hf_config_release(&config);
    hf_index_parse("fuzz", (const char *)bytes, size, &root, &problems);
    json_decref(root);
    problems_release(&problems);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned seed)
{
    size_t length = seed % 4 ? json_mutate((char *)bytes, size, most, keys, words, seed) : 0;
    return length ? length : LLVMFuzzerMutate(bytes, size, most);
}
