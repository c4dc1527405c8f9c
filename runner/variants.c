/* Points of sweeps become variants: canonical, collapsed with their equals, the baseline among them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "runner/file.h"
#include "runner/text_stream.h"
#include "runner/variant_maker.h"

enum { FIRST_ROOM = 16 }; /* for so many variants before more is asked for */

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
    char *json = config_json(&settings->config, false);
    struct text_stream text;
    text_stream_open(&text);
    fputs(json, text.out);
    source_write(settings->corpus, text.out);
    source_write(settings->validation, text.out);
    memory_free(json);
    return text_stream_take(&text);
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
        maker->room = 2 * n;
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
    struct settings settings = point_settings(draft, point), canonical = settings;
    if (!point_check(draft, point, &settings))
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

/* ---- all of it ---- */

static void control_settle(struct maker *maker, const struct sweep_point *control)
{
    struct experiment_draft *draft = maker->draft;
    if (draft->problems->errors)
        control_check(draft);
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
}

void variants_build(struct experiment_draft *draft)
{
    struct settings control_canonical = draft->control;
    struct maker maker = {.draft = draft, .room = FIRST_ROOM, .control = SIZE_MAX};
    draft->experiment->variants = memory_alloc(maker.room, sizeof *draft->experiment->variants);
    maker.extras = memory_alloc(maker.room, sizeof *maker.extras);
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
