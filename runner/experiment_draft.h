/* An experiment while it is put together: shared by experiment.c, which reads the file, and variants.c, which makes
 * the points of its sweeps into variants. */
#ifndef RUNNER_EXPERIMENT_DRAFT_H
#define RUNNER_EXPERIMENT_DRAFT_H

#include "runner/experiment.h"
#include "runner/experiment_tree.h"
#include "runner/seeds.h"
#include "runner/sweep_block.h"
#include "runner/text_index.h"

struct experiment_draft {
    struct problems *problems;
    const struct experiment_options *options;
    struct experiment_tree tree;
    struct setting_list own, overrides; /* the file's settings; those under baseline: */
    bool baseline_given;                /* a baseline: key is written */
    bool varied[SETTING_COUNT];         /* by a sweep under a misspelt key */
    struct settings base, control;      /* defaults + own; base + overrides */
    struct sweep_block *blocks;
    size_t block_count;
    struct seed_plan seeds;
    struct place place;     /* of the sweep, or the file */
    struct text_index told; /* what is wrong with the file's own settings, said once for all points */
    struct experiment *experiment;
};

/* The number of runs against what is allowed. False with a problem that shows it. Allocates nothing. */
bool variants_count_check(struct experiment_draft *draft);

/* What a point changes, and the outcome. */
const struct settings *point_start(const struct experiment_draft *draft, const struct sweep_point *point);
struct settings point_settings(const struct experiment_draft *draft, const struct sweep_point *point);

/* Where the file (or baseline:) sets a setting; the sweep when it does not. */
struct place own_place(const struct experiment_draft *draft, int setting, bool on_baseline);

/* Calls see for each point that is not excluded, in file order. */
void points_walk(struct experiment_draft *draft, void (*see)(void *context, const struct sweep_point *point),
                 void *context);

/* False with problems when the point cannot be trained: at its value that is to blame, or at the file's own. */
bool point_check(struct experiment_draft *draft, const struct sweep_point *point, const struct settings *settings);

/* Beside other problems of the file: every point of the blocks that are good, the file's own settings when a point that
 * leaves them alone may be among the others, and the baseline. */
void points_check(struct experiment_draft *draft);
/* The baseline alone, when one is written. */
void control_check(struct experiment_draft *draft);

/* Fills the experiment's variants: checked, canonical, each once, labelled, the baseline marked. */
void variants_build(struct experiment_draft *draft);

/* Keeps only the variants that options->only names. */
void variants_filter(struct experiment_draft *draft);

void variant_release(struct variant *variant);

#endif
