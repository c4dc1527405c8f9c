/* What is said of a run, from its row `r` and its last logged step `s`: the same in views, status, tables and reports.
 */
#ifndef RUNNER_RUN_SQL_H
#define RUNNER_RUN_SQL_H

/* A step whose loss or gradient norm is not finite is logged, and made no update. */
#define STEP_MADE "(s.loss_kind = 0 and s.grad_norm_kind = 0)"
#define STEPS_DONE "coalesce(s.step + " STEP_MADE ", 0)"
#define TOKENS_DONE "coalesce(s.tokens - iif(" STEP_MADE ", 0, r.tokens_per_step), 0)"

#endif
