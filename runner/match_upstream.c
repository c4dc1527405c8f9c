/* The wiring of the model in words: from which tensors, through which operations, each compared tensor comes. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner/match.h"

/* "blocks.3", or what the first block reads. */
static const char *block_input(int64_t block, char name[32])
{
    if (block == 0)
        return "embed";
    snprintf(name, 32, "blocks.%" PRId64, block - 1);
    return name;
}

/* Whether the activation reads two matrices. */
static bool is_gated(const struct model_config *model)
{
    return model_shape_of(model, 1).ff_inputs == 2;
}

/* The activation as the knob has it: "gelu_tanh". */
static const char *activation_name(const struct model_config *model, char name[KNOB_TEXT_SIZE])
{
    return knob_format(knob_find("model.feed_forward"), (union knob_value){.choice = model->feed_forward}, name);
}

static void query_upstream(const struct model_config *model, int64_t block, const char *part, char *buf)
{
    char input[32], norm[64] = "", heads[64] = "";
    if (model->residual == RESIDUAL_PRE)
        snprintf(norm, sizeof norm, "blocks.%" PRId64 ".attention_norm, ", block);
    if (model->qk_norm)
        snprintf(heads, sizeof heads, ", blocks.%" PRId64 ".%s_norm", block, part);
    snprintf(buf, MATCH_UPSTREAM_SIZE, "%s, through %sblocks.%" PRId64 ".%s.weight%s%s", block_input(block, input),
             norm, block, part, heads, model->position == POSITION_ROPE ? ", rotation" : "");
}

static void attention_upstream(const struct model_config *model, int64_t block, char *buf)
{
    char input[32];
    snprintf(buf, MATCH_UPSTREAM_SIZE,
             "blocks.%" PRId64
             ".attention.query and .key, and %s through %sattention.value.weight; scores / sqrt(head_dim), "
             "causal mask, softmax, attention.output.weight",
             block, block_input(block, input), model->residual == RESIDUAL_PRE ? "attention_norm, " : "");
}

static void feed_forward_upstream(const struct model_config *model, int64_t block, char *buf)
{
    char input[32], activation[KNOB_TEXT_SIZE];
    bool pre = model->residual == RESIDUAL_PRE;
    snprintf(buf, MATCH_UPSTREAM_SIZE,
             "%s + blocks.%" PRId64 ".attention, through %s, feed_forward.up%s.weight, %s, feed_forward.down.weight",
             block_input(block, input), block, pre ? "feed_forward_norm" : "attention_norm",
             is_gated(model) ? " and .gate" : "", activation_name(model, activation));
}

static void block_upstream(const struct model_config *model, int64_t block, char *buf)
{
    char input[32];
    if (model->residual == RESIDUAL_PRE)
        snprintf(buf, MATCH_UPSTREAM_SIZE, "%s + blocks.%" PRId64 ".attention + blocks.%" PRId64 ".feed_forward",
                 block_input(block, input), block, block);
    else
        snprintf(buf, MATCH_UPSTREAM_SIZE,
                 "attention_norm(%s + blocks.%" PRId64 ".attention) + blocks.%" PRId64 ".feed_forward, through "
                 "feed_forward_norm",
                 block_input(block, input), block, block);
}

/* Everything of a block whose inside is not compared. */
static void whole_block_upstream(const struct model_config *model, int64_t block, char *buf)
{
    char input[32], activation[KNOB_TEXT_SIZE];
    bool pre = model->residual == RESIDUAL_PRE;
    snprintf(buf, MATCH_UPSTREAM_SIZE,
             "%s, through all of blocks.%" PRId64
             ": %squery, key and value weights%s%s, scores / sqrt(head_dim), causal mask, "
             "softmax, %soutput weight, residual%s; %s%s, %s, down weight, residual%s",
             block_input(block, input), block, pre ? "attention_norm, " : "",
             model->qk_norm ? ", query and key norm" : "", model->position == POSITION_ROPE ? ", rotation" : "",
             model->kv_heads && model->kv_heads != model->n_heads ? "each value head for its query heads, " : "",
             pre ? "" : ", attention_norm", pre ? "feed_forward_norm, " : "",
             is_gated(model) ? "up and gate weights" : "up weight", activation_name(model, activation),
             pre ? "" : ", feed_forward_norm");
}

/* The tensors of a block that an observer sees besides those of the reference cases. */
static void inner_upstream(const struct model_config *model, int64_t block, const char *part, char *buf)
{
    char input[32], middle[96], activation[KNOB_TEXT_SIZE];
    bool pre = model->residual == RESIDUAL_PRE;
    const char *before = block_input(block, input);
    snprintf(middle, sizeof middle, "%s + blocks.%" PRId64 ".attention", before, block);
    if (strcmp(part, "attention_norm") == 0)
        snprintf(buf, MATCH_UPSTREAM_SIZE, "%s, through blocks.%" PRId64 ".attention_norm", pre ? before : middle,
                 block);
    else if (strcmp(part, "attention.value") == 0)
        snprintf(buf, MATCH_UPSTREAM_SIZE, "%s, through %sblocks.%" PRId64 ".attention.value.weight", before,
                 pre ? "attention_norm, " : "", block);
    else if (strcmp(part, "attention.mix") == 0)
        snprintf(buf, MATCH_UPSTREAM_SIZE,
                 "blocks.%" PRId64 ".attention.query, .key and .value; scores / sqrt(head_dim), causal mask, softmax",
                 block);
    else if (strcmp(part, "feed_forward_norm") == 0)
        snprintf(buf, MATCH_UPSTREAM_SIZE, "%s%s, through blocks.%" PRId64 ".feed_forward_norm", middle,
                 pre ? "" : " through attention_norm, + feed_forward", block);
    else if (strcmp(part, "feed_forward.activation") == 0)
        snprintf(buf, MATCH_UPSTREAM_SIZE, "what up%s of blocks.%" PRId64 " give, through %s",
                 is_gated(model) ? " and gate" : "", block, activation_name(model, activation));
    else
        snprintf(buf, MATCH_UPSTREAM_SIZE, "%s, through %s, blocks.%" PRId64 ".feed_forward.up%s.weight", middle,
                 pre ? "feed_forward_norm" : "attention_norm", block, is_gated(model) ? " and .gate" : "");
}

static void embed_upstream(const struct model_config *model, char *buf)
{
    static const char *const position[] = {
        [POSITION_LEARNED] = " + position_embedding.weight",
        [POSITION_SINUSOIDAL] = " + the table of sines and cosines",
        [POSITION_ROPE] = "",
        [POSITION_NONE] = "",
    };
    snprintf(buf, MATCH_UPSTREAM_SIZE, "inputs, through token_embedding.weight%s", position[model->position]);
}

static void forward_upstream(const struct reference_case *reference, const char *name, char *buf)
{
    const struct model_config *model = &reference->config.model;
    const char *head = model->tied_embeddings ? "token_embedding.weight (tied head)" : "lm_head.weight";
    char *rest = NULL;
    int64_t block = strncmp(name, "blocks.", 7) == 0 ? strtoll(name + 7, &rest, 10) : 0;
    if (strcmp(name, "embed") == 0)
        embed_upstream(model, buf);
    else if (rest && *rest == 0) {
        char inside[96];
        snprintf(inside, sizeof inside, "%.80s.", name);
        if (case_expects(reference, inside))
            block_upstream(model, block, buf);
        else
            whole_block_upstream(model, block, buf);
    } else if (rest && (strcmp(rest, ".attention.query") == 0 || strcmp(rest, ".attention.key") == 0))
        query_upstream(model, block, rest + 1, buf);
    else if (rest && strcmp(rest, ".attention") == 0)
        attention_upstream(model, block, buf);
    else if (rest && strcmp(rest, ".feed_forward") == 0)
        feed_forward_upstream(model, block, buf);
    else if (rest)
        inner_upstream(model, block, rest + 1, buf);
    else if (strcmp(name, "final_norm") == 0)
        snprintf(buf, MATCH_UPSTREAM_SIZE, "blocks.%" PRId64 ", through final_norm", model->n_layers - 1);
    else if (strcmp(name, "logits") == 0)
        snprintf(buf, MATCH_UPSTREAM_SIZE, "final_norm, through %s", head);
    else
        snprintf(buf, MATCH_UPSTREAM_SIZE, "final_norm, through mtp_adapters.%ld.weight, %s",
                 strtol(name + strlen("logits.depth"), NULL, 10) - 2, head);
}

const char *match_upstream(const struct reference_case *reference, const struct match_row *row,
                           char buf[MATCH_UPSTREAM_SIZE])
{
    switch (row->pass) {
    case MATCH_FORWARD: forward_upstream(reference, row->name, buf); break;
    case MATCH_GREEDY:
        snprintf(buf, MATCH_UPSTREAM_SIZE,
                 "logits of the last token, through the largest of them, token by token; keys and values of "
                 "earlier tokens come from a cache");
        break;
    case MATCH_GRADIENT:
        snprintf(buf, MATCH_UPSTREAM_SIZE, "the forward pass, then backward from the loss of batch 0 to %s",
                 row->name + strlen("grad."));
        break;
    case MATCH_TRAINING:
        snprintf(
            buf, MATCH_UPSTREAM_SIZE,
            "the forward pass, the gradients, clipping by global norm, decay and AdamW updates of the steps before");
        break;
    }
    return buf;
}
