/* Where bench measures whole commands: a temporary folder, this program run in it as a child, and what that took.
 *
 *   struct bench_lab lab;
 *   if (!bench_lab_open(&lab, &err)) ...
 *   bench_lab_file(&lab, "a.yaml", text)
 *   bench_lab_run(&lab, (const char *const[]){"run", "a.yaml", NULL}, &usage, &err)
 *   bench_lab_close(&lab); */
#ifndef RUNNER_BENCH_LAB_H
#define RUNNER_BENCH_LAB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/error.h"

struct bench_lab {
    char *folder;  /* absolute */
    int alive;     /* write end of a pipe that every child has too: at its end nobody uses the folder any more */
    pid_t remover; /* the process that waits for that, and then removes it */
};

struct bench_usage {
    double wall, cpu; /* seconds; cpu: of the child and of its own children */
    double own_share; /* of a core, by the child itself while it ran with its first second left out; NaN: too short */
    int64_t peak_memory; /* bytes of the child itself */
};

/* Under TMPDIR. When this process ends before it closes the lab, by whatever signal, the folder goes all the same, once
 * the last child has ended too. */
bool bench_lab_open(struct bench_lab *lab, struct error *err);
/* Removes all of it; takes a zeroed one. */
void bench_lab_close(struct bench_lab *lab);

/* Writes a file of the lab, makes a folder of it, or removes everything under one. */
bool bench_lab_file(const struct bench_lab *lab, const char *name, const char *text, struct error *err);
bool bench_lab_folder(const struct bench_lab *lab, const char *name, struct error *err);
void bench_lab_remove(const struct bench_lab *lab, const char *name);
/* Owner: caller, memory_free(). */
char *bench_lab_path(const struct bench_lab *lab, const char *name);

/* This program with these words, in the lab's folder, its standard output thrown away and its standard error a terminal
 * of its own, so that it draws its progress. False and err, with the end of what it said, unless it exits 0. */
bool bench_lab_run(const struct bench_lab *lab, const char *const *words, struct bench_usage *usage, struct error *err);

/* How a child ended, as of wait4() with these options, and the processor time it and its own children took. `ended` is
 * false while it runs (WNOHANG). False and err when the system does not tell. */
struct bench_end {
    bool ended;
    int status;
    double cpu; /* seconds */
};
bool bench_child_wait(pid_t pid, int options, struct bench_end *end, struct error *err);

/* Peak resident memory of a process so far, bytes; 0 when it is gone. */
int64_t process_peak_memory(pid_t pid);

#endif
