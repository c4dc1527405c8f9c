/* The list of what is wrong with a user's file, and the guess at what was meant. */
#include "runner/problem.h"

#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "core/memory.h"
#include "runner/layout.h"

enum { WORD_LIMIT = 64 };

void problems_init(struct problems *problems)
{
    *problems = (struct problems){0};
}

void problems_release(struct problems *problems)
{
    for (size_t i = 0; i < problems->count; i++)
        memory_free(problems->items[i].text);
    memory_free(problems->items);
    problems_init(problems);
}

static char *place_format(struct place place)
{
    char numbers[32] = "";
    if (place.line > 0)
        snprintf(numbers, sizeof numbers, ":%d:%d", place.line, place.column);
    const char *file = place.file ? place.file : "";
    size_t size = strlen(file) + strlen(numbers) + 3;
    char *text = memory_alloc(size, 1);
    snprintf(text, size, "%s%s%s", file, numbers, place.file ? ": " : "");
    return text;
}

static void problem_append(struct problems *problems, bool note, struct place place, const char *format, va_list args)
    __attribute__((format(printf, 4, 0)));

static void problem_append(struct problems *problems, bool note, struct place place, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *where = place_format(place);
    size_t used = strlen(where), size = used + (length > 0 ? (size_t)length : 0) + sizeof "note: ";
    char *text = memory_alloc(size, 1);
    snprintf(text, size, "%s%s", where, note ? "note: " : "");
    used = strlen(text);
    vsnprintf(text + used, size - used, format, args);
    memory_free(where);
    problems->items = memory_grow(problems->items, problems->count * sizeof *problems->items, problems->count + 1,
                                  sizeof *problems->items);
    problems->items[problems->count++] = (struct problem){.text = text,
                                                          .note = note,
                                                          .file_length = place.file ? (int)strlen(place.file) : 0,
                                                          .line = place.line,
                                                          .column = place.column};
    problems->errors += !note;
}

void problem_add(struct problems *problems, struct place place, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    problem_append(problems, false, place, format, args);
    va_end(args);
}

void problem_note(struct problems *problems, struct place place, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    problem_append(problems, true, place, format, args);
    va_end(args);
}

static bool problem_precedes(const struct problem *a, const struct problem *b)
{
    int shorter = a->file_length < b->file_length ? a->file_length : b->file_length;
    int order = strncmp(a->text, b->text, (size_t)shorter);
    if (order || a->file_length != b->file_length)
        return order ? order < 0 : a->file_length < b->file_length;
    return a->line != b->line ? a->line < b->line : a->column < b->column;
}

/* By merging, which keeps equals in order and does not mind thousands. */
static void problems_merge_sort(struct problem *items, struct problem *room, size_t count)
{
    if (count < 2)
        return;
    size_t half = count / 2, left = 0, right = half;
    problems_merge_sort(items, room, half);
    problems_merge_sort(items + half, room, count - half);
    memcpy(room, items, count * sizeof *items);
    for (size_t i = 0; i < count; i++) {
        bool take_right = left == half || (right < count && problem_precedes(&room[right], &room[left]));
        items[i] = take_right ? room[right++] : room[left++];
    }
}

void problems_sort(struct problems *problems)
{
    struct problem *room = memory_alloc(problems->count, sizeof *room);
    problems_merge_sort(problems->items, room, problems->count);
    memory_free(room);
}

void problems_print(const struct problems *problems, FILE *out)
{
    size_t shown[2] = {0, 0}, total[2] = {problems->errors, problems->count - problems->errors};
    for (size_t i = 0; i < problems->count; i++)
        if (shown[problems->items[i].note]++ < PROBLEMS_SHOWN)
            layout_line_put(problems->items[i].text, "", out);
    if (total[0] > PROBLEMS_SHOWN)
        fprintf(out, "... and %zu more problems\n", total[0] - PROBLEMS_SHOWN);
    if (total[1] > PROBLEMS_SHOWN)
        fprintf(out, "... and %zu more notes\n", total[1] - PROBLEMS_SHOWN);
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Optimal string alignment: insertions, deletions, substitutions, swaps of neighbours. Three rows of the table. */
static size_t edit_distance(const char *a, size_t n, const char *b, size_t m)
{
    size_t rows[3][WORD_LIMIT + 1];
    for (size_t j = 0; j <= m; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            row[j] = smaller(smaller(above[j], row[j - 1]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = smaller(row[j], two_above[j - 2] + 1);
        }
    }
    return rows[n % 3][m];
}

const char *suggest_nearest(const char *word, const char *const *candidates, size_t count)
{
    size_t length = strlen(word), best = SIZE_MAX;
    const char *nearest = NULL;
    if (length == 0 || length > WORD_LIMIT)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        size_t size = strlen(candidates[i]);
        if (size > WORD_LIMIT)
            continue;
        /* Doubled, so that a start of a longer word ranks half a letter behind the word itself. */
        size_t distance = 2 * edit_distance(word, length, candidates[i], size);
        if (distance > 2 * ((length > size ? length : size) / 3))
            distance = SIZE_MAX;
        if (length >= 3 && length < size) {
            size_t start = 2 * edit_distance(word, length, candidates[i], length) + 1;
            if (start <= 2 * (length / 3) + 1 && start < distance)
                distance = start;
        }
        if (distance < best) {
            best = distance;
            nearest = candidates[i];
        }
    }
    return nearest;
}
