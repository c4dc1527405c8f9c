/* A finished run as those need it who use what it learned: frozen settings, tokenizer, final weights.
 *
 *   struct trained_run run;
 *   enum exit_code code = trained_run_open("results/results.db", "quick/baseline/1337", &run, &err);
 *   if (code == EXIT_DONE) trained_run_read(&run, model_parameters(model));
 *   trained_run_close(&run);
 *
 * The weights lie beside the database, in checkpoints/<key>/final.safetensors. */
#ifndef RUNNER_TRAINED_RUN_H
#define RUNNER_TRAINED_RUN_H

#include "core/error.h"
#include "core/knob.h"
#include "core/real.h"
#include "core/tensor.h"
#include "core/tokenizer.h"
#include "runner/command.h"
#include "runner/safetensors.h"

struct trained_run {
    char key[65];
    struct config config;
    struct tokenizer *tokenizer;
    struct tensor_table *table; /* what the weights are, in the order of the flat buffer */
    struct safetensors *weights;
};

/* name as for database_find_run(). EXIT_DONE; else err says what is wrong, and for a run without final weights how to
 * get some. Every size is checked: names, shapes and kinds of the tensors against the settings and the vocabulary,
 * the file's run against the run. Owner: caller, trained_run_close(), also after a failure. */
enum exit_code trained_run_open(const char *database, const char *name, struct trained_run *run, struct error *err);
void trained_run_close(struct trained_run *run);

/* All parameters, table->total of them. */
void trained_run_read(const struct trained_run *run, real *parameters);

#endif
