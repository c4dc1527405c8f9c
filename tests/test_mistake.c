/* Each classic mistake, put in on purpose, departs first where it should; where it cannot be made, the reason is told.
 */
#include "runner/mistake.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "runner/match.h"

/* A case of tests/golden; with "hf/..." the model is in its folder. */
static void open_case(const char *name, struct reference_case *reference)
{
    char folder[128], model[160];
    struct problems problems;
    problems_init(&problems);
    snprintf(folder, sizeof folder, "tests/golden/%s", name);
    snprintf(model, sizeof model, "%s/model", folder);
    bool hf = strncmp(name, "hf/", 3) == 0;
    cr_assert(case_open(folder, hf ? model : NULL, reference, &problems), "%s",
              problems.count ? problems.items[0].text : name);
    problems_release(&problems);
}

/* First departure with the mistake in; rows before it are right. */
static void assert_departs(const char *name, const char *kind, const char *first, const char *hint)
{
    struct reference_case reference;
    struct match match;
    struct problems problems;
    struct error err;
    char text[MISTAKE_TEXT_SIZE];
    problems_init(&problems);
    open_case(name, &reference);
    cr_assert(mistake_put_in(mistake_find(kind), &reference, text, &err), "%s: %s", kind, err.text);
    cr_assert(match_run(&reference, MATCH_TOLERANCE, NULL, &match, &problems), "%s",
              problems.count ? problems.items[0].text : "");
    cr_assert_not_null(match.first, "%s of %s departs nowhere", kind, name);
    cr_expect_str_eq(match.first->name, first, "%s of %s: '%s' departs first, not '%s'", kind, name, match.first->name,
                     first);
    cr_expect(strstr(match.hint, hint), "%s of %s: '%s' should hold '%s'", kind, name, match.hint, hint);
    match_release(&match);
    case_close(&reference);
    problems_release(&problems);
}

static void assert_impossible(const char *name, const char *kind, const char *part)
{
    struct reference_case reference;
    struct error err;
    char text[MISTAKE_TEXT_SIZE];
    open_case(name, &reference);
    cr_expect(!mistake_put_in(mistake_find(kind), &reference, text, &err));
    cr_expect(strstr(err.text, part), "%s of %s: '%s' should hold '%s'", kind, name, err.text, part);
    case_close(&reference);
}

Test(mistake, without_one_the_models_of_others_match)
{
    static const char *const names[] = {"hf/llama", "hf/qwen3", "hf/gpt2"};
    for (size_t i = 0; i < 3; i++) {
        struct reference_case reference;
        struct match match;
        struct problems problems;
        problems_init(&problems);
        open_case(names[i], &reference);
        cr_assert(match_run(&reference, MATCH_TOLERANCE, NULL, &match, &problems));
        cr_expect(match.ok, "%s: %s departs", names[i], match.first ? match.first->name : "");
        cr_expect_str_empty(match.hint);
        cr_expect_str_eq(match.rows[match.count - 1].name, "greedy.tokens");
        cr_expect_eq(match.rows[match.count - 1].equal, 35);
        match_release(&match);
        case_close(&reference);
        problems_release(&problems);
    }
}

Test(mistake, rope_pairs_depart_at_the_first_query)
{
    assert_departs("qwen-like", "rope-pairs", "blocks.0.attention.query", "rotary pairing or base");
    assert_departs("rope", "rope-pairs", "blocks.0.attention.query", "rotary pairing or base");
    assert_departs("hf/qwen3", "rope-pairs", "blocks.0", "rotary pairing: with the other one");
    assert_departs("hf/llama", "rope-pairs", "blocks.0", "rotary pairing: with the other one");
    assert_impossible("hf/gpt2", "rope-pairs", "the model has no rotation");
}

Test(mistake, gate_and_up_depart_at_the_first_feed_forward)
{
    assert_departs("qwen-like", "gate-up", "blocks.0.feed_forward", "gate and up");
    assert_departs("hf/qwen3", "gate-up", "blocks.0", "gate and up");
    assert_departs("hf/llama", "gate-up", "blocks.0", "gate and up");
    assert_impossible("hf/gpt2", "gate-up", "the model has no gate");
}

Test(mistake, epsilon_departs_at_the_first_norm_that_feels_it)
{
    assert_departs("modern", "epsilon", "blocks.0.attention.query", "epsilon of the norm before");
    assert_departs("day1-baseline", "epsilon", "blocks.0.attention.query", "");
    /* its queries are normed again, which hides the first norm's factor from them */
    assert_departs("qwen-like", "epsilon", "blocks.0.attention", "epsilon");
    assert_departs("hf/qwen3", "epsilon", "blocks.0", "epsilon");
    assert_departs("hf/llama", "epsilon", "blocks.0", "epsilon");
    assert_departs("hf/gpt2", "epsilon", "blocks.0", "epsilon");
}

Test(mistake, a_skipped_norm_of_queries_departs_at_the_first_query)
{
    assert_departs("qwen-like", "qk-norm", "blocks.0.attention.query", "");
    assert_departs("hf/qwen3", "qk-norm", "blocks.0", "the first token is right");
    assert_impossible("hf/llama", "qk-norm", "no norm of queries and keys");
}

Test(mistake, tiled_heads_depart_behind_queries_and_keys)
{
    assert_departs("qwen-like", "kv-tile", "blocks.0.attention", "key/value repeat order");
    assert_departs("modern", "kv-tile", "blocks.0.attention", "key/value repeat order");
    assert_departs("hf/qwen3", "kv-tile", "blocks.0", "key/value repeat order");
    assert_departs("hf/llama", "kv-tile", "blocks.0", "key/value repeat order");
    assert_impossible("hf/gpt2", "kv-tile", "4 query and 4 key/value heads: repeated and tiled are the same");
}

Test(mistake, a_lost_shift_leaves_the_forward_pass_alone)
{
    assert_departs("qwen-like", "shift", "grad.token_embedding.weight", "");
    assert_departs("padded-targets", "shift", "grad.token_embedding.weight", "");
    assert_departs("hf/qwen3", "shift", "greedy.tokens", "");
    assert_departs("hf/llama", "shift", "greedy.tokens", "");
    assert_departs("hf/gpt2", "shift", "greedy.tokens", "");
}

Test(mistake, a_trained_model_of_others_matches_and_breaks)
{
    static const char model[] = "../shared/data/stories260K/hf", folder[] = "../shared/data/stories260K/expected";
    struct reference_case reference;
    struct match match;
    struct problems problems;
    FILE *there = fopen("../shared/data/stories260K/hf/config.json", "r");
    if (!there)
        cr_skip_test("%s is not here", model);
    fclose(there);
    problems_init(&problems);
    cr_assert(case_open(folder, model, &reference, &problems));
    cr_assert(match_run(&reference, MATCH_TOLERANCE, NULL, &match, &problems));
    cr_expect(match.ok);
    cr_expect_eq(match.rows[match.count - 1].equal, 127);
    cr_expect_eq(match.rows[match.count - 1].compared, 127);
    match_release(&match);
    case_close(&reference);
    problems_release(&problems);
}
