/* Reads an experiment file into a draft, checks all of it, and hands over what is right. */
#include "runner/experiment.h"

#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "core/metric.h"
#include "runner/experiment_draft.h"
#include "runner/launcher.h"

enum { NAME_LIMIT = 100 };

static const char *const top_words[] = {"name",          "description",    "extends",          "data",
                                        "model",         "training",       "evaluation",       "seeds",
                                        "sweep",         "sweeps",         "baseline",         "compare",
                                        "launcher",      "compare.metric", "compare.split",    "compare.margin",
                                        "compare.alpha", "sweep.method",   "sweep.parameters", "sweep.variants",
                                        "sweep.include", "sweep.exclude"};
/* What a mapping at the top may stand under. */
static const char *const section_words[] = {"data",     "model",          "training",         "evaluation",
                                            "seeds",    "sweep",          "baseline",         "compare",
                                            "launcher", "data.tokenizer", "sweep.parameters", "sweep.variants"};
enum { SECTION_WORDS = sizeof section_words / sizeof section_words[0] };
static const char *const compare_words[] = {"metric", "split", "margin", "alpha"};
enum { TOP_WORDS = sizeof top_words / sizeof top_words[0], COMPARE_WORDS = 4 };

/* ---- texts ---- */

/* NULL with a problem when the node is no text; nothing gives otherwise. */
static char *text_read(const struct yaml *node, const char *key, const char *otherwise, struct problems *problems)
{
    if (!node || yaml_is_null(node))
        return memory_copy_text(otherwise);
    if (node->kind == YAML_SCALAR)
        return memory_copy_text(node->text);
    problem_add(problems, node->place, "%s is %s: expected text", key, yaml_kind_name(node));
    return memory_copy_text(otherwise);
}

/* "a/b.yaml" to "b". */
static char *name_from_path(const char *path)
{
    const char *slash = strrchr(path, '/'), *start = slash ? slash + 1 : path, *dot = strrchr(start, '.');
    return memory_copy_bytes(start, dot && dot != start ? (size_t)(dot - start) : strlen(start));
}

static char *name_read(const struct experiment_draft *draft, const char *path)
{
    const struct yaml *node = yaml_get(draft->tree.root, "name");
    struct problems *problems = draft->problems;
    char *from_path = name_from_path(path), *name = text_read(node, "name", from_path, problems);
    bool own = node && !yaml_is_null(node);
    size_t length = strlen(name);
    bool good = length && length <= NAME_LIMIT && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
    for (const char *p = name; *p; p++)
        good &= (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
                strchr("._-", *p) != NULL;
    if (!good && (own || draft->tree.complete))
        problem_add(problems, own ? node->place : draft->place,
                    "%s '%.120s': expected 1 to %d letters, digits, '.', '_' or '-'%s",
                    own ? "name is" : "the file's name gives the experiment's name", name, NAME_LIMIT,
                    own ? "" : "; add a line name: ...");
    memory_free(from_path);
    return name;
}

/* ---- compare ---- */

static void compare_number(const struct yaml *node, const char *name, const char *range, double *number,
                           struct problems *problems)
{
    const struct knob kind = {.name = name, .kind = KNOB_NUMBER, .range = range};
    union knob_value value;
    struct error err;
    char accepted[128];
    if (!node || yaml_is_null(node))
        return;
    if (node->kind != YAML_SCALAR)
        problem_add(problems, node->place, "%s is %s: expected %s", name, yaml_kind_name(node),
                    knob_describe(&kind, accepted, sizeof accepted));
    else if (!knob_parse(&kind, node->text, node->quoted, &value, &err))
        problem_add(problems, node->place, "%s", err.text);
    else
        *number = value.number;
}

static void metric_check(const char *metric, struct place place, struct problems *problems)
{
    const char *names[METRIC_COUNT];
    char list[512];
    if (metric_find(metric))
        return;
    for (size_t i = 0; i < METRIC_COUNT; i++)
        names[i] = metrics[i].name;
    const char *nearest = suggest_nearest(metric, names, METRIC_COUNT);
    problem_add(problems, place, "compare.metric is '%s': expected %s%s%s%s", metric,
                metric_list(" or ", list, sizeof list), nearest ? " (did you mean " : "", nearest ? nearest : "",
                nearest ? "?)" : "");
}

static void compare_read(struct experiment_draft *draft)
{
    const struct yaml *root = draft->tree.root, *metric = yaml_get(root, "compare.metric"),
                      *split = yaml_get(root, "compare.split");
    struct comparison_settings *compare = &draft->experiment->compare;
    *compare = (struct comparison_settings){.margin = 0.01, .alpha = 0.05};
    compare->metric = text_read(metric, "compare.metric", "bits_per_byte", draft->problems);
    compare->split = text_read(split, "compare.split", "validation", draft->problems);
    if (metric && metric->kind == YAML_SCALAR)
        metric_check(compare->metric, metric->place, draft->problems);
    draft->experiment->split_place = split ? split->place : draft->place;
    if (strcmp(compare->split, "train") == 0)
        problem_add(
            draft->problems, draft->experiment->split_place,
            "compare.split is 'train': expected validation or a kind of text (a batch's loss is no comparison)");
    compare_number(yaml_get(root, "compare.margin"), "compare.margin", "[0,inf)", &compare->margin, draft->problems);
    compare_number(yaml_get(root, "compare.alpha"), "compare.alpha", "(0,0.5]", &compare->alpha, draft->problems);
}

/* ---- keys ---- */

struct key_reader {
    struct experiment_draft *draft;
    struct setting_list *list;
};

static void key_see(void *context, int setting, struct place key_place, const struct yaml *node)
{
    struct key_reader *reader = context;
    setting_list_add(reader->list, setting, key_place, node, reader->draft->problems);
}

/* A section whose own name is misspelt: what it sets is not known, and nothing more is said of it. */
static void guess_see(void *context, int setting, struct place key_place, const struct yaml *node)
{
    (void)node;
    key_see(context, setting, key_place, NULL);
}

static void varied_see(void *context, int setting, struct place key_place, const struct yaml *node)
{
    struct experiment_draft *draft = context;
    (void)key_place;
    (void)node;
    draft->varied[setting] = true;
}

/* Whatever part of a sweep the node is: every setting anywhere in it. */
static void varied_guess(struct experiment_draft *draft, const struct yaml *node, struct problems *untold)
{
    if (node->kind == YAML_MAPPING)
        setting_walk(node, NULL, varied_see, draft, untold);
    for (size_t i = 0; i < node->count; i++)
        varied_guess(draft, node->items[i], untold);
}

static void section_guess(struct experiment_draft *draft, const char *section, struct place place,
                          const struct yaml *node)
{
    struct key_reader own = {draft, &draft->own}, overrides = {draft, &draft->overrides};
    struct problems untold;
    problems_init(&untold);
    if (strncmp(section, "sweep", strlen("sweep")) == 0)
        varied_guess(draft, node, &untold);
    else if (strcmp(section, "baseline") == 0)
        setting_walk(node, NULL, guess_see, &overrides, &untold);
    else
        setting_entry(section, place, node, guess_see, &own, &untold);
    problems_release(&untold);
}

/* "launchr.time" to "launcher.time", where the first word is near that of a section without settings. */
static bool dotted_report(struct problems *problems, struct place place, const char *key)
{
    static const char *const words[] = {"launcher", "compare", "baseline"};
    char first[64];
    size_t length = strcspn(key, ".");
    if (!key[length] || length >= sizeof first)
        return false;
    snprintf(first, sizeof first, "%.*s", (int)length, key);
    const char *nearest = suggest_nearest(first, words, sizeof words / sizeof words[0]);
    if (nearest)
        problem_add(problems, place, "unknown key '%s': did you mean %s%s?", key, nearest, key + length);
    return nearest != NULL;
}

static void unknown_read(struct experiment_draft *draft, const char *key, struct place place, const struct yaml *node)
{
    bool section = node->kind == YAML_MAPPING && node->count, dotted = strchr(key, '.') != NULL;
    if (!section && dotted_report(draft->problems, place, key))
        return;
    const char *meant =
        section ? unknown_key_report(draft->problems, place, key, section_words, SECTION_WORDS)
                : unknown_key_report(draft->problems, place, key, dotted ? NULL : top_words, dotted ? 0 : TOP_WORDS);
    int setting = meant ? setting_find(meant) : -1;
    if (setting >= 0)
        setting_list_add(&draft->own, setting, place, NULL, draft->problems);
    else if (section && meant)
        section_guess(draft, meant, place, node);
}

/* Read elsewhere by name. */
static bool key_is_plain(const char *key)
{
    static const char *const plain[] = {"name", "description", "extends", "seeds", "seed", "sweep", "sweeps"};
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        if (strcmp(key, plain[i]) == 0)
            return true;
    return false;
}

static bool key_starts(const char *key, const char *section)
{
    size_t length = strlen(section);
    return strncmp(key, section, length) == 0 && key[length] == '.';
}

/* "baseline" or "compare" with something that is no mapping, or an empty one. */
static void section_alone(const struct yaml *node, const char *key, struct problems *problems)
{
    if (node->kind != YAML_MAPPING && !yaml_is_null(node))
        problem_add(problems, node->place, "%s is %s: expected a mapping", key, yaml_kind_name(node));
}

static void launcher_add(struct experiment_draft *draft, const char *key, struct place place, const struct yaml *node)
{
    struct experiment *e = draft->experiment;
    struct error err;
    if (node->kind != YAML_SCALAR || yaml_is_null(node)) {
        problem_add(draft->problems, node->place, "launcher.%s is %s: expected text or a number", key,
                    yaml_kind_name(node));
        return;
    }
    size_t size = strlen(key) + strlen(node->text) + 2;
    char *setting = memory_alloc(size, 1);
    snprintf(setting, size, "%s%s%s", key, *node->text ? "=" : "", node->text);
    if (!launcher_setting_check(setting, &err))
        problem_add(draft->problems, place, "launcher: %s", err.text);
    e->launcher =
        memory_grow(e->launcher, e->launcher_count * sizeof *e->launcher, e->launcher_count + 1, sizeof *e->launcher);
    e->launcher[e->launcher_count++] = setting;
}

static void key_read(struct experiment_draft *draft, size_t index)
{
    const struct yaml *root = draft->tree.root, *node = root->items[index];
    const char *key = root->keys[index];
    struct place place = root->key_places[index];
    struct key_reader own = {draft, &draft->own}, overrides = {draft, &draft->overrides};
    if (key_is_plain(key))
        return;
    if (strcmp(key, "baseline") == 0 || strcmp(key, "compare") == 0 || strcmp(key, "launcher") == 0) {
        section_alone(node, key, draft->problems);
        draft->baseline_given |= key[0] == 'b' && !yaml_is_null(node);
    } else if (key_starts(key, "baseline")) {
        const char *path = key + strlen("baseline.");
        draft->baseline_given = true;
        const char *meant = NULL;
        if (!setting_entry(path, place, node, key_see, &overrides, draft->problems))
            meant = unknown_key_report(draft->problems, place, path, NULL, 0);
        if (meant && setting_find(meant) >= 0)
            setting_list_add(&draft->overrides, setting_find(meant), place, NULL, draft->problems);
    } else if (key_starts(key, "launcher")) {
        launcher_add(draft, key + strlen("launcher."), place, node);
    } else if (key_starts(key, "compare")) {
        const char *field = key + strlen("compare.");
        for (size_t i = 0; i < COMPARE_WORDS; i++)
            if (strcmp(field, compare_words[i]) == 0)
                return;
        unknown_key_report(draft->problems, place, field, compare_words, COMPARE_WORDS);
    } else if (!setting_entry(key, place, node, key_see, &own, draft->problems))
        unknown_read(draft, key, place, node);
}

static struct place key_place(const struct yaml *root, const char *key)
{
    for (size_t i = 0; i < root->count; i++)
        if (strcmp(root->keys[i], key) == 0)
            return root->key_places[i];
    return root->place;
}

static void block_read(struct experiment_draft *draft, const struct yaml *node, struct place place)
{
    sweep_block_read(node, place, draft->tree.complete, &draft->blocks[draft->block_count++], draft->problems);
}

static void sweeps_read(struct experiment_draft *draft)
{
    const struct yaml *root = draft->tree.root, *one = yaml_get(root, "sweep"), *many = yaml_get(root, "sweeps");
    one = one && yaml_is_null(one) ? NULL : one;
    many = many && yaml_is_null(many) ? NULL : many;
    if (one && many)
        problem_add(draft->problems, key_place(root, "sweeps"),
                    "sweep at line %d and sweeps at line %d: expected one of them", key_place(root, "sweep").line,
                    key_place(root, "sweeps").line);
    if (one || many)
        draft->place = key_place(root, one ? "sweep" : "sweeps");
    if (many && (many->kind != YAML_SEQUENCE || many->count == 0)) {
        problem_add(draft->problems, many->place, "sweeps is %s: expected a list of sweeps",
                    many->kind == YAML_SEQUENCE ? "an empty list" : yaml_kind_name(many));
        many = NULL;
    }
    size_t count = many ? many->count : 0;
    draft->blocks = memory_alloc(count + 1, sizeof *draft->blocks);
    if (one)
        block_read(draft, one, draft->place);
    for (size_t i = 0; i < count; i++)
        block_read(draft, many->items[i], many->items[i]->place);
}

/* An axis varies what --set would fix. */
static void sets_check(const struct experiment_draft *draft)
{
    for (size_t b = 0; b < draft->block_count; b++)
        for (size_t a = 0; a < draft->blocks[b].axis_count; a++) {
            const struct axis *axis = &draft->blocks[b].axes[a];
            for (size_t i = 0; i < draft->own.count; i++)
                if (draft->own.values[i].setting == axis->setting && draft->own.values[i].place.line == 0)
                    problem_add(draft->problems, draft->own.values[i].place,
                                "%s is varied by the sweep (%s:%d): expected a setting that is no axis",
                                setting_name(axis->setting), axis->place.file, axis->place.line);
        }
}

static void settings_make(struct experiment_draft *draft)
{
    settings_init(&draft->base);
    memset(draft->base.unread, !draft->tree.complete, sizeof draft->base.unread);
    for (size_t i = 0; i < draft->own.count; i++)
        settings_apply(&draft->base, &draft->own.values[i]);
    draft->control = draft->base;
    for (size_t i = 0; i < draft->overrides.count; i++)
        settings_apply(&draft->control, &draft->overrides.values[i]);
}

/* ---- all of it ---- */

static bool blocks_are_good(const struct experiment_draft *draft)
{
    bool good = true;
    for (size_t i = 0; i < draft->block_count; i++)
        good &= draft->blocks[i].good;
    return good;
}

static void draft_read(struct experiment_draft *draft, const char *path)
{
    const struct yaml *root = draft->tree.root;
    struct experiment *experiment = draft->experiment;
    draft->place = (struct place){root->place.file, 1, 1};
    experiment->path = memory_copy_text(path);
    experiment->name = name_read(draft, path);
    experiment->description = text_read(yaml_get(root, "description"), "description", "", draft->problems);
    for (size_t i = 0; i < root->count; i++)
        key_read(draft, i);
    compare_read(draft);
    sweeps_read(draft);
    sets_check(draft);
    bool seeds = seed_plan_read(yaml_get(root, "seeds"), yaml_get(root, "seed"), draft->options->seeds,
                                draft->tree.complete, &draft->seeds, draft->problems);
    settings_make(draft);
    bool counted = seeds && blocks_are_good(draft) && variants_count_check(draft);
    if (!counted || draft->problems->errors) {
        points_check(draft);
        return;
    }
    experiment->seeds = seed_plan_expand(&draft->seeds, &experiment->seed_count, draft->problems);
    variants_build(draft);
    if (!draft->problems->errors)
        variants_filter(draft);
}

static void draft_release(struct experiment_draft *draft)
{
    for (size_t i = 0; i < draft->block_count; i++)
        sweep_block_release(&draft->blocks[i]);
    memory_free(draft->blocks);
    setting_list_release(&draft->own);
    setting_list_release(&draft->overrides);
    text_index_release(&draft->told);
    experiment_tree_release(&draft->tree);
}

struct experiment *experiment_load(const char *path, const struct experiment_options *options,
                                   struct problems *problems)
{
    static const struct experiment_options none;
    struct experiment_draft draft = {.problems = problems, .options = options ? options : &none};
    struct experiment *experiment = draft.experiment = memory_alloc(1, sizeof *experiment);
    if (experiment_tree_read(path, draft.options, &draft.tree, problems))
        draft_read(&draft, path);
    experiment->text = draft.tree.text;
    experiment->question = draft.tree.question;
    experiment->files = draft.tree.files;
    experiment->file_count = draft.tree.file_count;
    draft.tree.text = draft.tree.question = NULL;
    draft.tree.files = NULL;
    draft.tree.file_count = 0;
    draft_release(&draft);
    problems_sort(problems);
    if (!problems->errors)
        return experiment;
    experiment_free(experiment);
    return NULL;
}

void experiment_free(struct experiment *experiment)
{
    if (!experiment)
        return;
    for (size_t i = 0; i < experiment->variant_count; i++)
        variant_release(&experiment->variants[i]);
    memory_free(experiment->variants);
    memory_free(experiment->seeds);
    memory_free(experiment->compare.metric);
    memory_free(experiment->compare.split);
    memory_free(experiment->path);
    memory_free(experiment->name);
    memory_free(experiment->description);
    memory_free(experiment->question);
    memory_free(experiment->text);
    for (size_t i = 0; i < experiment->launcher_count; i++)
        memory_free(experiment->launcher[i]);
    memory_free(experiment->launcher);
    for (size_t i = 0; i < experiment->file_count; i++)
        memory_free(experiment->files[i]);
    memory_free(experiment->files);
    memory_free(experiment);
}
