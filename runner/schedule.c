/* Deciding what to train. */
#include "runner/schedule.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "runner/cause.h"
#include "runner/checkpoint.h"
#include "runner/text_stream.h"

enum { NAMED_MOST = 5 };

const char *run_action_name(enum run_action action)
{
    static const char *const names[ACTION_COUNT] = {"new",      "resume", "retry",     "finished",
                                                    "diverged", "failed", "duplicate", "elsewhere"};
    return names[action];
}

bool run_action_trains(enum run_action action)
{
    return action == ACTION_NEW || action == ACTION_RESUME || action == ACTION_RETRY;
}

bool retry_parse(const char *text, struct retry *retry, struct error *err)
{
    *retry = (struct retry){false, false, 0};
    for (const char *word = text; word;) {
        size_t length = strcspn(word, ",");
        if (length == 6 && strncmp(word, "failed", length) == 0)
            retry->failed = true;
        else if (length == 8 && strncmp(word, "diverged", length) == 0)
            retry->diverged = true;
        else if (cause_from_name(word, length) != CAUSE_OTHER)
            retry->causes |= 1U << cause_from_name(word, length);
        else
            return error_set(err,
                             "--retry is '%s', expected failed, diverged, or a cause of failing: %s; several with "
                             "commas between them",
                             text, cause_names());
        word = word[length] ? word + length + 1 : NULL;
    }
    return true;
}

static enum run_action action_choose(const struct planned_run *planned, struct retry retry)
{
    switch (planned->state) {
    case RUN_FINISHED: return ACTION_FINISHED;
    case RUN_DIVERGED: return retry.diverged ? ACTION_RETRY : ACTION_DIVERGED;
    case RUN_FAILED: {
        bool asked = retry.failed || retry.causes & 1U << cause_of(planned->reason);
        return asked ? ACTION_RETRY : ACTION_FAILED;
    }
    case RUN_NONE:
    case RUN_QUEUED:
    case RUN_RUNNING:
    case RUN_INTERRUPTED: break;
    }
    return planned->step > 0 ? ACTION_RESUME : ACTION_NEW;
}

void schedule_make(struct schedule *schedule, sqlite3 *db, const struct sweep *sweep, const char *checkpoint_folder,
                   struct retry retry)
{
    *schedule = (struct schedule){.runs = memory_alloc(sweep->run_count, sizeof *schedule->runs)};
    for (size_t i = 0; i < sweep->run_count; i++) {
        const struct run *run = &sweep->runs[i];
        struct planned_run *planned = &schedule->runs[i];
        if (db)
            planned->state = database_run_state(db, run->key, NULL, planned->reason, sizeof planned->reason);
        int64_t newest = checkpoint_newest(checkpoint_folder, run->key);
        /* A diverged run starts anew: from its last checkpoint it could only diverge again in the same way. */
        planned->step = planned->state == RUN_DIVERGED || newest < 0 ? 0 : newest;
        planned->action = run->duplicate   ? ACTION_DUPLICATE
                          : run->elsewhere ? ACTION_ELSEWHERE
                                           : action_choose(planned, retry);
        schedule->counts[planned->action]++;
        schedule->total += !run->duplicate && !run->elsewhere;
        schedule->to_train += run_action_trains(planned->action);
    }
}

void schedule_release(struct schedule *schedule)
{
    memory_free(schedule->runs);
    *schedule = (struct schedule){0};
}

/* " (label, seed 1337: reason; label, seed 1338: reason; 3 more)" */
static void names_print(const struct schedule *schedule, const struct sweep *sweep, enum run_action action, FILE *out)
{
    size_t named = 0;
    for (size_t i = 0; i < sweep->run_count && named < NAMED_MOST; i++) {
        const struct planned_run *planned = &schedule->runs[i];
        if (planned->action != action)
            continue;
        fprintf(out, "%s%s, seed %" PRId64, named++ ? "; " : " (",
                sweep->experiment->variants[sweep->runs[i].variant].label, sweep->runs[i].seed);
        if (*planned->reason)
            fprintf(out, ": %s", planned->reason);
    }
    if (schedule->counts[action] > named)
        fprintf(out, "; %zu more", schedule->counts[action] - named);
    if (named)
        fputc(')', out);
}

char *schedule_summary(const struct schedule *schedule, const struct sweep *sweep)
{
    struct text_stream text;
    text_stream_open(&text);
    FILE *out = text.out;
    fprintf(out, "%zu run%s: %zu finished", schedule->total, schedule->total == 1 ? "" : "s",
            schedule->counts[ACTION_FINISHED]);
    static const enum run_action named[] = {ACTION_DIVERGED, ACTION_FAILED};
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (schedule->counts[named[i]]) {
            fprintf(out, ", %zu %s", schedule->counts[named[i]], run_action_name(named[i]));
            names_print(schedule, sweep, named[i], out);
        }
    if (schedule->to_train)
        fprintf(out, ", %zu not finished", schedule->to_train);
    return text_stream_take(&text);
}
