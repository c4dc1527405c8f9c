/* The queries whose speed must not depend on how long the curves are: a test holds their plans against a full scan of
 * the big tables. Each binds its parameters in the order of the comment beside it in query.c. */
#ifndef RUNNER_QUERY_H
#define RUNNER_QUERY_H

enum query {
    QUERY_LAST_STEP,
    QUERY_LAST_EVALUATIONS,
    QUERY_MEMBERS,
    QUERY_EXPERIMENTS_OF_RUN,
    QUERY_DELETE_LOSSES,
    QUERY_DELETE_COMPARISONS,
    QUERY_RUN_STATE,
    QUERY_TABLE,
    QUERY_TABLE_RUNS,
    QUERY_MEMBER_CONFIGS,
    QUERY_REPORT_RUNS,
    QUERY_DETECTABLE,
    QUERY_FINISHED_RUNS,
    QUERY_LEAKS,
    QUERY_CURVE_TRAIN,
    QUERY_CURVE_EVALUATION,
    QUERY_MEASURES,
    QUERY_STATUS_COUNTS,
    QUERY_STATUS_RUNS,
    QUERY_COUNT,
};

const char *query_text(enum query query);

#endif
