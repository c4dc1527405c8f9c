/* Experiment files written by a test, and what loading one says. */
#ifndef TESTS_EXPERIMENT_CASE_H
#define TESTS_EXPERIMENT_CASE_H

#include "runner/experiment.h"
#include "tests/folder_case.h"

/* All problems and notes, without the folder, one a line. Owner: caller. */
static inline char *problems_text(const struct problems *problems)
{
    char *text = NULL;
    size_t size, length = strlen(folder) + 1;
    FILE *out = open_memstream(&text, &size);
    for (size_t i = 0; i < problems->count; i++) {
        const char *line = problems->items[i].text;
        for (const char *p = line; *p; p++)
            if (strncmp(p, folder, length - 1) == 0 && p[length - 1] == '/')
                p += length - 1;
            else
                fputc(*p, out);
        fputc('\n', out);
    }
    fclose(out);
    return text;
}

static inline struct experiment *load_with(const char *text, const struct experiment_options *options, char **said)
{
    struct problems problems;
    char *path = path_join(folder, "f.yaml");
    problems_init(&problems);
    file_put("f.yaml", text);
    struct experiment *experiment = experiment_load(path, options, &problems);
    *said = problems_text(&problems);
    cr_expect_eq(experiment == NULL, problems.errors > 0, "%s", *said);
    problems_release(&problems);
    memory_free(path);
    return experiment;
}

/* The labels of the variants, the baseline's with a star, joined with '|'; or what was wrong. Owner: caller. */
static inline char *labels_of(const struct experiment *experiment)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    for (size_t i = 0; i < experiment->variant_count; i++)
        fprintf(out, "%s%s%s", i ? "|" : "", experiment->variants[i].label,
                experiment->variants[i].baseline ? "*" : "");
    fclose(out);
    return text;
}

static inline void index_array(size_t *indices, size_t count)
{
    for (size_t i = 0; i < count; i++)
        indices[i] = i;
}

#endif
