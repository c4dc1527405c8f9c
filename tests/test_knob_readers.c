/* A knob is read in exactly one file of the core: sizes in the shape that knob.c makes, the rest where they act. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>

#include "core/knob.h"
#include "core/memory.h"
#include "runner/file.h"

/* Reads of a field through a configuration: config->model.norm, model->config.norm, training->steps, t->beta1. */
static bool reads_field(const char *text, const char *owners, const char *field)
{
    char pattern[256];
    regex_t regex;
    snprintf(pattern, sizeof pattern, "(^|[^a-z_])(%s)(->|[.])%s($|[^a-zA-Z_0-9])", owners, field);
    cr_assert_eq(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB | REG_NEWLINE), 0);
    bool found = regexec(&regex, text, 0, NULL, 0) == 0;
    regfree(&regex);
    return found;
}

static char *source_read(const char *name)
{
    char path[512], *text;
    size_t size;
    struct error err;
    snprintf(path, sizeof path, "core/%s", name);
    cr_assert(file_read(path, 1 << 20, &text, &size, &err), "%s", err.text);
    return text;
}

static bool is_source(const char *name)
{
    size_t length = strlen(name);
    return length > 2 && strcmp(name + length - 2, ".c") == 0 && strcmp(name, "knob.c") != 0;
}

struct readers {
    size_t count[256]; /* by knob */
    char files[256][256];
};

static bool of_training_or_model(const struct knob *knob)
{
    return strcmp(knob->group, "model") == 0 || strcmp(knob->group, "training") == 0;
}

static void readers_collect(struct readers *readers)
{
    DIR *folder = opendir("core");
    cr_assert_not_null(folder);
    for (struct dirent *item; (item = readdir(folder));) {
        if (!is_source(item->d_name))
            continue;
        char *text = source_read(item->d_name);
        for (size_t i = 0; i < knob_count; i++)
            if (of_training_or_model(&knobs[i]) &&
                reads_field(text,
                            strcmp(knobs[i].group, "model") == 0 ? "config|config[.]model|config->model"
                                                                 : "training|t|config[.]training|config->training",
                            knobs[i].field)) {
                size_t used = strlen(readers->files[i]);
                snprintf(readers->files[i] + used, sizeof readers->files[i] - used, " %s", item->d_name);
                readers->count[i]++;
            }
        memory_free(text);
    }
    closedir(folder);
}

Test(knob_readers, each_knob_is_read_in_one_file_of_the_core)
{
    static struct readers readers;
    char *shape = source_read("knob.c");
    cr_assert_leq(knob_count, 256);
    readers_collect(&readers);
    for (size_t i = 0; i < knob_count; i++) {
        if (!of_training_or_model(&knobs[i]))
            continue;
        bool shapes = strcmp(knobs[i].group, "model") == 0 && reads_field(shape, "model", knobs[i].field);
        cr_expect(readers.count[i] == 1 || (readers.count[i] == 0 && shapes), "%s is read in%s", knobs[i].name,
                  readers.count[i] ? readers.files[i] : " no file");
    }
    memory_free(shape);
}

Test(knob_readers, the_search_sees_reads_and_only_reads)
{
    cr_assert(reads_field("x = config->norm;", "config", "norm"));
    cr_assert(reads_field("x = model->config.norm;", "config", "norm"));
    cr_assert(reads_field("if (t->beta1", "t", "beta1"));
    cr_assert_not(reads_field("x = config->norm_epsilon;", "config", "norm"));
    cr_assert_not(reads_field("x = shape->beta1;", "t", "beta1"));
    cr_assert_not(reads_field("x = my_config->norm;", "config", "norm"));
}
