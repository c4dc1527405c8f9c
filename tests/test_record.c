/* Records through a pipe: in pieces of any size, and what does not fit together is refused. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/record.h"

static int ends[2];

static void pipe_begin(void)
{
    cr_assert_eq(pipe2(ends, O_NONBLOCK), 0);
}

static void pipe_end(void)
{
    close(ends[0]);
    close(ends[1]);
}

TestSuite(record, .init = pipe_begin, .fini = pipe_end);

static struct record_start start_make(uint64_t steps, uint64_t evaluations)
{
    struct record_start start;
    memset(&start, 0, sizeof start);
    snprintf(start.environment.host, sizeof start.environment.host, "node7");
    start.step = (int64_t)steps;
    start.step_count = steps;
    start.evaluation_count = evaluations;
    return start;
}

/* One of each kind. */
static void all_write(int fd)
{
    struct record_start start = start_make(2, 1);
    struct step_record steps[2] = {{.step = 0, .loss = 3}, {.step = 1, .loss = 2.5}};
    struct evaluation_row row;
    struct record_diverged diverged = {.step = 9, .reason = "loss is nan"};
    int64_t done = 17;
    memset(&row, 0, sizeof row);
    snprintf(row.split, sizeof row.split, "validation");
    cr_assert(record_write_start(fd, &start, steps, &row));
    cr_assert(record_write(fd, RECORD_STEP, &steps[1], sizeof steps[1]));
    cr_assert(record_write(fd, RECORD_EVALUATION, &row, sizeof row));
    cr_assert(record_write_text(fd, RECORD_NOTE, "odd\033[2J"));
    cr_assert(record_write(fd, RECORD_CHECKPOINT, &done, sizeof done));
    cr_assert(record_write(fd, RECORD_DIVERGED, &diverged, sizeof diverged));
    cr_assert(record_write_text(fd, RECORD_ENVIRONMENT, "disk full"));
    cr_assert(record_write(fd, RECORD_FINISHED, &done, sizeof done));
}

static void record_check(const struct record *record, int position)
{
    static const enum record_kind order[] = {RECORD_START,      RECORD_STEP,     RECORD_EVALUATION,  RECORD_NOTE,
                                             RECORD_CHECKPOINT, RECORD_DIVERGED, RECORD_ENVIRONMENT, RECORD_FINISHED};
    cr_assert_eq(record->kind, order[position]);
    if (record->kind == RECORD_START) {
        cr_assert_str_eq(record->start->environment.host, "node7");
        cr_assert_eq(record->steps[1].loss, 2.5);
        cr_assert_str_eq(record->evaluations[0].split, "validation");
    }
    if (record->kind == RECORD_STEP)
        cr_assert_eq(record->steps->step, 1);
    if (record->kind == RECORD_NOTE)
        cr_assert_str_eq(record->text, "odd [2J", "an escape sequence must not reach the terminal");
    if (record->kind == RECORD_DIVERGED)
        cr_assert_str_eq(record->diverged->reason, "loss is nan");
    if (record->kind == RECORD_FINISHED)
        cr_assert_eq(record->step, 17);
}

Test(record, records_that_come_in_pieces_of_any_size_are_whole_when_handed_out)
{
    unsigned char bytes[4096];
    all_write(ends[1]);
    ssize_t size = read(ends[0], bytes, sizeof bytes);
    for (ssize_t piece = 1; piece <= size; piece += piece < 40 ? 1 : 97) {
        struct record_reader reader = {0};
        struct record record;
        struct error err = {0};
        int found = 0;
        for (ssize_t at = 0; at < size; at += piece) {
            ssize_t part = size - at < piece ? size - at : piece;
            cr_assert_eq(write(ends[1], bytes + at, (size_t)part), part);
            cr_assert_eq(record_reader_fill(&reader, ends[0]), part);
            enum record_status status;
            while ((status = record_next(&reader, &record, &err)) == RECORD_READY)
                record_check(&record, found++);
            cr_assert_eq(status, RECORD_MORE, "%s", err.text);
        }
        cr_assert_eq(found, 8, "pieces of %zd bytes", piece);
        cr_assert_eq(record_reader_left(&reader), 0);
        record_reader_release(&reader);
    }
}

static enum record_status status_of(const void *bytes, size_t size, struct error *err)
{
    struct record_reader reader = {0};
    struct record record;
    cr_assert_eq(write(ends[1], bytes, size), (ssize_t)size);
    cr_assert_eq(record_reader_fill(&reader, ends[0]), (ssize_t)size);
    enum record_status status = record_next(&reader, &record, err);
    record_reader_release(&reader);
    return status;
}

Test(record, unknown_kinds_and_wrong_sizes_are_malformed)
{
    static const struct record_header bad[] = {
        {0, 0},
        {99, 8},
        {RECORD_STEP, 8},
        {RECORD_STEP, 0},
        {RECORD_START, 8},
        {RECORD_NOTE, RECORD_TEXT_MOST + 1},
        {UINT32_MAX, 0},
        {RECORD_START, UINT32_MAX},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct error err = {0};
        cr_assert_eq(status_of(&bad[i], sizeof bad[i], &err), RECORD_MALFORMED, "case %zu", i);
        cr_assert_not_null(strstr(err.text, "record of"), "%s", err.text);
    }
}

Test(record, counts_that_do_not_fit_the_payload_are_malformed)
{
    static const uint64_t counts[][2] = {{1, 0}, {0, 1}, {UINT64_MAX, 0}, {0, UINT64_MAX}, {UINT64_MAX / 8, 1}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct {
            struct record_header header;
            struct record_start start;
        } bytes = {{RECORD_START, sizeof bytes.start}, start_make(0, 0)};
        struct error err = {0};
        bytes.start.step_count = counts[i][0];
        bytes.start.evaluation_count = counts[i][1];
        cr_assert_eq(status_of(&bytes, sizeof bytes, &err), RECORD_MALFORMED, "case %zu", i);
    }
}

Test(record, a_text_without_an_end_is_malformed)
{
    struct {
        struct record_header header;
        struct evaluation_row row;
    } bytes = {.header = {RECORD_EVALUATION, sizeof bytes.row}};
    struct error err = {0};
    memset(bytes.row.split, 'x', sizeof bytes.row.split);
    cr_assert_eq(status_of(&bytes, sizeof bytes, &err), RECORD_MALFORMED);
}

Test(record, a_reader_that_is_gone_is_an_answer_and_not_a_death)
{
    int64_t done = 1;
    signal(SIGPIPE, SIG_IGN);
    close(ends[0]);
    cr_assert_not(record_write(ends[1], RECORD_CHECKPOINT, &done, sizeof done));
    cr_assert_eq(errno, EPIPE);
    ends[0] = dup(ends[1]);
}
