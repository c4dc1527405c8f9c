/* Keys of config.json by architecture. */
#include "runner/hf_keys.h"

#include <string.h>

#include "core/knob.h"

/* clang-format off */
/* What Llama and Qwen3 both have. */
#define ROTARY_KEYS \
    {"hidden_size", HF_KNOB, .knob = "model.d_model", .presence = HF_REQUIRED}, \
    {"num_hidden_layers", HF_KNOB, .knob = "model.n_layers", .presence = HF_REQUIRED}, \
    {"num_attention_heads", HF_KNOB, .knob = "model.n_heads", .presence = HF_REQUIRED}, \
    {"intermediate_size", HF_KNOB, .knob = "model.ff_hidden", .presence = HF_REQUIRED}, \
    {"max_position_embeddings", HF_KNOB, .knob = "model.context_length", .presence = HF_REQUIRED}, \
    {"rms_norm_eps", HF_KNOB, .knob = "model.norm_epsilon", .presence = HF_REQUIRED}, \
    {"tie_word_embeddings", HF_KNOB, .knob = "model.tied_embeddings"}, \
    {"vocab_size", HF_VOCABULARY, .presence = HF_REQUIRED}, \
    {.name = "hidden_act", .role = HF_ACTIVATION}, \
    {"attention_bias", HF_BIAS, .part = HF_ATTENTION_BIAS}, \
    {"rope_theta", HF_ROPE, .knob = "model.rope_base"}, \
    {"rope_scaling", HF_ROPE, .knob = "model.rope_scale"}, \
    {.name = "rope_parameters", .role = HF_ROPE}, \
    {.name = "runner_rope_layout", .role = HF_ROPE}, /* written by hf_export.h */ \
    {"layer_types", HF_LAYER_TYPES, .presence = HF_NULLABLE},

static const struct hf_key llama_keys[] = {
    ROTARY_KEYS
    {"num_key_value_heads", HF_KNOB, .knob = "model.kv_heads", .presence = HF_NULLABLE},
    {"head_dim", HF_KNOB, .knob = "model.head_dim", .presence = HF_NULLABLE},
    {"mlp_bias", HF_BIAS, .part = HF_FEED_FORWARD_BIAS},
    {"pretraining_tp", HF_ONLY, .accepted = "1"},
    {"sliding_window", HF_ONLY, .accepted = "null"},
    {.name = NULL},
};

/* Its classes have other defaults for what Llama derives, so those must be written. */
static const struct hf_key qwen3_keys[] = {
    ROTARY_KEYS
    {"num_key_value_heads", HF_KNOB, .knob = "model.kv_heads", .presence = HF_REQUIRED},
    {"head_dim", HF_KNOB, .knob = "model.head_dim", .presence = HF_REQUIRED},
    {.name = "sliding_window", .role = HF_FREE}, /* used by nothing while use_sliding_window is false */
    {.name = "max_window_layers", .role = HF_FREE},
    {.name = NULL},
};
/* clang-format on */

static const struct hf_key gpt2_keys[] = {
    {"n_embd", HF_KNOB, .knob = "model.d_model", .presence = HF_REQUIRED},
    {"n_layer", HF_KNOB, .knob = "model.n_layers", .presence = HF_REQUIRED},
    {"n_head", HF_KNOB, .knob = "model.n_heads", .presence = HF_REQUIRED},
    {"n_inner", HF_KNOB, .knob = "model.ff_hidden", .presence = HF_NULLABLE},
    {"n_positions", HF_KNOB, .knob = "model.context_length", .presence = HF_REQUIRED},
    {"layer_norm_epsilon", HF_KNOB, .knob = "model.norm_epsilon", .presence = HF_REQUIRED},
    {"tie_word_embeddings", HF_KNOB, .knob = "model.tied_embeddings"},
    {"vocab_size", HF_VOCABULARY, .presence = HF_REQUIRED},
    {.name = "activation_function", .role = HF_ACTIVATION},
    {"scale_attn_weights", HF_ONLY, .accepted = "true"},
    {"scale_attn_by_inverse_layer_idx", HF_ONLY, .accepted = "false"},
    {.name = "reorder_and_upcast_attn", .role = HF_FREE}, /* in which precision scores are made */
    {.name = "n_ctx", .role = HF_FREE},                   /* n_positions once more */
    {.name = "embd_pdrop", .role = HF_FREE},
    {.name = "attn_pdrop", .role = HF_FREE},
    {.name = "resid_pdrop", .role = HF_FREE},
    {.name = "summary_activation", .role = HF_FREE},
    {.name = "summary_first_dropout", .role = HF_FREE},
    {.name = "summary_proj_to_labels", .role = HF_FREE},
    {.name = "summary_type", .role = HF_FREE},
    {.name = "summary_use_proj", .role = HF_FREE},
    {.name = NULL},
};

static const struct hf_key common_keys[] = {
    {.name = "architectures", .role = HF_ARCHITECTURE},
    {.name = "model_type", .role = HF_ARCHITECTURE},
    /* parts of other models that a reader must not pass over */
    {"use_sliding_window", HF_ONLY, .accepted = "false|null"},
    {"sliding_window", HF_ONLY, .accepted = "null"},
    {"sliding_window_pattern", HF_ONLY, .accepted = "null"},
    {"attention_chunk_size", HF_ONLY, .accepted = "null"},
    {"rope_theta", HF_ONLY, .accepted = "null"},
    {"rope_scaling", HF_ONLY, .accepted = "null"},
    {"rope_parameters", HF_ONLY, .accepted = "null"},
    {"partial_rotary_factor", HF_ONLY, .accepted = "1.0|1|null"},
    {"rotary_pct", HF_ONLY, .accepted = "1.0|1|null"},
    {"no_rope_layers", HF_ONLY, .accepted = "null"},
    {"attn_logit_softcapping", HF_ONLY, .accepted = "null"},
    {"final_logit_softcapping", HF_ONLY, .accepted = "null"},
    {"query_pre_attn_scalar", HF_ONLY, .accepted = "null"},
    {"attention_multiplier", HF_ONLY, .accepted = "1.0|1|null"},
    {"embedding_multiplier", HF_ONLY, .accepted = "1.0|1|null"},
    {"residual_multiplier", HF_ONLY, .accepted = "1.0|1|null"},
    {"logits_scaling", HF_ONLY, .accepted = "1.0|1|null"},
    {"num_experts", HF_ONLY, .accepted = "0|null"},
    {"num_local_experts", HF_ONLY, .accepted = "0|null"},
    {"num_experts_per_tok", HF_ONLY, .accepted = "0|null"},
    {"n_routed_experts", HF_ONLY, .accepted = "0|null"},
    {"moe_intermediate_size", HF_ONLY, .accepted = "0|null"},
    {"alibi", HF_ONLY, .accepted = "false|null"},
    {"qk_layernorm", HF_ONLY, .accepted = "false|null"},
    {"use_qk_norm", HF_ONLY, .accepted = "false|null"},
    {"add_cross_attention", HF_ONLY, .accepted = "false"},
    {"is_encoder_decoder", HF_ONLY, .accepted = "false"},
    {"tie_encoder_decoder", HF_ONLY, .accepted = "false"},
    {"pruned_heads", HF_ONLY, .accepted = "{}|null"},
    {"quantization_config", HF_ONLY, .accepted = "null"},
    {"compression_config", HF_ONLY, .accepted = "null"},
    {.name = NULL},
};

/* What a program does with the model, not what the model computes. */
static const char *const free_keys[] = {"attention_dropout",
                                        "dtype",
                                        "torch_dtype",
                                        "transformers_version",
                                        "use_cache",
                                        "initializer_range",
                                        "bos_token_id",
                                        "eos_token_id",
                                        "pad_token_id",
                                        "sep_token_id",
                                        "decoder_start_token_id",
                                        "_name_or_path",
                                        "_attn_implementation",
                                        "_attn_implementation_autoset",
                                        "attn_implementation",
                                        "auto_map",
                                        "is_decoder",
                                        "output_attentions",
                                        "output_hidden_states",
                                        "return_dict",
                                        "return_dict_in_generate",
                                        "output_scores",
                                        "chunk_size_feed_forward",
                                        "torchscript",
                                        "use_bfloat16",
                                        "tf_legacy_loss",
                                        "gradient_checkpointing",
                                        "id2label",
                                        "label2id",
                                        "num_labels",
                                        "problem_type",
                                        "finetuning_task",
                                        "task_specific_params",
                                        "tokenizer_class",
                                        "prefix",
                                        "bad_words_ids",
                                        "begin_suppress_tokens",
                                        "suppress_tokens",
                                        "forced_bos_token_id",
                                        "forced_eos_token_id",
                                        "cross_attention_hidden_size",
                                        "max_length",
                                        "min_length",
                                        "do_sample",
                                        "early_stopping",
                                        "num_beams",
                                        "num_beam_groups",
                                        "num_return_sequences",
                                        "diversity_penalty",
                                        "length_penalty",
                                        "repetition_penalty",
                                        "encoder_no_repeat_ngram_size",
                                        "no_repeat_ngram_size",
                                        "exponential_decay_length_penalty",
                                        "remove_invalid_values",
                                        "temperature",
                                        "top_k",
                                        "top_p",
                                        "typical_p",
                                        NULL};

static const struct hf_activation silu[] = {{"silu", FEED_FORWARD_SWIGLU}, {"swish", FEED_FORWARD_SWIGLU}, {NULL, 0}};
static const struct hf_activation gelus[] = {{"gelu_new", FEED_FORWARD_GELU_TANH},
                                             {"gelu_pytorch_tanh", FEED_FORWARD_GELU_TANH},
                                             {"gelu", FEED_FORWARD_GELU},
                                             {NULL, 0}};

const struct hf_key *hf_keys_of(const struct hf_architecture *architecture)
{
    return architecture == &hf_gpt2 ? gpt2_keys : architecture == &hf_qwen3 ? qwen3_keys : llama_keys;
}

const struct hf_activation *hf_activations_of(const struct hf_architecture *architecture)
{
    return architecture == &hf_gpt2 ? gelus : silu;
}

static const struct hf_key *find_in(const struct hf_key *keys, const char *name)
{
    for (; keys->name; keys++)
        if (strcmp(keys->name, name) == 0)
            return keys;
    return NULL;
}

const struct hf_key *hf_key_find(const struct hf_architecture *architecture, const char *name)
{
    const struct hf_key *key = find_in(hf_keys_of(architecture), name);
    static const struct hf_key free_key = {.role = HF_FREE};
    for (size_t i = 0; !key && free_keys[i]; i++)
        if (strcmp(free_keys[i], name) == 0)
            return &free_key;
    return key ? key : find_in(common_keys, name);
}
