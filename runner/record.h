/* What a worker tells its supervisor: records through a pipe, native byte order, one machine.
 *
 * A record is a header, then `size` bytes of payload, then zeros up to a multiple of 8. The reader keeps what came in
 * pieces and hands out whole, checked records:
 *
 *   struct record_reader reader = {0};
 *   while (record_reader_fill(&reader, fd) > 0)
 *       while (record_next(&reader, &record, &err) == RECORD_READY) ...
 *   record_reader_release(&reader); */
#ifndef RUNNER_RECORD_H
#define RUNNER_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "runner/database.h"

enum record_kind {
    RECORD_START = 1,   /* struct record_start, then the curve so far: steps, then evaluations */
    RECORD_STEP,        /* struct step_record */
    RECORD_EVALUATION,  /* struct evaluation_row */
    RECORD_CHECKPOINT,  /* int64 steps done: durable on disk */
    RECORD_FINISHED,    /* int64 steps: the last record of a run that is complete */
    RECORD_DIVERGED,    /* struct record_diverged */
    RECORD_NOTE,        /* text for the user */
    RECORD_ENVIRONMENT, /* text: the machine fails (disk full); no run of the sweep can do better */
};

struct record_header {
    uint32_t kind, size;
};

struct record_start {
    struct run_environment environment;
    int64_t step;
    uint64_t step_count, evaluation_count;
};

struct record_diverged {
    int64_t step;
    char reason[128]; /* "loss is nan" */
};

/* Largest payload: the curve of some 18 million steps. Largest text. */
enum { RECORD_MOST = 1 << 30, RECORD_TEXT_MOST = 4096 };

/* False when nobody reads any more (errno says why). */
bool record_write(int fd, enum record_kind kind, const void *payload, size_t size);
bool record_write_text(int fd, enum record_kind kind, const char *text);
bool record_write_start(int fd, const struct record_start *start, const struct step_record *steps,
                        const struct evaluation_row *evaluations);

/* One checked record. The pointers that fit its kind are set; they hold until the next fill or next. */
struct record {
    enum record_kind kind;
    const struct record_start *start;         /* START */
    const struct step_record *steps;          /* START: start->step_count; STEP: one */
    const struct evaluation_row *evaluations; /* START: start->evaluation_count; EVALUATION: one */
    const struct record_diverged *diverged;
    int64_t step;     /* CHECKPOINT, FINISHED */
    const char *text; /* NOTE, ENVIRONMENT: control bytes made blank, ends with 0 */
};

struct record_reader {
    unsigned char *bytes; /* [begin, end) is not yet handed out */
    size_t begin, end, capacity;
    char text[RECORD_TEXT_MOST + 1];
};

/* Reads once. Bytes read, 0 at the end of the pipe, -1 with errno (EAGAIN: nothing there now). */
ssize_t record_reader_fill(struct record_reader *reader, int fd);

enum record_status { RECORD_MORE, RECORD_READY, RECORD_MALFORMED };
/* RECORD_MORE: no whole record yet. RECORD_MALFORMED: err says what was wrong; nothing after it can be trusted. */
enum record_status record_next(struct record_reader *reader, struct record *record, struct error *err);
/* Bytes of a record that was begun and not ended. */
size_t record_reader_left(const struct record_reader *reader);
void record_reader_release(struct record_reader *reader);

#endif
