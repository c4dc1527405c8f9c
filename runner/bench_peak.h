/* The ceiling of ceilings: multiply-adds of one core with nothing to load. */
#ifndef RUNNER_BENCH_PEAK_H
#define RUNNER_BENCH_PEAK_H

/* Single-precision operations a second, best of several tries with the widest vectors the CPU has and with those below
 * them. Takes some 20 ms. */
double bench_peak_rate(void);

#endif
