/* Variants compared by one number a run. */
#include "runner/comparison.h"

#include <math.h>

#include "core/memory.h"

void outcome_add(struct outcomes *outcomes, struct outcome outcome)
{
    size_t count = outcomes->count;
    if (count == 0)
        outcomes->items = memory_alloc(8, sizeof outcome);
    else if (count >= 8 && (count & (count - 1)) == 0)
        outcomes->items = memory_grow(outcomes->items, count * sizeof outcome, 2 * count, sizeof outcome);
    outcomes->items[outcomes->count++] = outcome;
}

void outcomes_release(struct outcomes *outcomes)
{
    memory_free(outcomes->items);
    *outcomes = (struct outcomes){0};
}

static void sample_set(const struct outcomes *outcomes, size_t variant, double *values, struct compared *row)
{
    size_t n = 0;
    row->not_finite = 0;
    for (size_t i = 0; i < outcomes->count; i++) {
        const struct outcome *outcome = &outcomes->items[i];
        if (outcome->variant == variant && isnan(outcome->value))
            row->not_finite++;
        else if (outcome->variant == variant)
            values[n++] = outcome->value;
    }
    row->sample = sample_of(values, n);
}

/* Differences variant - baseline of the seeds that both have. */
static size_t pair(const struct outcomes *outcomes, size_t variant, size_t baseline, double *differences)
{
    size_t n = 0;
    for (size_t i = 0; i < outcomes->count; i++) {
        const struct outcome *a = &outcomes->items[i];
        if (a->variant != variant || isnan(a->value))
            continue;
        for (size_t j = 0; j < outcomes->count; j++) {
            const struct outcome *b = &outcomes->items[j];
            if (b->variant == baseline && b->seed == a->seed && !isnan(b->value))
                differences[n++] = a->value - b->value;
        }
    }
    return n;
}

/* Of a measure whose higher values are better. */
static enum verdict verdict_turned(enum verdict verdict)
{
    return verdict == VERDICT_BETTER ? VERDICT_WORSE : verdict == VERDICT_WORSE ? VERDICT_BETTER : verdict;
}

void verdicts_set(struct compared *rows, size_t count, struct comparison_rules rules)
{
    double *p = memory_alloc(3 * count, sizeof *p), *p_holm = p + count, *factor = p + 2 * count;
    for (size_t i = 0; i < count; i++)
        p[i] = rows[i].paired.p;
    holm_adjust(p, count, p_holm, factor);
    for (size_t i = 0; i < count; i++) {
        rows[i].p_holm = p_holm[i];
        rows[i].verdict = verdict_of(&rows[i].paired, p_holm[i], factor[i], rules.margin, rules.alpha, &rows[i].seeds);
        if (rules.higher)
            rows[i].verdict = verdict_turned(rows[i].verdict);
    }
    memory_free(p);
}

void variants_compare(const struct outcomes *outcomes, size_t variant_count, size_t baseline,
                      struct comparison_rules rules, struct compared *rows)
{
    double *values = memory_alloc(outcomes->count, sizeof *values);
    for (size_t v = 0; v < variant_count; v++) {
        sample_set(outcomes, v, values, &rows[v]);
        size_t n = v == baseline || baseline >= variant_count ? 0 : pair(outcomes, v, baseline, values);
        rows[v].paired = paired_of(values, n, rules.alpha);
    }
    verdicts_set(rows, variant_count, rules);
    memory_free(values);
}
