/* Time that only goes forward. */
#ifndef RUNNER_CLOCK_H
#define RUNNER_CLOCK_H

double seconds_now(void); /* of the monotonic clock */

#endif
