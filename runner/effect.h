/* What one knob does over a grid: runs that differ in nothing else are paired, by seed and by all other settings.
 *
 *                     seed 1     seed 2          each cell: the loss with the level minus that with the reference
 * level; residual=pre       -0.10      -0.12          the effect:    the mean of each column, over the seeds
 *   residual=post      -0.02      -0.01          interactions:  the other rows minus the row of the baseline's settings
 *
 *   struct effects *e = effects_read(db, experiment_id, "model.norm", "bits_per_byte", "validation", &moment, &err);
 *   effects_write(e, TABLE_TEXT, 100, stdout);
 *   effects_free(e); */
#ifndef RUNNER_EFFECT_H
#define RUNNER_EFFECT_H

#include <sqlite3.h>
#include <stdio.h>

#include "runner/comparison.h"
#include "runner/moment.h"
#include "runner/table.h"

/* One level against the reference, over all settings or at one. */
struct effect {
    const char *level;
    const char *setting; /* "residual=post"; NULL: the mean over all of them */
    size_t settings;     /* that have both levels */
    size_t planned;      /* seeds */
    struct compared compared;
};

struct effects {
    char *experiment, *metric, *split;
    const char *knob; /* full name */
    struct moment moment;
    struct comparison_rules rules;
    char *reference; /* the level of the baseline */
    char *home;      /* the settings that interactions are told against */
    struct effect *overall, *at_settings, *interactions;
    size_t overall_count, setting_count, interaction_count;
    char **texts; /* what levels and settings point to */
    size_t text_count;
};

/* knob: full name, or what follows the group when that is unambiguous. NULL and err when the experiment does not vary
 * it (which names those it does), or the database fails. Owner: caller, effects_free(). */
struct effects *effects_read(sqlite3 *db, int64_t experiment, const char *knob, const char *metric, const char *split,
                             const struct moment *moment, struct error *err);
void effects_free(struct effects *effects); /* takes NULL */

void effects_write(const struct effects *effects, enum table_format format, int width, FILE *out);

#endif
