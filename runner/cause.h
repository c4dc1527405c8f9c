/* Why a worker's run failed, as a word that can be counted and asked for: `--retry killed,hung`.
 *
 * The database keeps the reason as a sentence; its cause is read off the sentence, so both are made here.
 * To add a cause: its place in the enum, its row in cause.c. */
#ifndef RUNNER_CAUSE_H
#define RUNNER_CAUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cause {
    CAUSE_OTHER,   /* none of those below */
    CAUSE_MEMORY,  /* the kernel killed it because memory ran out */
    CAUSE_KILLED,  /* by a signal that somebody sent */
    CAUSE_CRASHED, /* by a signal of its own making, as SIGSEGV */
    CAUSE_HUNG,    /* no step for longer than allowed */
    CAUSE_EXIT,    /* left by itself, with an exit code or without its last record */
    CAUSE_RECORDS, /* sent what is no record */
    /* Of tasks of a batch system, whose word it is: */
    CAUSE_CANCELLED, /* somebody ended its job */
    CAUSE_NODE,      /* its node was lost, before the first checkpoint */
    CAUSE_TIME,      /* its time limit came before the first checkpoint */
    CAUSE_COUNT
};

const char *cause_name(enum cause cause); /* "memory", "killed", ... */

/* "memory, killed, ...": every cause that has a word. Static. */
const char *cause_names(void);

/* CAUSE_OTHER when there is no such word. */
enum cause cause_from_name(const char *word, size_t length);

/* Of a reason as the functions below write it, now or in an older database. */
enum cause cause_of(const char *reason);

/* status: as of waitpid(), of a worker that did not say how it ended. memory: the kernel took it. */
void cause_describe_exit(int status, bool memory, char *reason, size_t size);
void cause_describe_hang(double seconds, char *reason, size_t size);
void cause_describe_records(const char *what, char *reason, size_t size);

/* How many processes the kernel has killed for want of memory so far, here and in this control group; 0 where it does
 * not say. */
int64_t cause_memory_kills(void);
/* The number after the word `oom_kill` in the file; 0 when there is none. */
int64_t cause_memory_kills_in(const char *path);

#endif
