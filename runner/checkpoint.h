/* A run's state on disk: two generations, atomic, durable, checked before a byte is believed.
 *
 * <folder>/<key>/step-<N>.ckpt (the two newest) and final.safetensors (weights of a finished run). A .ckpt file:
 *
 *   struct checkpoint_header | steps [step_count] | evaluations [evaluation_count]
 *   | parameters, first moment, second moment [count reals each] | SHA-256 of all before it
 *
 * The sizes in the header give the file's size to the byte, so a cut or grown file is known before anything is read. */
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

/* Writes step-N.ckpt whole and durable or not at all, then removes all but the two newest. */
bool checkpoint_write(const char *folder, const char *key, const struct trainer_state *state,
                      const struct checkpoint *checkpoint, struct error *err);

/* Reads the newest good one into the state's buffers and *checkpoint; damaged ones are passed over, and note is told
 * which and what is used instead. False with err empty when there is none: nothing has been changed then. Files left
 * over from a crash while writing are removed. Owner of the curve: caller, checkpoint_release(). */
bool checkpoint_read(const char *folder, const char *key, struct trainer_state *state, struct checkpoint *checkpoint,
                     void (*note)(void *context, const char *text), void *context, struct error *err);
void checkpoint_release(struct checkpoint *checkpoint);

/* Steps of those that are there, by their names alone, newest first. Owner: caller, memory_free(). */
int64_t *checkpoint_list(const char *folder, const char *key, size_t *count);

/* Reads one without using it: size, header, SHA-256. err: what is wrong, to follow its name. *gone: it is not there. */
bool checkpoint_check(const char *folder, const char *key, int64_t steps_done, bool *gone, struct error *err);

/* Steps of the newest one by its name alone, -1 when there is none. */
int64_t checkpoint_newest(const char *folder, const char *key);

/* Removes every .ckpt of the run (its final.safetensors stays): it is finished, or shall start anew. */
bool checkpoint_remove(const char *folder, const char *key, struct error *err);

/* Moves every .ckpt of the run to another folder, on the same file system, unless that one has some of it already. */
bool checkpoint_move(const char *from, const char *to, const char *key, struct error *err);

#endif
