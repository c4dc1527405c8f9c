/* The comparison table at another moment than the last step: computed from the curves, where the summaries keep only
 * the end. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/memory.h"
#include "core/metric.h"
#include "runner/comparison.h"
#include "runner/loss_table.h"
#include "runner/query.h"
#include "runner/sql.h"

struct member {
    size_t row;
    int64_t seed;
    char state[16];
    struct reading reading;
};

struct members {
    struct member *items;
    size_t count;
};

static size_t row_of(const struct loss_table *table, int64_t variant)
{
    size_t r = 0;
    while (r < table->row_count && table->rows[r].id != variant)
        r++;
    return r;
}

static bool members_read(const struct loss_table *table, sqlite3 *db, int64_t experiment, struct members *members,
                         struct error *err)
{
    sqlite3_stmt *s = sql_prepare(db, query_text(QUERY_MEMBERS), "i", err, experiment);
    bool more, ok = s != NULL;
    while (ok && (ok = sql_step(s, &more, err)) && more) {
        members->items = memory_grow(members->items, members->count * sizeof *members->items, members->count + 1,
                                     sizeof *members->items);
        struct member *m = &members->items[members->count++];
        *m = (struct member){.row = row_of(table, sqlite3_column_int64(s, 0)), .seed = sqlite3_column_int64(s, 2)};
        snprintf(m->state, sizeof m->state, "%s", sql_text(s, 4));
        ok = moment_read(db, sqlite3_column_int64(s, 3), m->state, table->split, table->metric, &table->moment,
                         &m->reading, err);
    }
    sqlite3_finalize(s);
    return ok;
}

static bool anywhere(const struct loss_table *table, const struct members *members, struct error *err)
{
    double furthest = 0;
    bool finished = false, measured = false;
    char text[MOMENT_SIZE];
    for (size_t i = 0; i < members->count; i++) {
        const struct member *m = &members->items[i];
        if (m->reading.there)
            return true;
        furthest = fmax(furthest, m->reading.furthest);
        finished |= strcmp(m->state, "finished") == 0;
        measured |= m->reading.measured;
    }
    moment_format(&table->moment, text);
    if (finished && !measured)
        return error_set(err, "the finished runs of '%.200s' did not measure %s on %s: nothing is known %s",
                         table->experiment, table->metric, table->split, text);
    if (table->moment.kind < MOMENT_STEP)
        return error_set(err, "experiment '%.200s' has no finished run: nothing is known %s", table->experiment, text);
    return error_set(err, "no run of '%.200s' logged %s on %s as late as that (%s): the furthest is at %.15g",
                     table->experiment, table->metric, table->split, text, furthest);
}

static void row_fill(struct loss_row *row, const struct compared *compared)
{
    const struct paired *paired = &compared->paired;
    char verdict[VERDICT_SIZE];
    row->n = (int64_t)compared->sample.n;
    row->mean = compared->sample.mean;
    row->sd = compared->sample.sd;
    row->spread = compared->sample.spread;
    row->delta = paired->delta;
    row->ci_low = paired->ci_low;
    row->ci_high = paired->ci_high;
    row->p = paired->p;
    row->p_holm = compared->p_holm;
    row->mde = paired->mde;
    row->n_diverged = (int64_t)compared->not_finite;
    row->n_short = row->n_unmeasured = row->tokens = 0;
    row->marks &= ~(1u << MARK_TOKENS);
    if (row->baseline)
        return;
    memory_free(row->verdict);
    row->verdict = memory_copy_text(verdict_format(compared->verdict, compared->seeds, verdict));
}

static void member_count(struct loss_table *table, const struct members *members, const struct member *m)
{
    struct loss_row *row = &table->rows[m->row];
    bool diverged = strcmp(m->state, "diverged") == 0;
    row->n_diverged += diverged && (!m->reading.there || !isnan(m->reading.value));
    bool absent = !m->reading.there && strcmp(m->state, "finished") == 0;
    row->n_short += absent && m->reading.measured;
    row->n_unmeasured += absent && !m->reading.measured;
    if (!m->reading.there)
        return;
    row->tokens = m->reading.tokens;
    for (size_t i = 0; i < members->count; i++) {
        const struct member *b = &members->items[i];
        if (table->rows[b->row].baseline && b->seed == m->seed && b->reading.there &&
            b->reading.tokens != m->reading.tokens)
            row->marks |= 1u << MARK_TOKENS;
    }
}

static void table_fill(struct loss_table *table, const struct members *members)
{
    struct outcomes outcomes = {0};
    size_t baseline = table->row_count;
    struct compared *compared = memory_alloc(table->row_count, sizeof *compared);
    for (size_t i = 0; i < members->count; i++) {
        const struct member *m = &members->items[i];
        if (m->reading.there)
            outcome_add(&outcomes, (struct outcome){m->row, m->seed, m->reading.value});
    }
    for (size_t r = 0; r < table->row_count; r++)
        baseline = table->rows[r].baseline ? r : baseline;
    variants_compare(&outcomes, table->row_count, baseline,
                     (struct comparison_rules){table->margin, table->alpha, metric_higher_is_better(table->metric)},
                     compared);
    for (size_t r = 0; r < table->row_count; r++)
        row_fill(&table->rows[r], &compared[r]);
    for (size_t i = 0; i < members->count; i++)
        member_count(table, members, &members->items[i]);
    outcomes_release(&outcomes);
    memory_free(compared);
}

enum loss_table_result loss_table_move(struct loss_table *table, sqlite3 *db, int64_t experiment,
                                       const struct moment *moment, struct error *err)
{
    struct members members = {0};
    enum loss_table_result result = LOSS_TABLE_MOVED;
    if (moment->kind == MOMENT_LAST)
        return result;
    table->moment = *moment;
    if (!members_read(table, db, experiment, &members, err))
        result = LOSS_TABLE_FAILED;
    else if (!anywhere(table, &members, err))
        result = LOSS_TABLE_NOT_THERE;
    else
        table_fill(table, &members);
    memory_free(members.items);
    return result;
}
