/* Marginal effects of a knob, and how they depend on the other settings. */
#include "runner/effect.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "core/knob.h"
#include "core/memory.h"
#include "core/metric.h"
#include "runner/problem.h"
#include "runner/query.h"
#include "runner/sql.h"
#include "runner/text_stream.h"

/* A run: its level of the knob, and the rest of its configuration as text. Indices are into grid's lists. */
struct trial {
    json_t *config;
    bool baseline, there;
    size_t level, setting;
    int64_t seed;
    double value;
};

struct list {
    char **items;
    size_t count;
};

struct grid {
    struct trial *trials;
    size_t count;
    struct list levels, settings; /* settings: canonical texts */
    struct list labels;           /* of the settings */
    int64_t *seeds;
    size_t seed_count;
    size_t reference, home; /* level and setting of the baseline */
};

/* Index of the text, which is taken over. */
static size_t list_index(struct list *list, char *text)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i], text) == 0) {
            memory_free(text);
            return i;
        }
    list->items = memory_grow(list->items, list->count * sizeof *list->items, list->count + 1, sizeof *list->items);
    list->items[list->count] = text;
    return list->count++;
}

static void list_release(struct list *list)
{
    for (size_t i = 0; i < list->count; i++)
        memory_free(list->items[i]);
    memory_free(list->items);
}

static void grid_release(struct grid *grid)
{
    for (size_t i = 0; i < grid->count; i++)
        json_decref(grid->trials[i].config);
    memory_free(grid->trials);
    memory_free(grid->seeds);
    list_release(&grid->levels);
    list_release(&grid->settings);
    list_release(&grid->labels);
}

/* ---- reading ---- */

static bool trials_read(struct grid *grid, sqlite3 *db, int64_t experiment, const struct effects *e, struct error *err)
{
    sqlite3_stmt *s = sql_prepare(db, query_text(QUERY_MEMBER_CONFIGS), "i", err, experiment);
    bool more, ok = s != NULL;
    while (ok && (ok = sql_step(s, &more, err)) && more) {
        struct reading reading;
        grid->trials =
            memory_grow(grid->trials, grid->count * sizeof *grid->trials, grid->count + 1, sizeof *grid->trials);
        struct trial *trial = &grid->trials[grid->count++];
        *trial = (struct trial){.config = json_loads(sql_text(s, 4), 0, NULL),
                                .baseline = sqlite3_column_int(s, 0),
                                .seed = sqlite3_column_int64(s, 1)};
        if (!json_is_object(trial->config))
            ok = error_set(err, "results.db: the configuration of a run is no JSON object: '%.100s'", sql_text(s, 4));
        ok = ok && moment_read(db, sqlite3_column_int64(s, 2), sql_text(s, 3), e->split, e->metric, &e->moment,
                               &reading, err);
        trial->there = ok && reading.there && !isnan(reading.value);
        trial->value = ok ? reading.value : 0;
    }
    sqlite3_finalize(s);
    if (ok && !grid->trials)
        return error_set(err, "experiment '%.200s' has no runs", e->experiment);
    return ok;
}

/* ---- which knob ---- */

/* Absent is the default, which never changes. */
static bool values_equal(const json_t *a, const json_t *b)
{
    return a == b || json_equal(a, b);
}

static bool varies(const struct grid *grid, const char *name)
{
    for (size_t i = 1; i < grid->count; i++)
        if (!values_equal(json_object_get(grid->trials[i].config, name), json_object_get(grid->trials[0].config, name)))
            return true;
    return false;
}

static const char *knob_named(const char *text)
{
    const char *found = NULL;
    for (size_t i = 0; i < knob_count; i++) {
        if (strcmp(knobs[i].name, text) == 0)
            return knobs[i].name;
        if (strcmp(knobs[i].field, text) != 0)
            continue;
        if (found)
            return NULL;
        found = knobs[i].name;
    }
    return found;
}

static bool knob_choose(const struct grid *grid, struct effects *e, const char *text, struct error *err)
{
    const char *names[512]; /* full ones, and without their group */
    char list[512] = "";
    size_t count = 0, used = 0;
    for (size_t i = 0; i < knob_count && count + 1 < sizeof names / sizeof names[0]; i++) {
        names[count++] = knobs[i].field;
        names[count++] = knobs[i].name;
        if (varies(grid, knobs[i].name) && used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", knobs[i].name);
    }
    e->knob = knob_named(text);
    if (e->knob && varies(grid, e->knob))
        return true;
    const char *near = e->knob ? NULL : suggest_nearest(text, names, count);
    return error_set(err, "--by '%.100s': %s%s%s%s; '%.200s' varies %s", text,
                     e->knob ? "every run has the same" : "there is no such knob", near ? ", did you mean '" : "",
                     near ? near : "", near ? "'?" : "", e->experiment, *list ? list : "none");
}

/* ---- the grid ---- */

static char *value_text(const json_t *value)
{
    char number[JSON_NUMBER_SIZE];
    if (json_is_string(value))
        return memory_copy_text(json_string_value(value));
    if (json_is_real(value))
        return memory_copy_text(json_number_format(json_real_value(value), number));
    char *text = value ? json_format(value, JSON_LINE, true) : memory_copy_text("default");
    return text;
}

/* "residual=post, kv_heads=2": where the configuration differs from the home's, the knob aside. */
static char *label_make(const json_t *config, const json_t *home, bool of_baseline, const char *knob)
{
    const char *between = "";
    struct text_stream text;
    text_stream_open(&text);
    for (size_t i = 0; i < knob_count; i++) {
        const json_t *value = json_object_get(config, knobs[i].name);
        if (strcmp(knobs[i].name, knob) == 0 || values_equal(value, json_object_get(home, knobs[i].name)))
            continue;
        char *shown = value_text(value);
        fprintf(text.out, "%s%s=%s", between, knobs[i].field, shown);
        memory_free(shown);
        between = ", ";
    }
    if (!*between)
        fprintf(text.out, "the %s settings", of_baseline ? "baseline's" : "first variant's");
    return text_stream_take(&text);
}

static void seed_add(struct grid *grid, int64_t seed)
{
    for (size_t i = 0; i < grid->seed_count; i++)
        if (grid->seeds[i] == seed)
            return;
    grid->seeds =
        memory_grow(grid->seeds, grid->seed_count * sizeof *grid->seeds, grid->seed_count + 1, sizeof *grid->seeds);
    grid->seeds[grid->seed_count++] = seed;
}

static void grid_make(struct grid *grid, const char *knob)
{
    const struct trial *home = &grid->trials[0];
    for (size_t i = 0; i < grid->count; i++)
        if (grid->trials[i].baseline) {
            home = &grid->trials[i];
            break;
        }
    for (size_t i = 0; i < grid->count; i++) {
        struct trial *trial = &grid->trials[i];
        json_t *rest = json_copy(trial->config);
        json_object_del(rest, knob);
        size_t known = grid->settings.count;
        trial->level = list_index(&grid->levels, value_text(json_object_get(trial->config, knob)));
        trial->setting = list_index(&grid->settings, json_format(rest, JSON_LINE, true));
        if (grid->settings.count > known)
            list_index(&grid->labels, label_make(trial->config, home->config, home->baseline, knob));
        json_decref(rest);
        seed_add(grid, trial->seed);
    }
    grid->reference = home->level;
    grid->home = home->setting;
}

static const struct trial *trial_find(const struct grid *grid, size_t level, size_t setting, int64_t seed)
{
    for (size_t i = 0; i < grid->count; i++) {
        const struct trial *trial = &grid->trials[i];
        if (trial->level == level && trial->setting == setting && trial->seed == seed)
            return trial;
    }
    return NULL;
}

/* Level minus reference at one setting and seed; not a number when one of them has no value. */
static double difference_at(const struct grid *grid, size_t level, size_t setting, int64_t seed)
{
    const struct trial *a = trial_find(grid, level, setting, seed);
    const struct trial *b = trial_find(grid, grid->reference, setting, seed);
    return a && b && a->there && b->there ? a->value - b->value : (double)NAN;
}

/* Seeds that both levels are planned with at the setting. */
static size_t planned_at(const struct grid *grid, size_t level, size_t setting)
{
    size_t planned = 0;
    for (size_t i = 0; i < grid->seed_count; i++)
        planned += trial_find(grid, level, setting, grid->seeds[i]) &&
                   trial_find(grid, grid->reference, setting, grid->seeds[i]);
    return planned;
}

/* ---- effects ---- */

static void effect_add(struct effect **list, size_t *count, struct effect effect)
{
    *list = memory_grow(*list, *count * sizeof effect, *count + 1, sizeof effect);
    (*list)[(*count)++] = effect;
}

/* Of the mean over the settings: only seeds that have all of them, else the mean would be over other cells. */
static void overall_add(struct effects *e, const struct grid *grid, size_t level, const size_t *settings, size_t count)
{
    double *differences = memory_alloc(grid->seed_count, sizeof *differences);
    struct effect effect = {.level = grid->levels.items[level], .settings = count};
    size_t n = 0;
    for (size_t i = 0; i < grid->seed_count; i++) {
        double sum = count ? 0 : (double)NAN;
        bool planned = false;
        for (size_t k = 0; k < count; k++) {
            sum += difference_at(grid, level, settings[k], grid->seeds[i]) / (double)count;
            planned = planned || trial_find(grid, level, settings[k], grid->seeds[i]);
        }
        effect.planned += planned;
        if (!isnan(sum))
            differences[n++] = sum;
    }
    effect.compared.paired = paired_of(differences, n, e->rules.alpha);
    effect_add(&e->overall, &e->overall_count, effect);
    memory_free(differences);
}

/* The effect at one setting; with `against`, how much it differs from that at another. */
static struct effect effect_at(const struct effects *e, const struct grid *grid, size_t level, size_t setting,
                               const size_t *against)
{
    double *differences = memory_alloc(grid->seed_count, sizeof *differences);
    struct effect effect = {.level = grid->levels.items[level],
                            .setting = grid->labels.items[setting],
                            .settings = 1,
                            .planned = planned_at(grid, level, setting)};
    size_t n = 0;
    for (size_t i = 0; i < grid->seed_count; i++) {
        double difference = difference_at(grid, level, setting, grid->seeds[i]);
        if (against)
            difference -= difference_at(grid, level, *against, grid->seeds[i]);
        if (!isnan(difference))
            differences[n++] = difference;
    }
    effect.compared.paired = paired_of(differences, n, e->rules.alpha);
    memory_free(differences);
    return effect;
}

static void level_add(struct effects *e, const struct grid *grid, size_t level)
{
    size_t *settings = memory_alloc(grid->settings.count, sizeof *settings), count = 0;
    for (size_t s = 0; s < grid->settings.count; s++)
        if (planned_at(grid, level, s))
            settings[count++] = s;
    overall_add(e, grid, level, settings, count);
    size_t home = grid->home;
    if (count && !planned_at(grid, level, home))
        home = settings[0];
    for (size_t k = 0; count > 1 && k < count; k++) {
        effect_add(&e->at_settings, &e->setting_count, effect_at(e, grid, level, settings[k], NULL));
        if (settings[k] != home)
            effect_add(&e->interactions, &e->interaction_count, effect_at(e, grid, level, settings[k], &home));
    }
    memory_free(settings);
}

static void verdicts_of(struct effect *effects, size_t count, struct comparison_rules rules)
{
    struct compared *rows = memory_alloc(count, sizeof *rows);
    for (size_t i = 0; i < count; i++)
        rows[i] = effects[i].compared;
    verdicts_set(rows, count, rules);
    for (size_t i = 0; i < count; i++)
        effects[i].compared = rows[i];
    memory_free(rows);
}

static void effects_make(struct effects *e, struct grid *grid)
{
    grid_make(grid, e->knob);
    for (size_t level = 0; level < grid->levels.count; level++)
        if (level != grid->reference)
            level_add(e, grid, level);
    verdicts_of(e->overall, e->overall_count, e->rules);
    verdicts_of(e->at_settings, e->setting_count, e->rules);
    verdicts_of(e->interactions, e->interaction_count, e->rules);
    e->reference = memory_copy_text(grid->levels.items[grid->reference]);
    e->home = memory_copy_text(grid->labels.items[grid->home]);
    e->text_count = grid->levels.count + grid->labels.count; /* the texts move over to the effects */
    e->texts = memory_alloc(e->text_count, sizeof *e->texts);
    for (size_t i = 0; i < grid->levels.count; i++)
        e->texts[i] = grid->levels.items[i];
    for (size_t i = 0; i < grid->labels.count; i++)
        e->texts[grid->levels.count + i] = grid->labels.items[i];
    grid->levels.count = grid->labels.count = 0;
}

static bool rules_read(struct effects *e, sqlite3 *db, int64_t experiment, struct error *err)
{
    bool row = false;
    sqlite3_stmt *s = sql_prepare(db, "select name, margin, alpha from experiment where id = ?", "i", err, experiment);
    bool ok = s && sql_step(s, &row, err);
    if (ok) {
        e->experiment = memory_copy_text(sql_text(s, 0));
        e->rules = (struct comparison_rules){sqlite3_column_double(s, 1), sqlite3_column_double(s, 2),
                                             metric_higher_is_better(e->metric)};
    }
    sqlite3_finalize(s);
    return ok;
}

struct effects *effects_read(sqlite3 *db, int64_t experiment, const char *knob, const char *metric, const char *split,
                             const struct moment *moment, struct error *err)
{
    struct effects *e = memory_alloc(1, sizeof *e);
    struct grid grid = {0};
    e->metric = memory_copy_text(metric);
    e->split = memory_copy_text(split);
    e->moment = *moment;
    bool ok = rules_read(e, db, experiment, err) && trials_read(&grid, db, experiment, e, err) &&
              knob_choose(&grid, e, knob, err);
    if (ok)
        effects_make(e, &grid);
    grid_release(&grid);
    if (!ok) {
        effects_free(e);
        return NULL;
    }
    return e;
}

void effects_free(struct effects *effects)
{
    if (!effects)
        return;
    for (size_t i = 0; i < effects->text_count; i++)
        memory_free(effects->texts[i]);
    memory_free(effects->texts);
    memory_free(effects->overall);
    memory_free(effects->at_settings);
    memory_free(effects->interactions);
    memory_free(effects->experiment);
    memory_free(effects->metric);
    memory_free(effects->split);
    memory_free(effects->reference);
    memory_free(effects->home);
    memory_free(effects);
}
