/* A sweep: runs with keys, sizes and data. */
#include "runner/sweep.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "runner/file.h"
#include "tests/folder_case.h"

/* A few thousand bytes of words that come back. */
static void corpus_put(const char *name, char first)
{
    char text[8192];
    size_t used = 0;
    for (int i = 0; used < sizeof text - 32; i++)
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%c%d word %d of line\n", first, i * 7919 % 1000, i % 13);
    file_put(name, text);
}

static bool shared; /* the cache of what is resolved next, with a process at work */

/* Problems are joined in `said` when it is not NULL. */
static struct sweep *resolve(const char *text, struct problems *problems)
{
    char *path = path_join(folder, "f.yaml"), *cache = path_join(folder, "cache");
    file_put("f.yaml", text);
    problems_init(problems);
    struct experiment *experiment = experiment_load(path, NULL, problems);
    cr_assert_not_null(experiment, "%s", problems->count ? problems->items[0].text : "");
    struct sweep *sweep = sweep_resolve(experiment, cache, shared, problems);
    memory_free(path);
    memory_free(cache);
    return sweep;
}

static struct sweep *resolve_good(const char *text)
{
    struct problems problems;
    struct sweep *sweep = resolve(text, &problems);
    cr_assert_not_null(sweep, "%s", problems.count ? problems.items[problems.count - 1].text : "");
    problems_release(&problems);
    return sweep;
}

#define SMALL                                                                                                          \
    "model: {d_model: 32, n_heads: 4, context_length: 32}\ndata: {corpus: t.txt, tokenizer: {vocab_size: 300}}\n"

Test(sweep, runs_are_seeds_within_variants_with_keys_of_their_own, .init = folder_open, .fini = folder_close)
{
    corpus_put("t.txt", 'a');
    struct sweep *sweep = resolve_good(SMALL "seeds: [3, 1]\nsweep: {parameters: {model.norm: [layernorm, rmsnorm]}}");
    cr_assert_eq(sweep->run_count, 4);
    cr_assert_eq(sweep->dataset_count, 1, "one text and tokenizer");
    cr_expect_eq(sweep->runs[1].seed, 1);
    cr_expect_eq(sweep->runs[1].variant, 0);
    cr_expect_eq(sweep->runs[2].variant, 1);
    for (size_t i = 0; i < 4; i++) {
        cr_expect_eq(strlen(sweep->runs[i].key), 64);
        cr_expect_not(sweep->runs[i].duplicate);
        for (size_t k = 0; k < i; k++)
            cr_expect_str_neq(sweep->runs[i].key, sweep->runs[k].key);
    }
    cr_expect_eq(sweep->runs[0].parameters - sweep->runs[2].parameters, 5 * 32, "five norms lose a bias of 32 each");
    cr_expect_gt(sweep->runs[0].flops_per_token, 6.0 * 12 * 32 * 32);
    cr_expect_not_null(strstr(sweep->runs[2].config_json, "\"model.norm\":\"rmsnorm\""));
    cr_expect_not_null(strstr(sweep->runs[2].config_json, "\"training.beta1\":0.9"), "every knob is frozen");
    sweep_free(sweep);
}

Test(sweep, a_key_follows_the_text_and_not_its_name_or_the_experiment, .init = folder_open, .fini = folder_close)
{
    corpus_put("t.txt", 'a');
    struct sweep *sweep = resolve_good(SMALL);
    char key[65];
    memcpy(key, sweep->runs[0].key, sizeof key);
    sweep_free(sweep);
    sweep = resolve_good("# a comment\nname: other\n" SMALL "training: {learning_rate: 3.0e-4}\ndescription: d");
    cr_expect_str_eq(sweep->runs[0].key, key);
    sweep_free(sweep);
    corpus_put("t.txt", 'b');
    sweep = resolve_good(SMALL);
    cr_expect_str_neq(sweep->runs[0].key, key, "one letter of the corpus makes a new run");
    sweep_free(sweep);
}

Test(sweep, different_texts_and_tokenizers_are_different_datasets, .init = folder_open, .fini = folder_close)
{
    corpus_put("t.txt", 'a');
    corpus_put("u.txt", 'b');
    struct sweep *sweep = resolve_good(
        SMALL "sweep: {parameters: {data.corpus: [t.txt, u.txt], data.tokenizer.kind: [bpe, byte]}}\nbaseline: ~");
    cr_assert_eq(sweep->run_count, 4);
    cr_expect_eq(sweep->dataset_count, 4);
    cr_expect_neq(sweep->runs[0].parameters, sweep->runs[1].parameters, "300 tokens and 259");
    sweep_free(sweep);
}

Test(sweep, two_names_of_one_text_are_one_run, .init = folder_open, .fini = folder_close)
{
    corpus_put("t.txt", 'a');
    corpus_put("same.txt", 'a');
    struct problems problems;
    struct sweep *sweep = resolve(SMALL "sweep: {parameters: {data.corpus: [t.txt, same.txt]}}", &problems);
    cr_assert_not_null(sweep);
    cr_assert_eq(sweep->run_count, 2);
    cr_expect_str_eq(sweep->runs[0].key, sweep->runs[1].key);
    cr_expect(sweep->runs[1].duplicate);
    cr_assert_geq(problems.count, 1);
    cr_expect_not_null(strstr(problems.items[problems.count - 1].text, "turns out the same as"), "%s",
                       problems.items[problems.count - 1].text);
    problems_release(&problems);
    sweep_free(sweep);
}

Test(sweep, a_text_that_cannot_be_read_is_told_at_its_line, .init = folder_open, .fini = folder_close)
{
    struct problems problems;
    cr_assert_null(resolve("name: x\ndata: {corpus: nowhere.txt}", &problems));
    cr_assert_eq(problems.errors, 1);
    cr_expect_not_null(strstr(problems.items[0].text, "f.yaml:2:16: "), "%s", problems.items[0].text);
    cr_expect_not_null(strstr(problems.items[0].text, "nowhere.txt"), "%s", problems.items[0].text);
    problems_release(&problems);
}

Test(sweep, a_split_that_the_text_does_not_have_is_refused, .init = folder_open, .fini = folder_close)
{
    corpus_put("t.txt", 'a');
    struct problems problems;
    cr_assert_null(resolve(SMALL "compare: {split: poetry}", &problems));
    const char *last = problems.items[problems.count - 1].text;
    cr_expect_not_null(strstr(last, "f.yaml:3:18: compare.split is 'poetry': expected one of validation"), "%s", last);
    problems_release(&problems);
}

static bool cache_exists(void)
{
    char path[128];
    snprintf(path, sizeof path, "%s/cache", folder);
    return access(path, F_OK) == 0;
}

Test(sweep, one_that_is_refused_leaves_nothing_of_its_text, .init = folder_open, .fini = folder_close)
{
    static const char *const rows[] = {
        SMALL "compare: {split: poetry}",
        "model: {context_length: 100000}\ndata: {corpus: t.txt, tokenizer: {kind: byte}}",
        SMALL "sweep: {parameters: {model.context_length: [32, 100000]}}",
        SMALL "sweep: {parameters: {data.corpus: [t.txt, nowhere.txt]}}",
    };
    corpus_put("t.txt", 'a');
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct problems problems;
        cr_assert_null(resolve(rows[i], &problems), "%s", rows[i]);
        cr_expect_not(problems.environment, "%s", rows[i]);
        cr_expect_not(cache_exists(), "%s", rows[i]);
        problems_release(&problems);
    }
}

Test(sweep, one_that_is_refused_leaves_what_a_process_at_work_may_have_found, .init = folder_open, .fini = folder_close)
{
    struct problems problems;
    corpus_put("t.txt", 'a');
    shared = true;
    cr_assert_null(resolve(SMALL "compare: {split: poetry}", &problems));
    cr_expect(cache_exists());
    problems_release(&problems);
}

Test(sweep, one_that_is_refused_leaves_what_another_has_prepared, .init = folder_open, .fini = folder_close)
{
    corpus_put("t.txt", 'a');
    corpus_put("u.txt", 'b');
    struct sweep *sweep = resolve_good(SMALL);
    struct problems problems;
    cr_assert_null(
        resolve(SMALL "compare: {split: poetry}\nsweep: {parameters: {data.corpus: [t.txt, u.txt]}}", &problems));
    cr_expect_eq(access(sweep->datasets[0].path, F_OK), 0);
    size_t files = 0;
    char *cache = path_join(folder, "cache");
    DIR *directory = opendir(cache);
    for (struct dirent *entry; (entry = readdir(directory));)
        files += entry->d_name[0] != '.';
    closedir(directory);
    cr_expect_eq(files, 1, "that of u.txt is gone");
    memory_free(cache);
    problems_release(&problems);
    sweep_free(sweep);
}
