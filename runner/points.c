/* The points of a file's sweeps: walked, counted, and refused where they cannot be trained. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "runner/experiment_draft.h"
#include "runner/table.h"

enum { RUNS_FREE = 1000, RUNS_LIMIT = 100000 };

const struct settings *point_start(const struct experiment_draft *draft, const struct sweep_point *point)
{
    return point->on_baseline || point->control ? &draft->control : &draft->base;
}

struct settings point_settings(const struct experiment_draft *draft, const struct sweep_point *point)
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

void points_walk(struct experiment_draft *draft, void (*see)(void *context, const struct sweep_point *point),
                 void *context)
{
    struct sweep_point point = {.values = memory_alloc(points_width(draft), sizeof(const struct setting_value *))};
    for (size_t i = 0; i < draft->block_count; i++) {
        uint64_t count = 0;
        if (draft->blocks[i].good)
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

bool variants_count_check(struct experiment_draft *draft)
{
    uint64_t points = draft->block_count == 0, runs = 0, count;
    bool fits = true;
    char shown[32], limit[32];
    for (size_t i = 0; i < draft->block_count; i++)
        fits = sweep_block_count(&draft->blocks[i], &count) && fits && !__builtin_add_overflow(points, count, &points);
    fits = fits && !__builtin_mul_overflow(points, draft->seeds.count, &runs);
    if (!fits || runs > RUNS_LIMIT) {
        bool shows = fits && runs <= INT64_MAX;
        problem_add(draft->problems, draft->place, "this sweep has %s%s runs: expected at most %s in one sweep",
                    shows  ? ""
                    : fits ? "more than 2^63"
                           : "more than 2^64",
                    shows ? format_count((int64_t)runs, shown) : "", format_count(RUNS_LIMIT, limit));
        return false;
    }
    if (runs > RUNS_FREE && draft->block_count) {
        points = 0;
        points_walk(draft, point_count, &points);
        runs = points * draft->seeds.count;
    }
    if (runs <= RUNS_FREE || draft->options->yes)
        return true;
    problem_add(draft->problems, draft->place, "this sweep has %s runs: over %s need --yes",
                format_count((int64_t)runs, shown), format_count(RUNS_FREE, limit));
    return false;
}

/* ---- combinations that cannot be trained ---- */

struct check_context {
    struct experiment_draft *draft;
    const struct sweep_point *point;
    struct text_index *texts; /* what the settings without the point already have wrong */
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

struct place own_place(const struct experiment_draft *draft, int setting, bool on_baseline)
{
    const struct setting_value *value = on_baseline ? list_find(&draft->overrides, setting) : NULL;
    if (!value)
        value = list_find(&draft->own, setting);
    return value ? value->place : draft->place;
}

static bool text_names(const char *text, const struct setting_value *value)
{
    const struct knob *knob = setting_knob(value->setting);
    return knob && strstr(text, knob->field);
}

/* The value of the point that is to blame: the knob's own, else one whose field the text names. */
static const struct setting_value *point_culprit(const struct sweep_point *point, int setting, const char *text)
{
    for (size_t i = 0; i < point->count; i++)
        if (point->values[i]->setting == setting)
            return point->values[i];
    for (size_t i = 0; i < point->count; i++)
        if (text_names(text, point->values[i]))
            return point->values[i];
    return NULL;
}

/* Where the file's own settings are to blame: at the knob, else (it has its default) at one that the text names. */
static struct place own_culprit(const struct experiment_draft *draft, int setting, bool on_baseline, const char *text)
{
    const struct setting_list *lists[] = {on_baseline ? &draft->overrides : &draft->own, &draft->own};
    if (list_find(lists[0], setting) || list_find(lists[1], setting))
        return own_place(draft, setting, on_baseline);
    for (size_t l = 0; l < sizeof lists / sizeof lists[0]; l++)
        for (size_t i = 0; i < lists[l]->count; i++)
            if (text_names(text, &lists[l]->values[i]))
                return lists[l]->values[i].place;
    return draft->place;
}

static void check_report(void *context, const struct knob *knob, const char *text)
{
    struct check_context *check = context;
    const struct sweep_point *point = check->point;
    int setting = (int)(knob - knobs);
    if (text_index_find(check->texts, text) != SIZE_MAX) {
        if (text_index_find(&check->draft->told, text) == SIZE_MAX) {
            text_index_add(&check->draft->told, text, 0);
            problem_add(check->draft->problems, own_culprit(check->draft, setting, point->on_baseline, text), "%s",
                        text);
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

bool point_check(struct experiment_draft *draft, const struct sweep_point *point, const struct settings *settings)
{
    struct text_index texts = {0};
    struct check_context context = {draft, point, &texts};
    const struct settings *start = point_start(draft, point);
    config_check_known(&start->config, start->unread, check_gather, &context);
    size_t wrong = config_check_known(&settings->config, settings->unread, check_report, &context);
    text_index_release(&texts);
    return wrong == 0;
}

static void point_try(void *context, const struct sweep_point *point)
{
    struct experiment_draft *draft = context;
    struct settings settings = point_settings(draft, point);
    point_check(draft, point, &settings);
}

void points_check(struct experiment_draft *draft)
{
    const struct sweep_point own = {.place = draft->place};
    struct settings settings = draft->base;
    bool all = draft->block_count > 0;
    uint64_t total = 0, count;
    for (size_t i = 0; i < draft->block_count; i++) {
        struct sweep_block *block = &draft->blocks[i];
        block->good = block->good && sweep_block_count(block, &count) && count <= RUNS_LIMIT - total;
        if (block->good)
            total += count;
        else
            sweep_block_names(block, settings.unread);
        all &= block->good;
    }
    for (size_t i = 0; i < SETTING_COUNT; i++)
        settings.unread[i] |= draft->varied[i];
    for (size_t i = 0; draft->block_count && i < draft->overrides.count; i++) /* an ablation starts from them */
        settings.unread[draft->overrides.values[i].setting] = true;
    points_walk(draft, point_try, draft);
    if (!all)
        point_check(draft, &own, &settings);
    control_check(draft);
}

void control_check(struct experiment_draft *draft)
{
    const struct sweep_point control = {.control = true, .on_baseline = true, .place = draft->place};
    if (draft->baseline_given)
        point_check(draft, &control, &draft->control);
}
