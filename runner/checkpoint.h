/* A run's state on disk: two generations, atomic, durable, checked before a byte is believed.
 *
 * Layout of results/checkpoints/<key>/: step-<N>.ckpt (the two newest), final.safetensors (weights of a finished run).
 * A .ckpt file: a fixed header (magic, version, key, sizes, steps done, seconds), the curve so far, parameters, first
 * and second moments, and the SHA-256 of all before it. */
#ifndef RUNNER_CHECKPOINT_H
#define RUNNER_CHECKPOINT_H

#include "core/trainer.h"
#include "runner/database.h"

struct checkpoint {
    int64_t steps_done;
    double seconds;
    struct step_record *steps;
    size_t step_count;
    struct evaluation_row *evaluations;
    size_t evaluation_count;
};

/* Writes step-N.ckpt under a temporary name, checks every write and close, fsyncs, renames, fsyncs the folder, then
 * removes all but the two newest. */
bool checkpoint_write(const char *folder, const char *key, const struct trainer_state *state,
                      const struct checkpoint *checkpoint, struct error *err);

/* Reads the newest good one into the state's buffers and *checkpoint; torn ones are passed over and told to note.
 * False with err empty when there is none. Stale temporary files are removed. */
bool checkpoint_read(const char *folder, const char *key, struct trainer_state *state, struct checkpoint *checkpoint,
                     void (*note)(void *context, const char *text), void *context, struct error *err);
void checkpoint_release(struct checkpoint *checkpoint);

#endif
