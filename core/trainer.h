/* One run: a model, its optimiser and its data, one step at a time.
 *
 *   struct trainer *t = trainer_create(&config, seed, vocab_size, &data, &err);
 *   while (trainer_steps_done(t) < config.training.steps && trainer_step(t, &record)) ...
 *   trainer_free(t);
 *
 * After creation a step allocates nothing. Everything random is a function of (seed, stream, step), so the state is
 * three flat buffers and the number of steps done. */
#ifndef CORE_TRAINER_H
#define CORE_TRAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/knob.h"
#include "core/metric.h"
#include "core/model.h"
#include "core/real.h"

struct trainer;

/* A stream of documents, each encoded as bos + tokens + eos, read as blocks of context_length + 1.
 * bytes[i] = bytes of text that token i stands for (specials 0). Both belong to the caller and outlive the trainer. */
struct token_stream {
    const int32_t *tokens;
    const uint32_t *bytes;
    size_t count;
};

/* Whole blocks in the stream. */
int64_t token_stream_blocks(const struct token_stream *stream, int64_t context_length);

struct step_record {
    int64_t step;     /* 0-based: this update was made on weights that had seen `step` updates */
    int64_t tokens;   /* tokens trained on, this step included */
    double loss;      /* mean nats over the batch, before the update */
    double grad_norm; /* before clipping */
    double learning_rate;
    double seconds;          /* training time so far: filled by whoever keeps the clock */
    uint64_t batch_checksum; /* FNV-1a over the batch's token numbers */
};

/* NULL and err when the training stream has no block. Owner: caller, trainer_free(). */
struct trainer *trainer_create(const struct config *config, int64_t seed, int64_t vocab_size,
                               const struct token_stream *train, struct error *err);

/* One update. False when loss or gradient norm is not finite: the record is filled, the update is not made. */
bool trainer_step(struct trainer *trainer, struct step_record *record);

/* Every metric without dropout over the blocks numbered floor(i * M / limit) of the stream's M (limit 0 or above M:
 * all). */
void trainer_evaluate(struct trainer *trainer, const struct token_stream *stream, int64_t limit,
                      struct evaluation_record *record);

/* True when an evaluation is due after `steps_done` updates: step 0, every interval, the last step. *limit gets blocks
 * or final_blocks. */
bool trainer_evaluation_due(const struct config *config, int64_t steps_done, int64_t *limit);

/* Counts the time of a step's operations from now on (profile.h); NULL ends it. */
void trainer_profile(struct trainer *trainer, struct profile *profile);

int64_t trainer_steps_done(const struct trainer *trainer);
struct model *trainer_model(struct trainer *trainer);

/* The whole state: what a checkpoint holds. Buffers belong to the trainer, count reals each; a checkpoint is put back
 * by writing them and calling trainer_resume(). */
struct trainer_state {
    real *parameters, *first_moment, *second_moment;
    size_t count;
};
struct trainer_state trainer_state(struct trainer *trainer);
void trainer_resume(struct trainer *trainer, int64_t steps_done);

/* Bytes a run asks for: model_memory() for the passes it makes, moments and one batch. */
size_t trainer_memory(const struct config *config, int64_t vocab_size);

/* Learning rate of update `step` (0-based). */
double learning_rate_at(const struct training_config *training, int64_t step);

void trainer_free(struct trainer *trainer); /* takes NULL */

#endif
