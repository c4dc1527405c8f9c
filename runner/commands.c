/* The table of commands, in the order help shows them. */
#include <stddef.h>

#include "runner/command.h"

extern const struct command command_bench;
extern const struct command command_complete;
extern const struct command command_cancel;
extern const struct command command_doctor;
extern const struct command command_export;
extern const struct command command_help;
extern const struct command command_inspect;
extern const struct command command_knobs;
extern const struct command command_match;
extern const struct command command_merge;
extern const struct command command_plan;
extern const struct command command_plot;
extern const struct command command_report;
extern const struct command command_run;
extern const struct command command_sample;
extern const struct command command_schema;
extern const struct command command_status;
extern const struct command command_table;
extern const struct command command_tokenizer;
extern const struct command command_verify;
extern const struct command command_rm;
extern const struct command command_gc;
extern const struct command command_version;
extern const struct command command_work;

/* clang-format off */
const struct command *const commands[] = {
    &command_run,
    &command_plan,
    &command_plot,
    &command_status,
    &command_cancel,
    &command_table,
    &command_report,
    &command_inspect,
    &command_match,
    &command_sample,
    &command_export,
    &command_merge,
    &command_tokenizer,
    &command_knobs,
    &command_schema,
    &command_doctor,
    &command_bench,
    &command_verify,
    &command_rm,
    &command_gc,
    &command_version,
    &command_help,
    &command_work,
    &command_complete,
    NULL,
};
/* clang-format on */
