/* Variants while they are made: shared by variants.c and variant_labels.c. */
#ifndef RUNNER_VARIANT_MAKER_H
#define RUNNER_VARIANT_MAKER_H

#include "runner/experiment_draft.h"

struct maker {
    struct experiment_draft *draft;
    struct text_index known; /* identity to variant */
    size_t room;             /* for so many variants there is memory */
    struct maker_variant {
        char *short_label, *full_label;
        bool named; /* the user wrote the label */
        struct place place;
    } * extras;                   /* beside the experiment's variants */
    size_t *ignored_counts;       /* by knob: variants that ignore it */
    char **ignored_labels;        /* by knob: the first of them */
    struct place *ignored_places; /* by knob */
    size_t control;               /* index of the baseline's variant, or SIZE_MAX */
    char *control_identity;
};

/* Labels the user wrote come first, so that made ones give way. Two different variants of one label are a problem. */
void labels_make(struct maker *maker);

#endif
