/* Causes, and the sentences they are read off. */
#include "runner/cause.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "runner/signals.h"

#define MEMORY_RAN_OUT ": memory ran out"

/* A reason has the cause of the first row whose beginning it has. */
static const struct {
    const char *name, *beginning;
} rows[CAUSE_COUNT] = {
    [CAUSE_OTHER] = {"", NULL},
    [CAUSE_MEMORY] = {"memory", "out of memory"},
    [CAUSE_KILLED] = {"killed", "killed by signal "},
    [CAUSE_CRASHED] = {"crashed", NULL},
    [CAUSE_HUNG] = {"hung", "hung: "},
    [CAUSE_EXIT] = {"exit", "its worker left "},
    [CAUSE_RECORDS] = {"records", "its worker sent "},
    [CAUSE_CANCELLED] = {"cancelled", "cancelled"},
    [CAUSE_NODE] = {"node", "node failure"},
    [CAUSE_TIME] = {"time", "time limit"},
};

const char *cause_name(enum cause cause)
{
    return rows[cause].name;
}

const char *cause_names(void)
{
    static char names[CAUSE_COUNT * 16];
    size_t used = 0;
    for (enum cause i = CAUSE_MEMORY; i < CAUSE_COUNT; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", rows[i].name);
    return names;
}

enum cause cause_from_name(const char *word, size_t length)
{
    for (enum cause i = CAUSE_MEMORY; i < CAUSE_COUNT; i++)
        if (strlen(rows[i].name) == length && strncmp(rows[i].name, word, length) == 0)
            return i;
    return CAUSE_OTHER;
}

static bool is_crash(long number)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
        if (crashes[i] == number)
            return true;
    return false;
}

enum cause cause_of(const char *reason)
{
    for (enum cause i = CAUSE_MEMORY; i < CAUSE_COUNT; i++) {
        const char *beginning = rows[i].beginning;
        if (!beginning || strncmp(reason, beginning, strlen(beginning)) != 0)
            continue;
        if (i != CAUSE_KILLED)
            return i;
        if (strstr(reason, MEMORY_RAN_OUT))
            return CAUSE_MEMORY;
        return is_crash(strtol(reason + strlen(beginning), NULL, 10)) ? CAUSE_CRASHED : CAUSE_KILLED;
    }
    return CAUSE_OTHER;
}

void cause_describe_exit(int status, bool memory, char *reason, size_t size)
{
    int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (number)
        snprintf(reason, size, "killed by signal %d (%s)%s", number, signal_name(number),
                 number != SIGKILL ? ""
                 : memory          ? MEMORY_RAN_OUT
                                   : ", perhaps because memory ran out");
    else if (WEXITSTATUS(status) == 0)
        snprintf(reason, size, "its worker left without its last record");
    else
        snprintf(reason, size, "its worker left with exit code %d", WEXITSTATUS(status));
}

void cause_describe_hang(double seconds, char *reason, size_t size)
{
    snprintf(reason, size, "hung: no step for %g s (--hang-after), its worker was killed", seconds);
}

void cause_describe_records(const char *what, char *reason, size_t size)
{
    snprintf(reason, size, "its worker sent a %.180s", what);
}

int64_t cause_memory_kills_in(const char *path)
{
    static const char word[] = "oom_kill ";
    char line[256];
    int64_t kills = 0;
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, word, sizeof word - 1) == 0)
            kills = strtoll(line + sizeof word - 1, NULL, 10);
    if (file)
        fclose(file);
    return kills;
}

/* A line of /proc/self/cgroup is "0::/path" (version 2) or "4:memory:/path" (version 1). */
static int64_t group_kills(void)
{
    char line[512], path[640];
    int64_t kills = 0;
    FILE *file = fopen("/proc/self/cgroup", "r");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        const char *memory = strstr(line, ":memory:");
        if (strncmp(line, "0::", 3) == 0)
            snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.events", line + 3);
        else if (memory)
            snprintf(path, sizeof path, "/sys/fs/cgroup/memory%s/memory.oom_control", memory + strlen(":memory:"));
        else
            continue;
        kills += cause_memory_kills_in(path);
    }
    if (file)
        fclose(file);
    return kills;
}

int64_t cause_memory_kills(void)
{
    return cause_memory_kills_in("/proc/vmstat") + group_kills();
}
