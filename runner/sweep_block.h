/* One `sweep:` block of a file: which points it has, counted and had by number without expanding the rest. */
#ifndef RUNNER_SWEEP_BLOCK_H
#define RUNNER_SWEEP_BLOCK_H

#include <stdint.h>

#include "runner/setting.h"

enum sweep_method { METHOD_GRID, METHOD_ABLATION, METHOD_ZIP, METHOD_LIST };

struct axis {
    int setting;
    struct place place; /* of its key */
    struct setting_value *values;
    size_t count; /* 0: its values are refused */
};

/* A point that is written out: a variant of a list, or an include. */
struct named_point {
    const char *label; /* NULL: made from the values */
    struct place place;
    struct setting_list list;
};

struct exclusion {
    struct place place;
    struct setting_list list;
    bool used;
};

struct sweep_block {
    bool good; /* nothing was wrong with it, so its points can be had */
    enum sweep_method method;
    struct place place;
    struct axis *axes;
    struct named_point *variants, *includes;
    struct exclusion *exclusions;
    size_t axis_count, variant_count, include_count, exclusion_count;
};

struct sweep_point {
    const char *label; /* the user's, or NULL */
    struct place place;
    const struct setting_value **values; /* room of sweep_block_width() */
    size_t count;
    bool control;     /* ablation: the baseline itself */
    bool on_baseline; /* the values change the baseline, not the file's own settings */
    bool included;    /* not subject to exclude */
};

/* Problems are added; release it either way. whole: nothing more of it can stand in a file that could not be read. */
void sweep_block_read(const struct yaml *node, struct place key_place, bool whole, struct sweep_block *block,
                      struct problems *problems);
void sweep_block_release(struct sweep_block *block);

/* Sets named to true for every setting that some point of the block gives a value, good or not. */
void sweep_block_names(const struct sweep_block *block, bool named[SETTING_COUNT]);

/* How many points, includes counted, excludes not. False when that is past 2^64. */
bool sweep_block_count(const struct sweep_block *block, uint64_t *count);

/* Point `number`: the first axis changes slowest; includes come last. */
void sweep_block_point(const struct sweep_block *block, uint64_t number, struct sweep_point *point);
size_t sweep_block_width(const struct sweep_block *block);

/* The first exclude whose settings the point all has, or NULL. */
struct exclusion *sweep_block_exclusion(const struct sweep_block *block, const struct settings *settings);

/* What the values say, short: "post", "dropout=0.1", "scaled_init", "no tied_embeddings", joined with ", "; full:
 * "model.residual=post". "baseline" without values. Owner: caller, memory_free(). */
char *sweep_point_describe(const struct sweep_point *point, bool full);

/* The value alone, canonical: "rmsnorm", "0.1", "a.txt+b.txt". Owner: caller, memory_free(). */
char *setting_value_text(const struct setting_value *value);

#endif
