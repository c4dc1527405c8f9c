/* Records between worker and supervisor: written whole, read in any pieces, checked before use. */
#include "runner/record.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/memory.h"

enum { RECORD_ALIGNMENT = 8, RECORD_READ_SIZE = 1 << 16 };

_Static_assert(sizeof(struct step_record) % RECORD_ALIGNMENT == 0, "records lie one after another");
_Static_assert(sizeof(struct evaluation_row) % RECORD_ALIGNMENT == 0, "records lie one after another");
_Static_assert(sizeof(struct record_start) % RECORD_ALIGNMENT == 0, "records lie one after another");

static bool bytes_write(int fd, const void *bytes, size_t size)
{
    const char *next = bytes;
    while (size) {
        ssize_t done = write(fd, next, size);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return false;
        next += done;
        size -= (size_t)done;
    }
    return true;
}

bool record_write(int fd, enum record_kind kind, const void *payload, size_t size)
{
    /* Small ones go out in one write, so that a worker killed in between leaves whole records in the pipe. */
    unsigned char block[sizeof(struct record_header) + RECORD_TEXT_MOST + RECORD_ALIGNMENT] = {0};
    struct record_header header = {.kind = (uint32_t)kind, .size = (uint32_t)size};
    if (size > RECORD_TEXT_MOST) {
        errno = EMSGSIZE;
        return false;
    }
    memcpy(block, &header, sizeof header);
    if (size)
        memcpy(block + sizeof header, payload, size);
    size_t padded = (size + RECORD_ALIGNMENT - 1) / RECORD_ALIGNMENT * RECORD_ALIGNMENT;
    return bytes_write(fd, block, sizeof header + padded);
}

bool record_write_text(int fd, enum record_kind kind, const char *text)
{
    return record_write(fd, kind, text, strnlen(text, RECORD_TEXT_MOST));
}

bool record_write_start(int fd, const struct record_start *start, const struct step_record *steps,
                        const struct evaluation_row *evaluations)
{
    size_t step_bytes, evaluation_bytes, size;
    if (__builtin_mul_overflow(start->step_count, sizeof *steps, &step_bytes) ||
        __builtin_mul_overflow(start->evaluation_count, sizeof *evaluations, &evaluation_bytes) ||
        __builtin_add_overflow(step_bytes, evaluation_bytes, &size) || size > RECORD_MOST - sizeof *start) {
        errno = EMSGSIZE;
        return false;
    }
    struct record_header header = {.kind = RECORD_START, .size = (uint32_t)(sizeof *start + size)};
    return bytes_write(fd, &header, sizeof header) && bytes_write(fd, start, sizeof *start) &&
           bytes_write(fd, steps, step_bytes) && bytes_write(fd, evaluations, evaluation_bytes);
}

ssize_t record_reader_fill(struct record_reader *reader, int fd)
{
    if (reader->begin) {
        memmove(reader->bytes, reader->bytes + reader->begin, reader->end - reader->begin);
        reader->end -= reader->begin;
        reader->begin = 0;
    }
    if (reader->capacity - reader->end < RECORD_READ_SIZE) {
        size_t larger = reader->capacity * 2 + RECORD_READ_SIZE;
        reader->bytes = memory_grow(reader->bytes, reader->end, larger, 1);
        reader->capacity = larger;
    }
    ssize_t got;
    do
        got = read(fd, reader->bytes + reader->end, reader->capacity - reader->end);
    while (got < 0 && errno == EINTR);
    if (got > 0)
        reader->end += (size_t)got;
    return got;
}

size_t record_reader_left(const struct record_reader *reader)
{
    return reader->end - reader->begin;
}

void record_reader_release(struct record_reader *reader)
{
    memory_free(reader->bytes);
    *reader = (struct record_reader){0};
}

/* Payload size each kind must have; 0: its own check. */
static size_t record_size(uint32_t kind)
{
    switch (kind) {
    case RECORD_STEP: return sizeof(struct step_record);
    case RECORD_EVALUATION: return sizeof(struct evaluation_row);
    case RECORD_CHECKPOINT:
    case RECORD_FINISHED: return sizeof(int64_t);
    case RECORD_DIVERGED: return sizeof(struct record_diverged);
    default: return 0;
    }
}

static bool header_check(struct record_header header, struct error *err)
{
    size_t fixed = record_size(header.kind);
    bool text = header.kind == RECORD_NOTE || header.kind == RECORD_ENVIRONMENT;
    if (!fixed && !text && header.kind != RECORD_START)
        return error_set(err, "record of unknown kind %u", header.kind);
    bool fits = fixed  ? header.size == fixed
                : text ? header.size <= RECORD_TEXT_MOST
                       : header.size >= sizeof(struct record_start) && header.size <= RECORD_MOST;
    return fits || error_set(err, "record of kind %u with %u bytes", header.kind, header.size);
}

static bool text_ends(const char *text, size_t size)
{
    return memchr(text, 0, size) != NULL;
}

static bool environment_check(const struct run_environment *e)
{
    return text_ends(e->host, sizeof e->host) && text_ends(e->cpu, sizeof e->cpu) &&
           text_ends(e->kernels, sizeof e->kernels) && text_ends(e->blas, sizeof e->blas) &&
           text_ends(e->precision, sizeof e->precision) && text_ends(e->git_commit, sizeof e->git_commit) &&
           text_ends(e->version, sizeof e->version);
}

static bool evaluations_check(const struct evaluation_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!text_ends(rows[i].split, sizeof rows[i].split))
            return false;
    return true;
}

static bool start_check(const unsigned char *payload, size_t size, struct record *record)
{
    const struct record_start *start = (const void *)payload;
    size_t left = size - sizeof *start, steps = start->step_count;
    if (steps > left / sizeof(struct step_record))
        return false;
    left -= steps * sizeof(struct step_record);
    if (left % sizeof(struct evaluation_row) || start->evaluation_count != left / sizeof(struct evaluation_row))
        return false;
    record->start = start;
    record->steps = (const void *)(payload + sizeof *start);
    record->evaluations = (const void *)(payload + sizeof *start + steps * sizeof(struct step_record));
    return start->step >= 0 && environment_check(&start->environment) &&
           evaluations_check(record->evaluations, start->evaluation_count);
}

static void text_take(struct record_reader *reader, const unsigned char *payload, size_t size, struct record *record)
{
    for (size_t i = 0; i < size; i++)
        reader->text[i] = payload[i] < ' ' || payload[i] == 127 ? ' ' : (char)payload[i];
    reader->text[size] = 0;
    record->text = reader->text;
}

static bool payload_take(struct record_reader *reader, struct record_header header, const unsigned char *payload,
                         struct record *record)
{
    *record = (struct record){.kind = (enum record_kind)header.kind};
    switch (record->kind) {
    case RECORD_START: return start_check(payload, header.size, record);
    case RECORD_STEP: record->steps = (const void *)payload; return true;
    case RECORD_EVALUATION:
        record->evaluations = (const void *)payload;
        return evaluations_check(record->evaluations, 1);
    case RECORD_CHECKPOINT:
    case RECORD_FINISHED: memcpy(&record->step, payload, sizeof record->step); return record->step >= 0;
    case RECORD_DIVERGED:
        record->diverged = (const void *)payload;
        return text_ends(record->diverged->reason, sizeof record->diverged->reason);
    case RECORD_NOTE:
    case RECORD_ENVIRONMENT: text_take(reader, payload, header.size, record); return true;
    }
    return false;
}

enum record_status record_next(struct record_reader *reader, struct record *record, struct error *err)
{
    size_t left = record_reader_left(reader);
    struct record_header header;
    if (left < sizeof header)
        return RECORD_MORE;
    memcpy(&header, reader->bytes + reader->begin, sizeof header);
    if (!header_check(header, err))
        return RECORD_MALFORMED;
    size_t whole = sizeof header + ((size_t)header.size + RECORD_ALIGNMENT - 1) / RECORD_ALIGNMENT * RECORD_ALIGNMENT;
    if (left < whole)
        return RECORD_MORE;
    const unsigned char *payload = reader->bytes + reader->begin + sizeof header;
    reader->begin += whole;
    if (payload_take(reader, header, payload, record))
        return RECORD_READY;
    error_set(err, "record of kind %u whose contents do not fit together", header.kind);
    return RECORD_MALFORMED;
}
