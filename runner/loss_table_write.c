/* The comparison table as people read it (blocks of text, or one wide table) and as programs do. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/metric.h"
#include "runner/layout.h"
#include "runner/loss_table.h"

enum { TROUBLES_SHOWN = 5, CELL_SIZE = 96, SEEDS_LEAST = 12, VERDICT_LEAST = 16 };

/* How much of itself a table shows, for terminals of any width. */
struct form {
    int label;       /* columns of a variant's label; 0 = whole */
    bool tokens;     /* a column of them also where all are equal */
    bool whole_ends; /* both ends of the interval, not its half width */
};
static const struct form whole_form = {0, true, true};

static const char *const mark_texts[MARK_COUNT] = {
    [MARK_PARAMETERS] = "parameters are more than 2 % away from the baseline's: size alone may make the difference",
    [MARK_TOKENS] = "trained on another number of tokens than the baseline",
    [MARK_TOKENIZER] = "another tokenizer than the baseline's: only bits_per_byte compares",
    [MARK_HOST] = "a run and the baseline's run of the same seed were trained on different machines",
    [MARK_KERNELS] = "a run and the baseline's run of the same seed were trained with different processors or kernels",
    [MARK_PRECISION] = "another number format than the baseline's",
    [MARK_CPU_CHANGED] = "a run of it changed its processor or kernels on the way: its last bits depend on where",
    [MARK_LEAK] = "a run of it is below what letters that say nothing of one another permit: it saw what it was to "
                  "predict, or the text repeats itself",
    [MARK_UNTRAINED] = "a run of it did not train: it ends no lower than an untrained model, or far above the best "
                       "variant, having hardly fallen since a quarter of training",
};

enum {
    OF_PARAMETERS = 1u << MARK_PARAMETERS,
    OF_TOKENS = 1u << MARK_TOKENS,
    OF_VARIANT = (1u << MARK_COUNT) - 1 - OF_PARAMETERS - OF_TOKENS,
};

/* Numbers of the marks that occur, in the order in which one reads them; 0 = not used. */
struct marks {
    int number[MARK_COUNT];
};

static struct marks marks_number(const struct loss_table *t)
{
    static const unsigned columns[] = {OF_VARIANT, OF_PARAMETERS, OF_TOKENS};
    struct marks marks = {{0}};
    int next = 1;
    for (size_t r = 0; r < t->row_count; r++)
        for (size_t c = 0; c < sizeof columns / sizeof columns[0]; c++)
            for (int m = 0; m < MARK_COUNT; m++)
                if (t->rows[r].marks & columns[c] & 1u << m && !marks.number[m])
                    marks.number[m] = next++;
    return marks;
}

/* " [1] [3]" for the marks among those of the mask. */
static const char *marks_text(const struct marks *marks, const struct loss_row *row, unsigned mask, char buf[CELL_SIZE])
{
    size_t used = 0;
    buf[0] = 0;
    for (int m = 0; m < MARK_COUNT; m++)
        if (row->marks & mask & 1u << m)
            used += (size_t)snprintf(buf + used, CELL_SIZE - used, " [%d]", marks->number[m]);
    return buf;
}

/* ---- cells ---- */

/* Four decimals for losses; fewer where the numbers are large. */
static const char *number_text(double value, char buf[CELL_SIZE])
{
    if (!isfinite(value))
        snprintf(buf, CELL_SIZE, "n/a");
    else
        snprintf(buf, CELL_SIZE, "%.*f", fabs(value) < 100 ? 4 : fabs(value) < 10000 ? 2 : 0, value);
    return buf;
}

static void number_cell(struct table *table, double value)
{
    char buf[CELL_SIZE];
    table_shown(table, value, number_text(value, buf));
}

static void signed_cell(struct table *table, double value)
{
    char buf[CELL_SIZE] = "+";
    number_text(value, value >= 0 ? buf + 1 : buf);
    table_shown(table, value, buf);
}

static void interval_cell(struct table *table, const struct loss_row *row, const struct form *form)
{
    char low[CELL_SIZE], high[CELL_SIZE];
    if (!isfinite(row->ci_low))
        table_absent(table, row->baseline ? "" : "n/a");
    else if (!form->whole_ends)
        table_textf(table, "%s", number_text((row->ci_high - row->ci_low) / 2, high));
    else
        table_textf(table, "[%s, %s]", number_text(row->ci_low, low), number_text(row->ci_high, high));
}

static void p_cell(struct table *table, double p)
{
    char buf[CELL_SIZE];
    table_shown(table, p, isfinite(p) && p < 0.0001 ? "<0.0001" : number_text(p, buf));
}

static void parameters_cell(struct table *table, const struct loss_table *t, const struct loss_row *row,
                            const struct marks *marks)
{
    char count[32], mark[CELL_SIZE], percent[CELL_SIZE] = "";
    double base = (double)t->baseline_parameters;
    if (base > 0 && !row->baseline)
        snprintf(percent, sizeof percent, " (%+.1f %%)", 100 * ((double)row->parameters - base) / base);
    table_textf(table, "%s%s%s", format_count(row->parameters, count), percent,
                marks_text(marks, row, OF_PARAMETERS, mark));
}

static void tokens_cell(struct table *table, const struct loss_row *row, const struct marks *marks)
{
    char count[32], mark[CELL_SIZE];
    if (row->tokens)
        table_textf(table, "%s%s", format_count(row->tokens, count), marks_text(marks, row, OF_TOKENS, mark));
    else
        table_absent(table, "-");
}

/* "2 of 3, 1 diverged" */
static void seeds_cell(struct table *table, const struct loss_row *row)
{
    const struct {
        int64_t count;
        const char *word;
    } others[] = {
        {row->n_diverged, "diverged"},     {row->n_failed, "failed"},           {row->n_interrupted, "interrupted"},
        {row->n_short, "ended before it"}, {row->n_unmeasured, "not measured"}, {row->n_running, "running"},
        {row->n_queued, "queued"}};
    char buf[320];
    size_t used = (size_t)snprintf(buf, sizeof buf, "%" PRId64 " of %" PRId64, row->n, row->n_planned);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (others[i].count)
            used +=
                (size_t)snprintf(buf + used, sizeof buf - used, ", %" PRId64 " %s", others[i].count, others[i].word);
    table_text(table, buf);
}

/* A long label is cut, and told apart by its row: "a very long lab... #3". */
static void label_cell(struct table *table, const struct loss_row *row, size_t number, const struct marks *marks,
                       const struct form *form)
{
    char mark[CELL_SIZE];
    marks_text(marks, row, OF_VARIANT, mark);
    if (form->label == 0 || layout_columns(row->variant) <= form->label) {
        table_textf(table, "%s%s", row->variant, mark);
        return;
    }
    size_t bytes = strlen(row->variant);
    char *label = memory_copy_text(row->variant);
    while (bytes && layout_columns(label) > form->label - 8) /* part of a character is wider than all of it: \xNN */
        label[--bytes] = 0;
    table_textf(table, "%s... #%zu%s", label, number + 1, mark);
    memory_free(label);
}

/* ---- blocks ---- */

static void notes_add(struct table *table, const struct loss_table *t, const struct marks *marks)
{
    bool higher = metric_higher_is_better(t->metric);
    for (int number = 1; number <= MARK_COUNT; number++)
        for (int m = 0; m < MARK_COUNT; m++)
            if (marks->number[m] == number)
                table_note(table, "[%d] %s", number, mark_texts[m]);
    for (size_t i = 0; i < t->trouble_count && i < TROUBLES_SHOWN; i++)
        table_note(table, "%s", t->troubles[i]);
    if (t->trouble_count > TROUBLES_SHOWN)
        table_note(table, "and %zu more: the view runs has their reasons", t->trouble_count - TROUBLES_SHOWN);
    if (t->moment.kind == MOMENT_BEST)
        table_note(table,
                   "The %s value of each run, chosen afterwards: %s than what training gives at a step set beforehand.",
                   higher ? "highest" : "lowest", higher ? "higher" : "lower");
    else if (t->moment.kind != MOMENT_LAST)
        table_note(table, "The last value logged at or before it, of every run that got there, also of those that did "
                          "not finish.");
    if (t->moment.kind != MOMENT_LAST && strcmp(t->split, "train") != 0)
        table_note(table, "Evaluations before the last one are made on evaluation.blocks blocks, the last on "
                          "evaluation.final_blocks.");
    if (t->baseline_parameters == 0 && t->row_count)
        table_note(table, "The baseline is not among these runs: there is nothing to compare with.");
}

static const char *direction_text(const struct loss_table *t)
{
    const struct metric *metric = metric_find(t->metric);
    return !metric ? "" : metric->better == HIGHER_IS_BETTER ? "; higher is better" : "; lower is better";
}

/* Anything but the last step is said in the column itself. Returns buf. */
static const char *mean_heading(const struct loss_table *t, char buf[CELL_SIZE])
{
    char name[MOMENT_SIZE];
    if (t->moment.kind == MOMENT_LAST)
        return "mean";
    snprintf(buf, CELL_SIZE, "mean at %s", moment_name(&t->moment, name));
    return buf;
}

/* Of every variant that has some; 0 when they differ. */
static int64_t tokens_of_all(const struct loss_table *t)
{
    int64_t tokens = 0;
    for (size_t r = 0; r < t->row_count; r++) {
        if (tokens && t->rows[r].tokens && t->rows[r].tokens != tokens)
            return 0;
        tokens = t->rows[r].tokens ? t->rows[r].tokens : tokens;
    }
    return tokens;
}

static bool has_tokens(const struct loss_table *t, const struct form *form)
{
    return form->tokens || tokens_of_all(t) == 0;
}

static void value_columns(struct table *table, const struct loss_table *t, const struct form *form)
{
    char heading[CELL_SIZE];
    table_column(table, "parameters", TABLE_RIGHT);
    if (has_tokens(t, form))
        table_column(table, "tokens", TABLE_RIGHT);
    table_column(table, mean_heading(t, heading), TABLE_RIGHT);
    table_column(table, "sd", TABLE_RIGHT);
    table_column(table, "spread", TABLE_RIGHT);
    table_column(table, "seeds", TABLE_LEFT);
}

static void value_cells(struct table *table, const struct loss_table *t, const struct loss_row *row,
                        const struct marks *marks, const struct form *form)
{
    parameters_cell(table, t, row, marks);
    if (has_tokens(t, form))
        tokens_cell(table, row, marks);
    number_cell(table, row->mean);
    number_cell(table, row->sd);
    number_cell(table, row->spread);
    seeds_cell(table, row);
}

static void comparison_columns(struct table *table, const struct loss_table *t, const struct form *form)
{
    char heading[64];
    snprintf(heading, sizeof heading, form->whole_ends ? "%g %% interval" : "+- (%g %%)", 100 * (1 - t->alpha));
    table_column(table, "delta", TABLE_RIGHT);
    table_column(table, heading, TABLE_RIGHT);
    table_column(table, "p_holm", TABLE_RIGHT);
    table_column(table, "mde", TABLE_RIGHT);
    table_column(table, "verdict", TABLE_LEFT);
}

static void comparison_cells(struct table *table, const struct loss_row *row, const struct form *form)
{
    if (row->baseline) {
        for (int i = 0; i < 4; i++)
            table_absent(table, "");
        table_absent(table, "baseline");
        return;
    }
    signed_cell(table, row->delta);
    interval_cell(table, row, form);
    p_cell(table, row->p_holm);
    number_cell(table, row->mde);
    table_text(table, row->verdict);
}

static struct table *values_make(const struct loss_table *t, const struct marks *marks, const struct form *form)
{
    struct table *table = table_create();
    char moment[MOMENT_SIZE], tokens[32];
    table_caption(table, "%s: %s on %s %s%s", t->experiment, t->metric, t->split, moment_format(&t->moment, moment),
                  direction_text(t));
    if (!has_tokens(t, form))
        table_caption(table, "Each run was trained on %s tokens", format_count(tokens_of_all(t), tokens));
    table_column(table, "variant", TABLE_LEFT);
    value_columns(table, t, form);
    for (size_t r = 0; r < t->row_count; r++) {
        label_cell(table, &t->rows[r], r, marks, form);
        value_cells(table, t, &t->rows[r], marks, form);
    }
    return table;
}

static struct table *comparisons_make(const struct loss_table *t, const struct marks *marks, const struct form *form)
{
    struct table *table = table_create();
    table_caption(table, "Against the baseline, paired by seed; margin %g, alpha %g", t->margin, t->alpha);
    table_column(table, "variant", TABLE_LEFT);
    comparison_columns(table, t, form);
    for (size_t r = 0; r < t->row_count && t->baseline_parameters; r++) {
        if (t->rows[r].baseline)
            continue;
        label_cell(table, &t->rows[r], r, marks, form);
        comparison_cells(table, &t->rows[r], form);
    }
    return table;
}

struct table *loss_table_values(const struct loss_table *table)
{
    struct marks marks = marks_number(table);
    struct table *values = values_make(table, &marks, &whole_form);
    notes_add(values, table, &marks);
    return values;
}

struct table *loss_table_comparisons(const struct loss_table *table)
{
    struct marks marks = marks_number(table);
    return comparisons_make(table, &marks, &whole_form);
}

/* The first form in which both blocks fit, the last where none does. */
static struct form form_choose(const struct loss_table *t, const struct marks *marks, int width)
{
    static const struct form forms[] = {{32, true, true},   {32, false, true},  {32, false, false}, {28, false, false},
                                        {24, false, false}, {20, false, false}, {16, false, false}, {12, false, false}};
    size_t f = 0;
    for (bool fits = width == 0; !fits && f + 1 < sizeof forms / sizeof forms[0]; f += !fits) {
        struct table *values = values_make(t, marks, &forms[f]), *comparisons = comparisons_make(t, marks, &forms[f]);
        fits = table_text_width(values, SEEDS_LEAST) <= width && table_text_width(comparisons, VERDICT_LEAST) <= width;
        table_free(values);
        table_free(comparisons);
    }
    return forms[f];
}

/* Takes the table. */
static void block_write(struct table *table, int width, FILE *out)
{
    table_write(table, TABLE_TEXT, width, out);
    table_free(table);
}

static struct table *changes_make(const struct loss_table *t, const struct marks *marks, const struct form *form)
{
    static const struct marks none;
    struct loss_row plain;
    struct table *table = table_create();
    table_column(table, "variant", TABLE_LEFT);
    table_column(table, "changed settings", TABLE_LEFT);
    for (size_t r = 0; r < t->row_count; r++) {
        plain = t->rows[r];
        plain.marks = 0;
        label_cell(table, &plain, r, &none, form);
        bool cut = layout_columns(plain.variant) > form->label;
        table_textf(table, "%s%s%s%s", plain.changes, !*plain.changes && !cut ? "none" : "", cut ? " - labelled " : "",
                    cut ? plain.variant : "");
    }
    notes_add(table, t, marks);
    return table;
}

static void write_text(const struct loss_table *t, int width, FILE *out)
{
    struct marks marks = marks_number(t);
    struct form form = form_choose(t, &marks, width);
    block_write(values_make(t, &marks, &form), width, out);
    struct table *comparisons = comparisons_make(t, &marks, &form);
    if (table_row_count(comparisons)) {
        fputc('\n', out);
        table_write(comparisons, TABLE_TEXT, width, out);
    }
    table_free(comparisons);
    fputc('\n', out);
    block_write(changes_make(t, &marks, &form), width, out);
}

static void write_wide(const struct loss_table *t, enum table_format format, FILE *out)
{
    struct table *table = table_create();
    struct marks marks = marks_number(t);
    char moment[MOMENT_SIZE];
    table_caption(table, "%s: %s on %s %s%s. Paired by seed; margin %g, alpha %g.", t->experiment, t->metric, t->split,
                  moment_format(&t->moment, moment), direction_text(t), t->margin, t->alpha);
    table_column(table, "variant", TABLE_LEFT);
    table_column(table, "changed settings", TABLE_LEFT);
    value_columns(table, t, &whole_form);
    comparison_columns(table, t, &whole_form);
    for (size_t r = 0; r < t->row_count; r++) {
        label_cell(table, &t->rows[r], r, &marks, &whole_form);
        table_text(table, t->rows[r].changes);
        value_cells(table, t, &t->rows[r], &marks, &whole_form);
        comparison_cells(table, &t->rows[r], &whole_form);
    }
    notes_add(table, t, &marks);
    table_write(table, format, 0, out);
    table_free(table);
}

/* ---- programs ---- */

static const char *const mark_names[MARK_COUNT] = {"parameters", "tokens",      "tokenizer", "host", "kernels",
                                                   "precision",  "cpu_changed", "untrained", "leak"};

/* The columns of the JSON contract; CSV has a few more at its end. */
static struct table *data_table(const struct loss_table *t, bool more)
{
    static const char *const names[] = {"variant", "parameters", "n",      "n_planned", "n_diverged",
                                        "mean",    "sd",         "spread", "delta",     "ci_low",
                                        "ci_high", "p",          "p_holm", "mde",       "verdict"};
    struct table *table = table_create();
    char heading[CELL_SIZE];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        table_column(table, more && i == 5 ? mean_heading(t, heading) : names[i], TABLE_LEFT);
    if (more) {
        table_column(table, "tokens", TABLE_LEFT);
        table_column(table, "changes", TABLE_LEFT);
        table_column(table, "marks", TABLE_LEFT);
    }
    for (size_t r = 0; r < t->row_count; r++) {
        const struct loss_row *row = &t->rows[r];
        const double numbers[] = {row->mean,    row->sd, row->spread, row->delta, row->ci_low,
                                  row->ci_high, row->p,  row->p_holm, row->mde};
        table_text(table, row->variant);
        table_integer(table, row->parameters);
        table_integer(table, row->n);
        table_integer(table, row->n_planned);
        table_integer(table, row->n_diverged);
        for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
            table_number(table, numbers[i], "%g");
        table_text(table, row->verdict);
        if (!more)
            continue;
        if (row->tokens)
            table_integer(table, row->tokens);
        else
            table_absent(table, "");
        table_text(table, row->changes);
        char marks[128] = "";
        size_t used = 0;
        for (int m = 0; m < MARK_COUNT; m++)
            if (row->marks & 1u << m)
                used += (size_t)snprintf(marks + used, sizeof marks - used, "%s%s", used ? " " : "", mark_names[m]);
        table_text(table, marks);
    }
    return table;
}

static void write_json(const struct loss_table *t, FILE *out)
{
    struct table *rows = data_table(t, false);
    char moment[MOMENT_SIZE];
    json_t *root = json_object();
    json_put(root, "experiment", json_from_text(t->experiment));
    json_put(root, "metric", json_from_text(t->metric));
    json_put(root, "split", json_from_text(t->split));
    if (t->moment.kind != MOMENT_LAST)
        json_put(root, "at", json_from_text(moment_name(&t->moment, moment)));
    json_put(root, "rows", table_json(rows));
    json_print(root, out);
    json_decref(root);
    table_free(rows);
}

void loss_table_write(const struct loss_table *table, enum table_format format, int width, FILE *out)
{
    switch (format) {
    case TABLE_TEXT: write_text(table, width, out); break;
    case TABLE_MD:
    case TABLE_LATEX: write_wide(table, format, out); break;
    case TABLE_JSON: write_json(table, out); break;
    case TABLE_CSV: {
        struct table *rows = data_table(table, true);
        table_write(rows, TABLE_CSV, 0, out);
        table_free(rows);
        break;
    }
    }
}
