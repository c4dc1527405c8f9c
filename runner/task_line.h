/* What a task list says of one run. */
#ifndef RUNNER_TASK_LINE_H
#define RUNNER_TASK_LINE_H

#include "runner/task.h"
#include "runner/worker.h"

struct task_line {
    struct job job; /* checkpoint_folder: <results>/shards */
    char *label, *logs;
    int64_t parameters, hang_after;
    double flops_per_token;
};

/* Line `index`, from 0. Release it either way. */
bool task_line_read(const char *path, size_t index, struct task_line *task, struct error *err);
void task_line_release(struct task_line *task);

#endif
