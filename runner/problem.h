/* Everything wrong with a user's file, collected so that all of it is shown at once as file:line:column: message. */
#ifndef RUNNER_PROBLEM_H
#define RUNNER_PROBLEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Where a value was written. file is owned by the tree it came from; line and column start at 1; line 0 = no place
 * (an option of the command line: file then names it, "--set"). */
struct place {
    const char *file;
    int line, column;
};

struct problems {
    struct problem {                   /* texts of notes begin with "note: " after the place */
        char *text;                    /* "file:line:column: message" */
        bool note;                     /* told, but not a reason to stop */
        int file_length, line, column; /* private: of the place at the start of the text */
    } * items;
    size_t count, errors;
    bool environment; /* among them is one of the machine, not of the file */
};

void problems_init(struct problems *problems);
void problems_release(struct problems *problems);
void problem_add(struct problems *problems, struct place place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void problem_note(struct problems *problems, struct place place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* In the order of their places: by file, line and column; those of one place stay as they came. */
void problems_sort(struct problems *problems);

enum { PROBLEMS_SHOWN = 50 };
/* Each on a line of its own, at most PROBLEMS_SHOWN, then how many more. Control bytes of the texts are shown as \xNN.
 */
void problems_print(const struct problems *problems, FILE *out);

/* The candidate nearest to word by edit distance (swapped neighbours count once), also as the start of a longer one
 * ("warmpu" is near "warmup_steps"); NULL when none is near: more than a third of the letters off. */
const char *suggest_nearest(const char *word, const char *const *candidates, size_t count);

#endif
