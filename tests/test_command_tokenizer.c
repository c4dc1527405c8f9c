/* runner tokenizer --run: the tokenizer comes out of the database as the run's data was encoded with it. */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/database.h"
#include "runner/experiment.h"
#include "runner/file.h"
#include "runner/options.h"
#include "runner/sweep.h"
#include "tests/folder_case.h"

extern const struct command command_tokenizer;

/* A text, an experiment on it, and the database that a sweep of it starts with; merges of the run's tokenizer. */
static size_t sweep_freeze(const char *database_path)
{
    char *text = path_join(folder, "text.txt"), *file = path_join(folder, "tiny.yaml");
    FILE *out = fopen(text, "w");
    cr_assert_not_null(out);
    for (int i = 0; i < 300; i++)
        fprintf(out, "the %d cats and the %d hats\n", i, i * i);
    cr_assert_eq(fclose(out), 0);
    struct error err = {""};
    static const char settings[] = "data: {corpus: text.txt, tokenizer: {vocab_size: 280}}\n"
                                   "model: {d_model: 32, context_length: 16}\n";
    cr_assert(file_write(file, settings, sizeof settings - 1, &err), "%s", err.text);

    struct problems problems;
    problems_init(&problems);
    struct experiment *experiment = experiment_load(file, &(struct experiment_options){0}, &problems);
    cr_assert_not_null(experiment, "%s", problems.count ? problems.items[0].text : "");
    struct sweep *sweep = sweep_resolve(experiment, folder, false, &problems);
    cr_assert_not_null(sweep, "%s", problems.count ? problems.items[0].text : "");
    struct database *database = database_open(database_path, NULL, &err);
    cr_assert_not_null(database, "%s", err.text);
    cr_assert(database_freeze(database, sweep, &err), "%s", err.text);
    cr_assert(database_close(database, &err), "%s", err.text);
    size_t merges = tokenizer_merge_count(sweep->datasets[0].tokenizer);
    sweep_free(sweep);
    problems_release(&problems);
    memory_free(text);
    memory_free(file);
    return merges;
}

static json_t *command_output(const char *database_path)
{
    char database[4096];
    snprintf(database, sizeof database, "--db=%s", database_path);
    char run[] = "--run=tiny/baseline/1337", json[] = "--json";
    char *const argv[] = {run, database, json};
    struct arguments arguments;
    struct error err = {""};
    bool help;
    cr_redirect_stdout();
    cr_assert(arguments_parse(&command_tokenizer, 3, argv, &arguments, &help, &err), "%s", err.text);
    cr_assert_eq(command_tokenizer.run(&command_tokenizer, &arguments), EXIT_DONE);
    fflush(stdout);
    arguments_release(&arguments);
    json_error_t where;
    json_t *root = json_loadf(cr_get_redirected_stdout(), 0, &where);
    cr_assert_not_null(root, "%s", where.text);
    return root;
}

Test(command_tokenizer, a_run_shows_the_tokenizer_it_was_frozen_with, .init = folder_open, .fini = folder_close)
{
    char *database_path = path_join(folder, "results.db");
    size_t merges = sweep_freeze(database_path);
    json_t *root = command_output(database_path);
    cr_expect_eq(merges, 21);
    cr_expect_eq(json_array_size(json_object_get(root, "merges")), merges);
    cr_expect_eq(json_integer_value(json_object_get(root, "vocab_size")), 280);
    cr_expect_eq(json_integer_value(json_object_get(root, "asked")), 280);
    cr_expect(json_is_null(json_object_get(root, "bytes")), "a run's text is not at hand");
    json_decref(root);
    memory_free(database_path);
}
