/* What a sweep will cost: steps a second measured for each shape, then time and disk by arithmetic. */
#ifndef RUNNER_ESTIMATE_H
#define RUNNER_ESTIMATE_H

#include "runner/schedule.h"

struct run_estimate {
    double steps_per_second; /* NaN: not measured */
    double seconds;          /* what is left of the run, evaluations included; 0 when it will not train; or NaN */
    int64_t steps_left;
    double flops; /* of the whole run's training */
};

struct estimate {
    struct run_estimate *runs; /* one for each of the sweep */
    double seconds;            /* of all, on the workers; NaN when something was not measured */
    double flops;              /* of training still to do */
    double evaluation_flops;   /* and of the evaluations to come */
    uint64_t disk_bytes;       /* that finished weights, curves and open checkpoints will come to */
};

/* measure: makes a few training steps of each shape that will train; note is told why a shape was not measured.
 * Owner: caller, estimate_release(). */
void estimate_make(struct estimate *estimate, const struct sweep *sweep, const struct schedule *schedule,
                   size_t workers, bool measure, void (*note)(const char *text));
void estimate_release(struct estimate *estimate);

/* Tokens that the evaluations still to come read: at step 0, every interval and at the end, of each split. */
double estimate_evaluation_tokens(const struct config *config, const struct dataset *dataset, int64_t steps_done);

/* Bytes that finished weights, curves and open checkpoints of a schedule will need at most at once. */
uint64_t estimate_disk(const struct sweep *sweep, const struct schedule *schedule, size_t workers);

#endif
