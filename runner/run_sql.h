/* What is said of a run, from its row `r` and its last logged step `s`: the same in views, status, tables and reports.
 */
#ifndef RUNNER_RUN_SQL_H
#define RUNNER_RUN_SQL_H

/* A step whose loss or gradient norm is not finite is logged, and made no update. */
#define STEP_MADE "(s.loss_kind = 0 and s.grad_norm_kind = 0)"
#define STEPS_DONE "coalesce(s.step + " STEP_MADE ", 0)"
#define TOKENS_DONE "coalesce(s.tokens - iif(" STEP_MADE ", 0, r.tokens_per_step), 0)"

/* Why it ended badly, and the last line of its log where that was kept: of what failed. */
#define LOG_END "rtrim(r.log_tail, char(10) || ' ')"
#define LOG_LINE "substr(" LOG_END ", 1 + length(rtrim(" LOG_END ", replace(" LOG_END ", char(10), ''))), 200)"
#define REASON "r.reason || coalesce(': ' || nullif(" LOG_LINE ", ''), '')"

#endif
