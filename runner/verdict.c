/* Slurm's words and what they mean for a run. */
#include "runner/verdict.h"

#include <stdio.h>
#include <string.h>

enum rule { RULE_FAILS, RULE_NEEDS_CHECKPOINT, RULE_GOES_ON, RULE_AS_IT_SAID };

static const struct {
    const char *word, *reason;
    enum rule rule;
} rules[] = {
    {"CANCELLED", "cancelled", RULE_FAILS},
    {"OUT_OF_MEMORY", "out of memory", RULE_FAILS},
    {"TIMEOUT", "time limit before the first checkpoint", RULE_NEEDS_CHECKPOINT},
    {"DEADLINE", "time limit before the first checkpoint", RULE_NEEDS_CHECKPOINT},
    {"NODE_FAIL", "node failure before the first checkpoint", RULE_NEEDS_CHECKPOINT},
    {"BOOT_FAIL", "node failure before the first checkpoint", RULE_NEEDS_CHECKPOINT},
    {"PREEMPTED", "", RULE_GOES_ON},
    {"REVOKED", "", RULE_GOES_ON},
    {"", "its task is gone from the queue without its last record", RULE_GOES_ON},
    {"COMPLETED", "its task ended without its last record", RULE_AS_IT_SAID},
    {"FAILED", "its task ended without its last record", RULE_AS_IT_SAID},
};

bool task_goes_on(const char *word, bool begun, bool has_checkpoint, bool said_stopped, char *reason, size_t size)
{
    /* An element of an array that is cancelled before it starts leaves no trace in the queue. */
    if (!*word && !begun) {
        snprintf(reason, size, "cancelled (it left Slurm's queue before it began)");
        return false;
    }
    size_t length = strcspn(word, " +");
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (strlen(rules[i].word) != length || strncmp(rules[i].word, word, length) != 0)
            continue;
        snprintf(reason, size, "%s%s%s%s", rules[i].reason, *word ? " (" : "", word, *word ? ")" : "");
        return rules[i].rule == RULE_GOES_ON || (rules[i].rule == RULE_NEEDS_CHECKPOINT && has_checkpoint) ||
               (rules[i].rule == RULE_AS_IT_SAID && said_stopped);
    }
    snprintf(reason, size, "the scheduler says '%s', which is no word known here", word);
    return false;
}
