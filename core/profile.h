/* Where the time of a step goes: a stopwatch that is at exactly one operation at any time, so that the parts add up to
 * the whole. Each operation says that it begins; what passes until the next one begins is its time.
 *
 *   struct profile profile;
 *   profile_start(&profile, seconds_now);          // the core itself reads no clock
 *   trainer_profile(trainer, &profile);
 *   trainer_step(trainer, &record);
 *   profile_stop(&profile);
 *
 * Without a profile an operation costs one comparison. */
#ifndef CORE_PROFILE_H
#define CORE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* To add an operation: a row here, its name in profile.c. */
enum profile_operation {
    PROFILE_BATCH,
    PROFILE_EMBEDDING,
    PROFILE_NORM,
    PROFILE_QKV,
    PROFILE_ROTATION, /* and the norm of queries and keys */
    PROFILE_SCORES,
    PROFILE_SOFTMAX,
    PROFILE_VALUES,
    PROFILE_OUTPUT,
    PROFILE_UP,
    PROFILE_ACTIVATION,
    PROFILE_DOWN,
    PROFILE_DROPOUT,
    PROFILE_RESIDUAL,
    PROFILE_HEAD,
    PROFILE_LOSS,
    PROFILE_GRADIENT_ZERO,
    PROFILE_GRADIENT_NORM,
    PROFILE_ADAMW,
    PROFILE_OTHER,
    PROFILE_OPERATIONS,
};

enum profile_direction { PROFILE_FORWARD, PROFILE_BACKWARD, PROFILE_DIRECTIONS };

struct profile_time {
    double seconds, flops; /* of the products as made, not of the model */
    uint64_t calls;
};

struct profile {
    double (*clock)(void);
    double since;
    struct profile_time *now; /* NULL: stopped */
    struct profile_time times[PROFILE_OPERATIONS][PROFILE_DIRECTIONS];
};

const char *profile_name(enum profile_operation operation);

/* Everything zero; at PROFILE_OTHER from now on. */
void profile_start(struct profile *profile, double (*clock)(void));
void profile_stop(struct profile *profile);
/* Goes on at PROFILE_OTHER with what was counted before. */
void profile_resume(struct profile *profile);
/* Seconds of all operations together. */
double profile_seconds(const struct profile *profile);

void profile_switch(struct profile *profile, enum profile_operation operation, enum profile_direction direction,
                    double flops);

/* `operation` begins. flops: of a product, else 0. profile NULL: nothing. */
static inline void profile_at(struct profile *profile, enum profile_operation operation,
                              enum profile_direction direction, double flops)
{
    if (profile)
        profile_switch(profile, operation, direction, flops);
}

/* Operations of an M x K by K x N product. */
static inline double product_flops(int64_t M, int64_t N, int64_t K)
{
    return 2.0 * (double)M * (double)N * (double)K;
}

#endif
