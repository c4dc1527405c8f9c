/* An experiment file, read, checked and expanded: variants x seeds, nothing trained yet.
 *
 *   experiment_load(path, &overrides, &problems) -> struct experiment, or NULL with problems
 *
 * Then data is prepared (dataset.h) and sweep_resolve() (sweep.h) gives every run its key. */
#ifndef RUNNER_EXPERIMENT_H
#define RUNNER_EXPERIMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/knob.h"
#include "runner/problem.h"

/* Where text comes from: data.corpus and data.validation. Paths are as written; relative ones are relative to the
 * experiment file's folder, which `folder` names. */
struct data_source {
    bool builtin;
    bool given; /* false: data.validation absent, validation_fraction holds */
    char **paths;
    size_t path_count;
    char *folder;
    struct place place; /* to point at when it cannot be read */
};

struct data_spec {
    struct data_source corpus, validation;
};

/* One changed setting of a variant, canonical text. */
struct override {
    char *name;  /* "model.norm", "data.corpus" */
    char *value; /* "rmsnorm" */
};

struct variant {
    char *label;          /* unique in the experiment; user's text, any bytes but control ones, at most 200 bytes */
    struct config config; /* effective and canonical (config_canonicalize) */
    struct data_spec data;
    struct override *overrides; /* what it changes against the baseline's file settings, in file order */
    size_t override_count;
    bool baseline;
};

struct comparison_settings {
    char *metric; /* "bits_per_byte" */
    char *split;  /* "validation" */
    double margin, alpha;
};

struct experiment {
    char *path, *name, *description;
    char *question; /* the file's first comment, its lines joined with '\n'; "" when there is none */
    char *text;     /* the file as read, to be frozen in the database */
    struct variant *variants;
    size_t variant_count;
    int64_t *seeds;
    size_t seed_count;
    struct comparison_settings compare;
};

/* From the command line. */
struct experiment_options {
    const char *const *sets; /* "k=v", each once */
    size_t set_count;
    const char *seeds;       /* "A-B" or NULL */
    const char *const *only; /* variant labels, or none */
    size_t only_count;
    bool yes; /* more than 1,000 runs are meant */
};

/* NULL when anything is wrong; problems then has all of it. Notes (a knob that a variant ignores) are added as notes.
 * The count of runs is computed with overflow check before anything is expanded. Owner: caller, experiment_free(). */
struct experiment *experiment_load(const char *path, const struct experiment_options *options,
                                   struct problems *problems);
void experiment_free(struct experiment *experiment); /* takes NULL */

/* The JSON of a configuration: every knob that is not at its default, keys sorted, no spaces. full: every knob.
 * Owner: caller, memory_free(). */
char *config_json(const struct config *config, bool full);

/* Reads such JSON back over the defaults. */
bool config_from_json(const char *json, struct config *config, struct error *err);

/* SHA-256 in hexadecimal of {"config": canonical JSON of model, training, evaluation, "corpus": hash, "seed": n,
 * "tokenizer": hash}; data.* knobs count through the two hashes alone. */
void run_key_make(const struct config *config, int64_t seed, const char *corpus_hash, const char *tokenizer_hash,
                  char key[65]);

#endif
