/* Marginal effects as people and programs read them. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/memory.h"
#include "runner/effect.h"
#include "runner/loss_table.h"

enum { CELL_SIZE = 96, VERDICT_LEAST = 12 };

static void number_cell(struct table *table, double value, const char *sign)
{
    char buf[CELL_SIZE];
    if (isfinite(value))
        snprintf(buf, sizeof buf, "%s%.4f", value >= 0 ? sign : "", value);
    table_shown(table, value, isfinite(value) ? buf : "n/a");
}

/* narrow: the interval as its half width, and no column of levels where there is one. */
static void interval_cell(struct table *table, const struct paired *paired, bool narrow)
{
    if (isfinite(paired->ci_low) && narrow)
        table_textf(table, "%.4f", (paired->ci_high - paired->ci_low) / 2);
    else if (isfinite(paired->ci_low))
        table_textf(table, "[%.4f, %.4f]", paired->ci_low, paired->ci_high);
    else
        table_absent(table, "n/a");
}

static const char *verdict_text(const struct compared *compared, bool interaction, char buf[VERDICT_SIZE])
{
    if (interaction && (compared->verdict == VERDICT_BETTER || compared->verdict == VERDICT_WORSE))
        return "differs";
    return verdict_format(compared->verdict, compared->seeds, buf);
}

static void statistic_columns(struct table *table, const struct effects *e, bool narrow)
{
    char heading[64];
    table_column(table, "delta", TABLE_RIGHT);
    snprintf(heading, sizeof heading, narrow ? "+- (%g %%)" : "%g %% interval", 100 * (1 - e->rules.alpha));
    table_column(table, heading, TABLE_RIGHT);
    table_column(table, "p_holm", TABLE_RIGHT);
    table_column(table, "mde", TABLE_RIGHT);
    table_column(table, "seeds", TABLE_LEFT);
    table_column(table, "verdict", TABLE_LEFT);
}

static void statistic_cells(struct table *table, const struct effect *effect, bool interaction, bool narrow)
{
    char buf[VERDICT_SIZE];
    const struct paired *paired = &effect->compared.paired;
    double p = effect->compared.p_holm;
    number_cell(table, paired->delta, "+");
    interval_cell(table, paired, narrow);
    if (isfinite(p) && p < 0.0001)
        table_shown(table, p, "<0.0001");
    else
        number_cell(table, p, "");
    number_cell(table, paired->mde, "");
    table_textf(table, "%zu of %zu", paired->n, effect->planned);
    table_text(table, verdict_text(&effect->compared, interaction, buf));
}

static void level_cell(struct table *table, const struct effects *e, const struct effect *effect)
{
    table_textf(table, "%s=%s", strrchr(e->knob, '.') + 1, effect->level);
}

static struct table *overall_table(const struct effects *e, bool narrow)
{
    struct table *table = table_create();
    char moment[MOMENT_SIZE];
    const char *field = strrchr(e->knob, '.') + 1;
    table_caption(table, "%s: effect of %s on %s of %s %s, against %s=%s; %s 0 is better", e->experiment, field,
                  e->metric, e->split, moment_format(&e->moment, moment), field, e->reference,
                  e->rules.higher ? "above" : "below");
    table_caption(table, "Mean over the other settings, paired by seed; margin %g, alpha %g", e->rules.margin,
                  e->rules.alpha);
    table_column(table, "level", TABLE_LEFT);
    table_column(table, "settings", TABLE_RIGHT);
    statistic_columns(table, e, narrow);
    for (size_t i = 0; i < e->overall_count; i++) {
        level_cell(table, e, &e->overall[i]);
        table_integer(table, (int64_t)e->overall[i].settings);
        statistic_cells(table, &e->overall[i], false, narrow);
    }
    return table;
}

static struct table *settings_table(const struct effects *e, bool interaction, bool narrow)
{
    struct table *table = table_create();
    const struct effect *effects = interaction ? e->interactions : e->at_settings;
    size_t count = interaction ? e->interaction_count : e->setting_count;
    if (interaction)
        table_caption(table, "Interactions: that effect minus the effect at %s", e->home);
    else
        table_caption(table, "The effect at each of the other settings");
    bool levels = !narrow || e->overall_count > 1;
    if (levels)
        table_column(table, "level", TABLE_LEFT);
    table_column(table, "at", TABLE_LEFT);
    statistic_columns(table, e, narrow);
    for (size_t i = 0; i < count; i++) {
        if (levels)
            level_cell(table, e, &effects[i]);
        table_text(table, effects[i].setting);
        statistic_cells(table, &effects[i], interaction, narrow);
    }
    return table;
}

/* Of all three tables. */
static int text_width(const struct effects *e, bool narrow)
{
    int most = 0;
    for (int i = 0; i < 3; i++) {
        struct table *table = i == 0 ? overall_table(e, narrow) : settings_table(e, i == 2, narrow);
        int width = table_row_count(table) ? table_text_width(table, VERDICT_LEAST) : 0;
        most = width > most ? width : most;
        table_free(table);
    }
    return most;
}

static void write_people(const struct effects *e, enum table_format format, int width, FILE *out)
{
    bool narrow = format == TABLE_TEXT && width > 0 && text_width(e, false) > width;
    struct table *table = overall_table(e, narrow);
    table_write(table, format, width, out);
    table_free(table);
    for (int interaction = 0; interaction < 2; interaction++) {
        table = settings_table(e, interaction, narrow);
        if (table_row_count(table)) {
            fputc('\n', out);
            table_write(table, format, width, out);
        }
        table_free(table);
    }
}

/* ---- programs ---- */

static void data_rows(struct table *table, const struct effects *e, const char *kind, const struct effect *effects,
                      size_t count)
{
    char buf[VERDICT_SIZE];
    bool interaction = strcmp(kind, "interaction") == 0;
    for (size_t i = 0; i < count; i++) {
        const struct paired *paired = &effects[i].compared.paired;
        const double numbers[] = {paired->delta, paired->ci_low, paired->ci_high, paired->p, effects[i].compared.p_holm,
                                  paired->mde};
        table_text(table, kind);
        table_text(table, effects[i].level);
        table_text(table, e->reference);
        table_text(table, effects[i].setting);
        table_integer(table, (int64_t)effects[i].settings);
        table_integer(table, (int64_t)paired->n);
        table_integer(table, (int64_t)effects[i].planned);
        for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++)
            table_number(table, numbers[k], "%g");
        table_text(table, verdict_text(&effects[i].compared, interaction, buf));
    }
}

static struct table *data_table(const struct effects *e)
{
    static const char *const names[] = {"kind",  "level",  "reference", "setting", "settings", "n",   "n_planned",
                                        "delta", "ci_low", "ci_high",   "p",       "p_holm",   "mde", "verdict"};
    struct table *table = table_create();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        table_column(table, names[i], TABLE_LEFT);
    data_rows(table, e, "overall", e->overall, e->overall_count);
    data_rows(table, e, "setting", e->at_settings, e->setting_count);
    data_rows(table, e, "interaction", e->interactions, e->interaction_count);
    return table;
}

static void write_json(const struct effects *e, const struct table *rows, FILE *out)
{
    char moment[MOMENT_SIZE];
    json_t *root = json_object();
    json_put(root, "experiment", json_from_text(e->experiment));
    json_put(root, "metric", json_from_text(e->metric));
    json_put(root, "split", json_from_text(e->split));
    json_put(root, "by", json_from_text(e->knob));
    json_put(root, "at", json_from_text(moment_name(&e->moment, moment)));
    json_put(root, "rows", table_json(rows));
    json_print(root, out);
    json_decref(root);
}

void effects_write(const struct effects *effects, enum table_format format, int width, FILE *out)
{
    if (format == TABLE_CSV || format == TABLE_JSON) {
        struct table *rows = data_table(effects);
        if (format == TABLE_CSV)
            table_write(rows, TABLE_CSV, 0, out);
        else
            write_json(effects, rows, out);
        table_free(rows);
    } else {
        write_people(effects, format, width, out);
    }
}
