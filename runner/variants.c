/* Points of sweeps become variants: excluded, checked, collapsed with their equals, labelled. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "runner/experiment_draft.h"
#include "runner/file.h"
#include "runner/hash.h"
#include "runner/text_index.h"

enum { RUNS_FREE = 1000, RUNS_LIMIT = 100000, LABEL_LIMIT = 200, IGNORED_SHOWN = 3 };

/* ---- points ---- */

static const struct settings *point_start(const struct experiment_draft *draft, const struct sweep_point *point)
{
    return point->on_baseline || point->control ? &draft->control : &draft->base;
}

static struct settings point_settings(const struct experiment_draft *draft, const struct sweep_point *point)
{
    struct settings settings = *point_start(draft, point);
    for (size_t i = 0; i < point->count; i++)
        settings_apply(&settings, point->values[i]);
    return settings;
}

static bool block_excludes(const struct experiment_draft *draft, struct sweep_block *block,
                           const struct sweep_point *point)
{
    if (point->included || point->control || !block->exclusion_count)
        return false;
    struct settings settings = point_settings(draft, point);
    struct exclusion *exclusion = sweep_block_exclusion(block, &settings);
    if (exclusion)
        exclusion->used = true;
    return exclusion != NULL;
}

static size_t points_width(const struct experiment_draft *draft)
{
    size_t width = 1;
    for (size_t i = 0; i < draft->block_count; i++) {
        size_t needed = sweep_block_width(&draft->blocks[i]);
        width = needed > width ? needed : width;
    }
    return width;
}

/* Calls see for each point that is not excluded. */
static void points_walk(struct experiment_draft *draft, void (*see)(void *context, const struct sweep_point *point),
                        void *context)
{
    struct sweep_point point = {.values = memory_alloc(points_width(draft), sizeof(const struct setting_value *))};
    for (size_t i = 0; i < draft->block_count; i++) {
        uint64_t count = 0;
        sweep_block_count(&draft->blocks[i], &count);
        for (uint64_t number = 0; number < count; number++) {
            sweep_block_point(&draft->blocks[i], number, &point);
            if (!block_excludes(draft, &draft->blocks[i], &point))
                see(context, &point);
        }
    }
    memory_free(point.values);
}

/* ---- how many ---- */

static void point_count(void *context, const struct sweep_point *point)
{
    (void)point;
    ++*(uint64_t *)context;
}

/* 1073741824 as "1,073,741,824". */
static const char *count_format(uint64_t count, char buf[32])
{
    char digits[32];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, count);
    char *out = buf;
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            *out++ = ',';
        *out++ = digits[i];
    }
    *out = 0;
    return buf;
}

bool variants_count_check(struct experiment_draft *draft)
{
    uint64_t points = draft->block_count == 0, runs = 0, count;
    bool fits = true;
    char shown[32], limit[32];
    for (size_t i = 0; i < draft->block_count; i++)
        fits = sweep_block_count(&draft->blocks[i], &count) && fits && !__builtin_add_overflow(points, count, &points);
    fits = fits && !__builtin_mul_overflow(points, draft->seeds.count, &runs);
    if (!fits || runs > RUNS_LIMIT) {
        problem_add(draft->problems, draft->place, "this sweep has %s%s runs: expected at most %s in one sweep",
                    fits ? "" : "more than 2^64", fits ? count_format(runs, shown) : "",
                    count_format(RUNS_LIMIT, limit));
        return false;
    }
    if (runs > RUNS_FREE && draft->block_count) {
        points = 0;
        points_walk(draft, point_count, &points);
        runs = points * draft->seeds.count;
    }
    if (runs <= RUNS_FREE || draft->options->yes)
        return true;
    problem_add(draft->problems, draft->place, "this sweep has %s runs: over %s need --yes", count_format(runs, shown),
                count_format(RUNS_FREE, limit));
    return false;
}

/* ---- combinations that cannot be trained ---- */

struct check_context {
    struct experiment_draft *draft;
    const struct sweep_point *point; /* NULL: only gather */
    struct text_index *texts;        /* what the settings without the point already have wrong */
    struct text_index *told;         /* of those, what was said */
};

static void check_gather(void *context, const struct knob *knob, const char *text)
{
    struct check_context *check = context;
    (void)knob;
    if (text_index_find(check->texts, text) == SIZE_MAX)
        text_index_add(check->texts, text, 0);
}

static const struct setting_value *list_find(const struct setting_list *list, int setting)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->values[i].setting == setting)
            return &list->values[i];
    return NULL;
}

/* Where the file sets a knob, or the file. */
static struct place own_place(const struct experiment_draft *draft, int setting, bool on_baseline)
{
    const struct setting_value *value = on_baseline ? list_find(&draft->overrides, setting) : NULL;
    if (!value)
        value = list_find(&draft->own, setting);
    return value ? value->place : draft->place;
}

/* The value of the point that is to blame: the knob's own, else one whose field the text names. */
static const struct setting_value *point_culprit(const struct sweep_point *point, int setting, const char *text)
{
    for (size_t i = 0; i < point->count; i++)
        if (point->values[i]->setting == setting)
            return point->values[i];
    for (size_t i = 0; i < point->count; i++) {
        const struct knob *knob = setting_knob(point->values[i]->setting);
        if (knob && strstr(text, knob->field))
            return point->values[i];
    }
    return NULL;
}

static void check_report(void *context, const struct knob *knob, const char *text)
{
    struct check_context *check = context;
    const struct sweep_point *point = check->point;
    int setting = (int)(knob - knobs);
    if (text_index_find(check->texts, text) != SIZE_MAX) {
        if (text_index_find(check->told, text) == SIZE_MAX) {
            text_index_add(check->told, text, 0);
            problem_add(check->draft->problems, own_place(check->draft, setting, point->on_baseline), "%s", text);
        }
        return;
    }
    const struct setting_value *culprit = point_culprit(point, setting, text);
    char *values = sweep_point_describe(point, false);
    problem_add(check->draft->problems, culprit ? culprit->place : point->place,
                "point '%s' cannot be trained: %s; or take the point out with exclude:",
                point->label ? point->label : values, text);
    memory_free(values);
}

static void point_check(struct check_context *check, const struct sweep_point *point, const struct settings *settings)
{
    struct text_index texts = {0};
    check->texts = &texts;
    check->point = point;
    config_check(&point_start(check->draft, point)->config, check_gather, check);
    config_check(&settings->config, check_report, check);
    text_index_release(&texts);
}

/* ---- variants ---- */

struct maker {
    struct experiment_draft *draft;
    struct text_index known; /* identity to variant */
    size_t room;
    struct maker_variant {
        char *short_label, *full_label;
        bool named; /* the user wrote the label */
        struct place place;
    } * extras;                   /* beside the experiment's variants */
    struct text_index told;       /* problems of the file's own settings that were said */
    size_t *ignored_counts;       /* by knob: variants that ignore it */
    char **ignored_labels;        /* by knob: the first of them */
    struct place *ignored_places; /* by knob */
    size_t control;               /* index of the baseline's variant, or SIZE_MAX */
    char *control_identity;
};

static void source_write(const struct yaml *source, FILE *out)
{
    if (source) {
        char *folder = path_folder(source->place.line ? source->place.file : ".");
        fprintf(out, "\n%s", folder);
        memory_free(folder);
        for (size_t i = 0; i < (source->kind == YAML_SEQUENCE ? source->count : 1); i++)
            fprintf(out, "\n%s", source->kind == YAML_SEQUENCE ? source->items[i]->text : source->text);
    }
    fputs("\n", out);
}

/* Canonical settings as text: equal for equal runs. A held-out fraction means nothing beside a validation text. */
static char *settings_identity(struct settings *settings, bool *ignored)
{
    config_canonicalize(&settings->config, ignored);
    const struct knob *fraction = knob_find("data.validation_fraction");
    if (settings->validation) {
        if (ignored && !knob_equal(fraction, knob_get(fraction, &settings->config), fraction->standard))
            ignored[fraction - knobs] = true;
        knob_set(fraction, &settings->config, fraction->standard);
    }
    char *text = NULL, *json = config_json(&settings->config, false);
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        abort();
    fputs(json, out);
    source_write(settings->corpus, out);
    source_write(settings->validation, out);
    if (fclose(out) != 0)
        abort();
    memory_free(json);
    return text;
}

static void source_copy(struct data_source *to, const struct yaml *from, struct place file)
{
    *to = (struct data_source){.builtin = !from, .given = from, .place = from ? from->place : file};
    to->folder = path_folder(to->place.line ? to->place.file : ".");
    if (!from)
        return;
    to->path_count = from->kind == YAML_SEQUENCE ? from->count : 1;
    to->paths = memory_alloc(to->path_count, sizeof *to->paths);
    for (size_t i = 0; i < to->path_count; i++)
        to->paths[i] = memory_copy_text(from->kind == YAML_SEQUENCE ? from->items[i]->text : from->text);
    to->builtin = from->kind == YAML_SCALAR && strcmp(from->text, "builtin") == 0;
}

static void source_release(struct data_source *source)
{
    for (size_t i = 0; i < source->path_count; i++)
        memory_free(source->paths[i]);
    memory_free(source->paths);
    memory_free(source->folder);
}

void variant_release(struct variant *variant)
{
    memory_free(variant->label);
    source_release(&variant->data.corpus);
    source_release(&variant->data.validation);
    for (size_t i = 0; i < variant->override_count; i++) {
        memory_free(variant->overrides[i].name);
        memory_free(variant->overrides[i].value);
    }
    memory_free(variant->overrides);
    *variant = (struct variant){0};
}

static void override_add(struct variant *variant, const struct setting_value *value)
{
    for (size_t i = 0; i < variant->override_count; i++)
        if (strcmp(variant->overrides[i].name, setting_name(value->setting)) == 0)
            return;
    size_t n = variant->override_count++;
    variant->overrides =
        memory_grow(variant->overrides, n * sizeof *variant->overrides, n + 1, sizeof *variant->overrides);
    variant->overrides[n] =
        (struct override){memory_copy_text(setting_name(value->setting)), setting_value_text(value)};
}

static struct setting_value settings_value(const struct settings *settings, int setting)
{
    struct setting_value value = {.setting = setting};
    const struct knob *knob = setting_knob(setting);
    if (knob)
        value.knob = knob_get(knob, &settings->config);
    else
        value.source = setting == SETTING_CORPUS ? settings->corpus : settings->validation;
    return value;
}

/* What is written differently from the baseline and matters: the point's values first, then the rest by name. */
static void overrides_fill(struct variant *variant, const struct sweep_point *point, const struct settings *settings,
                           const struct settings *control, const bool *ignored)
{
    for (size_t i = 0; i < point->count + SETTING_COUNT; i++) {
        int setting = i < point->count ? point->values[i]->setting : (int)(i - point->count);
        struct setting_value value = settings_value(settings, setting);
        if (!settings_have(control, &value) && (!setting_knob(setting) || !ignored[setting]))
            override_add(variant, &value);
    }
}

static void ignored_note(struct maker *maker, const struct sweep_point *point, const bool *ignored, const char *label)
{
    for (size_t i = 0; i < knob_count; i++) {
        if (!ignored[i] || maker->ignored_counts[i]++)
            continue;
        maker->ignored_labels[i] = memory_copy_text(label);
        maker->ignored_places[i] = own_place(maker->draft, (int)i, point->on_baseline);
        for (size_t k = 0; k < point->count; k++)
            if (point->values[k]->setting == (int)i)
                maker->ignored_places[i] = point->values[k]->place;
    }
}

static void ignored_tell(struct maker *maker)
{
    for (size_t i = 0; i < knob_count; i++) {
        size_t others = maker->ignored_counts[i] - 1;
        if (!maker->ignored_counts[i])
            continue;
        if (others)
            problem_note(maker->draft->problems, maker->ignored_places[i],
                         "%s changes nothing in '%s' and %zu more: it counts as default there", knobs[i].name,
                         maker->ignored_labels[i], others);
        else
            problem_note(maker->draft->problems, maker->ignored_places[i],
                         "%s changes nothing in '%s': it counts as default there", knobs[i].name,
                         maker->ignored_labels[i]);
    }
}

static struct variant *maker_grow(struct maker *maker)
{
    struct experiment *experiment = maker->draft->experiment;
    size_t n = experiment->variant_count;
    if (n == maker->room) {
        maker->room = n ? 2 * n : 16;
        experiment->variants =
            memory_grow(experiment->variants, n * sizeof(struct variant), maker->room, sizeof(struct variant));
        maker->extras = memory_grow(maker->extras, n * sizeof *maker->extras, maker->room, sizeof *maker->extras);
    }
    experiment->variant_count++;
    experiment->variants[n] = (struct variant){0};
    maker->extras[n] = (struct maker_variant){0};
    return &experiment->variants[n];
}

/* The point is a variant that is already there. */
static void variant_meet(struct maker *maker, size_t index, const struct sweep_point *point, char *label)
{
    struct maker_variant *extra = &maker->extras[index];
    if (!(point->control && strcmp(extra->short_label, "baseline") == 0))
        problem_note(maker->draft->problems, point->place, "'%s' is the same run as '%s': it is trained once", label,
                     extra->short_label);
    if (!point->label || extra->named) {
        memory_free(label);
        return;
    }
    memory_free(extra->short_label);
    extra->short_label = label;
    extra->named = true;
    extra->place = point->place;
}

static void point_add(void *context, const struct sweep_point *point)
{
    struct maker *maker = context;
    struct experiment_draft *draft = maker->draft;
    struct check_context check = {.draft = draft, .told = &maker->told};
    struct settings settings = point_settings(draft, point), canonical = settings;
    size_t errors = draft->problems->errors;
    point_check(&check, point, &settings);
    if (draft->problems->errors > errors || maker->told.count)
        return;
    bool *ignored = memory_alloc(knob_count, sizeof *ignored);
    char *identity = settings_identity(&canonical, ignored);
    char *label = point->label ? memory_copy_text(point->label) : sweep_point_describe(point, false);
    ignored_note(maker, point, ignored, label);
    size_t known = text_index_find(&maker->known, identity);
    if (known != SIZE_MAX)
        variant_meet(maker, known, point, label);
    else {
        struct variant *variant = maker_grow(maker);
        size_t index = draft->experiment->variant_count - 1;
        text_index_add(&maker->known, identity, index);
        maker->extras[index] =
            (struct maker_variant){label, sweep_point_describe(point, true), point->label != NULL, point->place};
        variant->config = canonical.config;
        source_copy(&variant->data.corpus, canonical.corpus, draft->place);
        source_copy(&variant->data.validation, canonical.validation, draft->place);
        variant->data.corpus.given = true;
        variant->data.validation.builtin = canonical.validation && variant->data.validation.builtin;
        overrides_fill(variant, point, &settings, &draft->control, ignored);
        variant->baseline = strcmp(identity, maker->control_identity) == 0;
        if (variant->baseline)
            maker->control = index;
    }
    memory_free(identity);
    memory_free(ignored);
}

/* ---- labels ---- */

/* Too long, or with control bytes from a path: the start, then a hash that keeps it apart. */
static char *label_tame(char *label)
{
    bool tame = strlen(label) <= LABEL_LIMIT;
    for (const char *p = label; *p; p++)
        tame &= (unsigned char)*p >= 0x20 && *p != 0x7f;
    if (tame)
        return label;
    char hash[HASH_TEXT_SIZE], *shorter = memory_alloc(LABEL_LIMIT + 1, 1);
    hash_bytes(label, strlen(label), hash);
    size_t keep = strlen(label) < LABEL_LIMIT - 20 ? strlen(label) : LABEL_LIMIT - 20;
    while (keep && ((unsigned char)label[keep] & 0xc0) == 0x80)
        keep--;
    memcpy(shorter, label, keep);
    for (size_t i = 0; i < keep; i++)
        if ((unsigned char)shorter[i] < 0x20 || shorter[i] == 0x7f)
            shorter[i] = '?';
    snprintf(shorter + keep, LABEL_LIMIT + 1 - keep, "... #%.8s", hash);
    memory_free(label);
    return shorter;
}

static void label_take(struct maker *maker, struct text_index *taken, size_t index, char *label)
{
    maker->draft->experiment->variants[index].label = label;
    text_index_add(taken, label, index);
}

static void named_label(struct maker *maker, struct text_index *taken, size_t index)
{
    struct maker_variant *extra = &maker->extras[index];
    size_t other = text_index_find(taken, extra->short_label);
    if (other != SIZE_MAX)
        problem_add(maker->draft->problems, extra->place, "label '%s' names two different variants: also at line %d",
                    extra->short_label, maker->extras[other].place.line);
    else
        label_take(maker, taken, index, memory_copy_text(extra->short_label));
}

static void made_label(struct maker *maker, struct text_index *taken, size_t index)
{
    struct maker_variant *extra = &maker->extras[index];
    char *label = label_tame(memory_copy_text(extra->short_label));
    for (int attempt = 0; text_index_find(taken, label) != SIZE_MAX; attempt++) {
        memory_free(label);
        label = NULL;
        if (attempt == 0)
            label = label_tame(memory_copy_text(extra->full_label));
        else if (asprintf(&label, "%.*s #%d", LABEL_LIMIT - 20, extra->short_label, attempt + 1) < 0)
            abort();
    }
    label_take(maker, taken, index, label);
}

/* Labels the user wrote come first, so that made ones give way. */
static void labels_make(struct maker *maker)
{
    struct text_index taken = {0};
    size_t count = maker->draft->experiment->variant_count;
    for (size_t i = 0; i < count; i++)
        if (maker->extras[i].named)
            named_label(maker, &taken, i);
    for (size_t i = 0; i < count; i++)
        if (!maker->extras[i].named)
            made_label(maker, &taken, i);
    text_index_release(&taken);
}

/* ---- all of it ---- */

static void control_settle(struct maker *maker, const struct sweep_point *control)
{
    struct experiment_draft *draft = maker->draft;
    if (maker->control != SIZE_MAX || draft->problems->errors)
        return;
    if (!draft->baseline_given) {
        problem_note(draft->problems, draft->place,
                     "no variant has the file's own settings, so there is no baseline to compare with: name one with "
                     "baseline:");
        return;
    }
    point_add(maker, control);
    size_t last = draft->experiment->variant_count - 1;
    if (maker->control != last)
        return;
    problem_note(draft->problems, draft->place, "no point of the sweep is the baseline: it is added as a variant");
    struct variant variant = draft->experiment->variants[last];
    struct maker_variant extra = maker->extras[last];
    memmove(draft->experiment->variants + 1, draft->experiment->variants, last * sizeof variant);
    memmove(maker->extras + 1, maker->extras, last * sizeof extra);
    draft->experiment->variants[0] = variant;
    maker->extras[0] = extra;
}

static void exclusions_tell(const struct experiment_draft *draft)
{
    for (size_t b = 0; b < draft->block_count; b++)
        for (size_t i = 0; i < draft->blocks[b].exclusion_count; i++)
            if (!draft->blocks[b].exclusions[i].used)
                problem_note(draft->problems, draft->blocks[b].exclusions[i].place,
                             "this exclude matches no point of the sweep");
}

static void maker_release(struct maker *maker)
{
    for (size_t i = 0; i < maker->draft->experiment->variant_count; i++) {
        memory_free(maker->extras[i].short_label);
        memory_free(maker->extras[i].full_label);
    }
    for (size_t i = 0; i < knob_count; i++)
        memory_free(maker->ignored_labels[i]);
    memory_free(maker->extras);
    memory_free(maker->ignored_counts);
    memory_free(maker->ignored_labels);
    memory_free(maker->ignored_places);
    memory_free(maker->control_identity);
    text_index_release(&maker->known);
    text_index_release(&maker->told);
}

void variants_build(struct experiment_draft *draft)
{
    struct settings control_canonical = draft->control;
    struct maker maker = {.draft = draft, .control = SIZE_MAX};
    maker.control_identity = settings_identity(&control_canonical, NULL);
    maker.ignored_counts = memory_alloc(knob_count, sizeof *maker.ignored_counts);
    maker.ignored_labels = memory_alloc(knob_count, sizeof *maker.ignored_labels);
    maker.ignored_places = memory_alloc(knob_count, sizeof *maker.ignored_places);
    struct sweep_point control = {.control = true, .on_baseline = true, .place = draft->place};
    struct sweep_point own = {.place = draft->place};
    if (draft->block_count)
        points_walk(draft, point_add, &maker);
    else {
        own.label = draft->overrides.count ? draft->experiment->name : NULL;
        point_add(&maker, &own);
    }
    if (!draft->problems->errors && draft->experiment->variant_count == 0)
        problem_add(draft->problems, draft->place, "exclude takes every point out: expected at least one run");
    control_settle(&maker, &control);
    if (!draft->problems->errors)
        labels_make(&maker);
    if (!draft->problems->errors) {
        ignored_tell(&maker);
        exclusions_tell(draft);
    }
    maker_release(&maker);
}

void variants_filter(struct experiment_draft *draft)
{
    struct experiment *experiment = draft->experiment;
    const struct experiment_options *options = draft->options;
    if (!options->only_count)
        return;
    bool *kept = memory_alloc(experiment->variant_count, sizeof *kept);
    const char **labels = memory_alloc(experiment->variant_count, sizeof(const char *));
    for (size_t i = 0; i < experiment->variant_count; i++)
        labels[i] = experiment->variants[i].label;
    for (size_t o = 0; o < options->only_count; o++) {
        bool found = false;
        for (size_t i = 0; i < experiment->variant_count; i++)
            if (strcmp(labels[i], options->only[o]) == 0)
                found = kept[i] = true;
        const char *nearest = suggest_nearest(options->only[o], labels, experiment->variant_count);
        if (!found)
            problem_add(draft->problems, (struct place){"--only", 0, 0}, "no variant is called '%s'%s%s%s",
                        options->only[o], nearest ? ": did you mean '" : " (`runner plan` lists them)",
                        nearest ? nearest : "", nearest ? "'?" : "");
    }
    size_t left = 0;
    for (size_t i = 0; i < experiment->variant_count; i++)
        if (kept[i])
            experiment->variants[left++] = experiment->variants[i];
        else
            variant_release(&experiment->variants[i]);
    experiment->variant_count = left;
    memory_free(labels);
    memory_free(kept);
}
