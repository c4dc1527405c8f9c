/* Causes of failing: what a reason says is what --retry asks for. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runner/cause.h"
#include "runner/command.h"
#include "runner/help.h"
#include "runner/schedule.h"

/* As waitpid() has it on Linux. */
static int exited(int code)
{
    return code << 8;
}

Test(cause, every_reason_is_read_back_as_its_cause)
{
    char reason[256];
    static const struct {
        int status;
        bool memory;
        enum cause cause;
    } rows[] = {{SIGKILL, false, CAUSE_KILLED},  {SIGKILL, true, CAUSE_MEMORY},   {SIGTERM, true, CAUSE_KILLED},
                {SIGSEGV, false, CAUSE_CRASHED}, {SIGABRT, false, CAUSE_CRASHED}, {SIGBUS, false, CAUSE_CRASHED},
                {0, false, CAUSE_EXIT},          {3 << 8, false, CAUSE_EXIT}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cause_describe_exit(rows[i].status, rows[i].memory, reason, sizeof reason);
        cr_expect_eq(cause_of(reason), rows[i].cause, "\"%s\" is %s", reason, cause_name(cause_of(reason)));
    }
    cause_describe_hang(60, reason, sizeof reason);
    cr_expect_eq(cause_of(reason), CAUSE_HUNG);
    cause_describe_records("record out of order", reason, sizeof reason);
    cr_expect_eq(cause_of(reason), CAUSE_RECORDS);
    cr_expect_eq(cause_of("loss is nan at step 3"), CAUSE_OTHER);
    cr_expect_eq(cause_of(""), CAUSE_OTHER);
}

Test(cause, running_out_of_memory_is_named_only_when_the_kernel_counted_it)
{
    char reason[256];
    cause_describe_exit(SIGKILL, true, reason, sizeof reason);
    cr_expect_str_eq(reason, "killed by signal 9 (Killed): memory ran out");
    cause_describe_exit(SIGKILL, false, reason, sizeof reason);
    cr_expect_str_eq(reason, "killed by signal 9 (Killed), perhaps because memory ran out");
    cause_describe_exit(exited(7), true, reason, sizeof reason);
    cr_expect_str_eq(reason, "its worker left with exit code 7");
}

Test(cause, the_kernels_count_is_read_from_a_file_of_words_and_numbers)
{
    char path[] = "/tmp/test-cause-XXXXXX";
    int fd = mkstemp(path);
    static const char text[] = "low 0\noom 4\noom_kill 3\noom_group_kill 9\n";
    cr_assert_eq(write(fd, text, sizeof text - 1), (ssize_t)sizeof text - 1);
    close(fd);
    cr_expect_eq(cause_memory_kills_in(path), 3);
    unlink(path);
    cr_expect_eq(cause_memory_kills_in(path), 0);
}

Test(cause, retry_takes_causes_and_says_which_there_are)
{
    struct retry retry;
    struct error err = {0};
    cr_assert(retry_parse("hung,memory", &retry, &err), "%s", err.text);
    cr_expect_eq(retry.causes, 1U << CAUSE_HUNG | 1U << CAUSE_MEMORY);
    cr_expect_not(retry.failed);
    cr_assert(retry_parse("failed,diverged", &retry, &err));
    cr_expect(retry.failed && retry.diverged && !retry.causes);
    for (enum cause i = CAUSE_MEMORY; i < CAUSE_COUNT; i++) {
        cr_expect(retry_parse(cause_name(i), &retry, &err));
        cr_expect_not(retry_parse("hung,,killed", &retry, &err));
        cr_expect_not_null(strstr(err.text, cause_name(i)), "%s does not name %s", err.text, cause_name(i));
    }
}

Test(cause, what_retry_refuses_and_the_help_of_run_name_every_cause)
{
    struct retry retry;
    struct error err;
    const struct option *option = command_find("run")->options;
    while (strcmp(option->name, "retry") != 0)
        option++;
    cr_assert_not(retry_parse("tired", &retry, &err));
    for (enum cause i = CAUSE_MEMORY; i < CAUSE_COUNT; i++) {
        cr_expect(strstr(err.text, cause_name(i)), "no %s: %s", cause_name(i), err.text);
        cr_expect(strstr(option->doc, cause_name(i)), "no %s: %s", cause_name(i), option->doc);
    }
    cr_expect(strstr(err.text, "'tired', expected failed, diverged, or a cause of failing: memory, killed, "), "%s",
              err.text);
}
