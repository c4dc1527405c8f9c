/* An experiment while it is put together: shared by experiment.c, which reads the file, and variants.c, which makes
 * the points of its sweeps into variants. */
#ifndef RUNNER_EXPERIMENT_DRAFT_H
#define RUNNER_EXPERIMENT_DRAFT_H

#include "runner/experiment.h"
#include "runner/experiment_tree.h"
#include "runner/seeds.h"
#include "runner/sweep_block.h"

struct experiment_draft {
    struct problems *problems;
    const struct experiment_options *options;
    struct experiment_tree tree;
    struct setting_list own, overrides; /* the file's settings; those under baseline: */
    bool baseline_given;                /* a baseline: key is written */
    struct settings base, control;      /* defaults + own; base + overrides */
    struct sweep_block *blocks;
    size_t block_count;
    struct seed_plan seeds;
    struct place place; /* of the sweep, or the file */
    struct experiment *experiment;
};

/* The number of runs against what is allowed. False with a problem that shows it. Allocates nothing. */
bool variants_count_check(struct experiment_draft *draft);

/* Fills the experiment's variants: checked, canonical, each once, labelled, the baseline marked. */
void variants_build(struct experiment_draft *draft);

/* Keeps only the variants that options->only names. */
void variants_filter(struct experiment_draft *draft);

void variant_release(struct variant *variant);

#endif
