/* A sweep: an experiment whose runs have keys, sizes and data. What the database freezes and the supervisor trains. */
#ifndef RUNNER_SWEEP_H
#define RUNNER_SWEEP_H

#include "runner/dataset.h"
#include "runner/experiment.h"

struct run {
    char key[65];
    size_t variant; /* index in experiment->variants */
    int64_t seed;
    size_t dataset; /* index in sweep->datasets */
    int64_t parameters;
    double flops_per_token;
    char *config_json; /* effective configuration, every knob */
    bool duplicate;    /* the same key as an earlier run of this sweep: trained once */
    bool elsewhere;    /* of another part of the sweep (shard.h): not trained here */
};

struct sweep {
    struct experiment *experiment; /* owned */
    struct dataset *datasets;      /* one for each different text and tokenizer */
    size_t dataset_count;
    struct run *runs; /* in file order: seeds within variants */
    size_t run_count;
    char *choice; /* what the command line chose beside the file, as run_words_choice() has it; NULL: nothing */
};

/* Prepares the data and gives each run its key. Takes the experiment over, also on failure. NULL with problems; what
 * was then made in the cache for nothing is removed, unless it is `shared` with a process at work, which may have found
 * it there. */
struct sweep *sweep_resolve(struct experiment *experiment, const char *cache_folder, bool shared,
                            struct problems *problems);
void sweep_free(struct sweep *sweep); /* takes NULL */

#endif
