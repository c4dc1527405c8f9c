/* The answer to an experiment's question in one sentence, made from the verdicts of its table. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "runner/report.h"

static bool verdict_is(const struct loss_row *row, const char *word)
{
    return row->verdict && strncmp(row->verdict, word, strlen(word)) == 0;
}

static void name_put(const struct loss_row *row, bool with_delta, FILE *out)
{
    fputc(REPORT_NAME_BEGIN, out);
    for (const char *c = row->variant; *c; c++)
        fputc(*c == REPORT_NAME_BEGIN || *c == REPORT_NAME_END ? ' ' : *c, out);
    fputc(REPORT_NAME_END, out);
    if (with_delta && isfinite(row->delta))
        fprintf(out, " (%+.4f%s)", row->delta, row->marks & 1u << MARK_UNTRAINED ? ", did not train" : "");
}

/* "A (-0.11), B (-0.10) and C (-0.02) are better", after a separator when something came before. */
static size_t clause_put(const struct loss_table *t, const char *verdict, const char *singular, const char *plural,
                         size_t clauses, FILE *out)
{
    size_t total = 0, done = 0;
    for (size_t r = 0; r < t->row_count; r++)
        total += verdict_is(&t->rows[r], verdict);
    if (total == 0)
        return clauses;
    fputs(clauses ? "; " : "", out);
    for (size_t r = 0; r < t->row_count; r++) {
        if (!verdict_is(&t->rows[r], verdict))
            continue;
        fputs(done == 0 ? "" : done + 1 == total ? " and " : ", ", out);
        name_put(&t->rows[r], true, out);
        done++;
    }
    fprintf(out, " %s", total == 1 ? singular : plural);
    return clauses + 1;
}

static const struct loss_row *baseline_of(const struct loss_table *t)
{
    for (size_t r = 0; r < t->row_count; r++)
        if (t->rows[r].baseline)
            return &t->rows[r];
    return NULL;
}

/* Verdicts are worth nothing where a model saw what it was to predict. */
static void leaks_put(const struct loss_table *t, FILE *out)
{
    size_t done = 0;
    for (size_t r = 0; r < t->row_count; r++)
        if (t->rows[r].marks & 1u << MARK_LEAK) {
            fputs(done++ ? ", "
                         : "; below what independent letters permit, so not to be believed unless the text repeats "
                           "itself: ",
                  out);
            name_put(&t->rows[r], false, out);
        }
}

static void answer_put(const struct loss_table *t, FILE *out)
{
    const struct loss_row *baseline = baseline_of(t);
    int64_t planned = 0, finished = 0;
    for (size_t r = 0; r < t->row_count; r++) {
        planned += t->rows[r].n_planned;
        finished += t->rows[r].n;
    }
    if (!baseline || baseline->n == 0 || t->row_count < 2) {
        fprintf(out, "No answer yet: %s (%" PRId64 " of %" PRId64 " runs have a final value).",
                !baseline          ? "the baseline is not among these runs"
                : t->row_count < 2 ? "there is one variant only"
                                   : "no run of the baseline has finished",
                finished, planned);
        return;
    }
    char within[64];
    snprintf(within, sizeof within, "the same within %g", t->margin);
    char is_same[80], are_same[80];
    snprintf(is_same, sizeof is_same, "is %s", within);
    snprintf(are_same, sizeof are_same, "are %s", within);
    fprintf(out, "Against ");
    name_put(baseline, false, out);
    fprintf(out, " (%s of %.4f on %s), ", t->metric, baseline->mean, t->split);
    size_t clauses = clause_put(t, "better", "is better", "are better", 0, out);
    clauses = clause_put(t, "worse", "is worse", "are worse", clauses, out);
    clauses = clause_put(t, "same", is_same, are_same, clauses, out);
    clauses = clause_put(t, "not separated", "is not separated by these seeds", "are not separated by these seeds",
                         clauses, out);
    clause_put(t, "n/a", "cannot be judged, for want of two finished pairs of seeds",
               "cannot be judged, for want of two finished pairs of seeds", clauses, out);
    leaks_put(t, out);
    if (finished < planned)
        fprintf(out, " (%" PRId64 " of %" PRId64 " runs have a final value)", finished, planned);
    fputc('.', out);
}

char *report_answer(const struct loss_table *table)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        abort();
    answer_put(table, out);
    fclose(out);
    char *copy = memory_copy_bytes(text, size);
    free(text);
    return copy;
}
