/* An experiment file, read, checked and expanded: variants x seeds, nothing trained yet.
 *
 *   experiment_load(path, &options, &problems) -> struct experiment, or NULL with problems
 *
 * Then data is prepared (dataset.h) and sweep_resolve() (sweep.h) gives every run its key.
 *
 * What the file may say beyond the obvious:
 * - A setting has one full name ("model.norm", "data.tokenizer.kind", "data.corpus") and two spellings, nested or
 *   dotted, everywhere; both in one file are refused. Under `parameters` only full names count, never "norm".
 * - Nothing (`learning_rate:`, null, ~) is the default; `seed: 7` is short for `seeds: [7]`.
 * - extends merges mappings key by key; lists and values are replaced. Paths of a base are relative to the base.
 * - A point of a sweep changes the file's own settings; of an ablation: the baseline (file's settings + `baseline:`).
 *   An ablation contains its baseline. Other sweeps do not, unless a `baseline:` key is written and no point equals
 *   it: then it is added first, with a note. A file without a sweep is one variant, "baseline".
 * - exclude takes out expanded points that have all its values; includes are never excluded. Then points are checked.
 * - Points whose canonical configuration and text are equal are one variant, with a note; a label that the user wrote
 *   wins over one made from values.
 * - Labels made from values: "post, rmsnorm", "dropout=0.1", "scaled_init", "no tied_embeddings"; with full names
 *   where the short ones would coincide.
 * - Over 1,000 runs need `yes`; over 100,000 (before excludes) are refused. */
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
    struct override *overrides; /* what it changes against the baseline, in file order; ignored knobs left out */
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
    char **launcher; /* "key=value", for the batch system of launcher.h: no part of any run */
    size_t launcher_count;
    struct place split_place; /* of compare.split */
    char **files;             /* private: what places point to */
    size_t file_count;
};

/* From the command line. */
struct experiment_options {
    const char *const *sets; /* "k=v", each once */
    size_t set_count;
    const char *seeds;       /* "N" or "A-B" or NULL */
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
