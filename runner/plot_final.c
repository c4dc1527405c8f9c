/* Values at the last step, or their differences to the baseline: a row a variant with every seed, the mean, its
 * interval, and the baseline to compare with.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "runner/plot_figure.h"
#include "runner/plot_text.h"
#include "runner/statistics.h"

enum { NAME_WIDTH = 460, ROW_GAP = 34, AXIS_HEIGHT = 150, SMALLEST_ROWS = 240 };

struct row {
    struct look look;
    struct sample sample;
    double half_width; /* not a number for one seed */
    char *name, *note; /* wrapped: at the left, at the right */
    double top, height;
};

struct final {
    struct row *rows;
    size_t count;
    struct axis axis;
    bool clipped;     /* an interval leaves the axis */
    bool differences; /* to the baseline, not values */
    double reference; /* baseline's mean, 0 for differences, or not a number */
    const char *baseline;
    struct compared *verdicts; /* of differences, one a row */
};

static double run_value(const struct plot_run *run)
{
    return run->count ? run->points[run->count - 1].value : NAN;
}

static struct sample variant_sample(const struct plot_variant *variant)
{
    double *values = memory_alloc(variant->run_count, sizeof *values);
    size_t n = 0;
    for (size_t r = 0; r < variant->run_count; r++)
        if (isfinite(run_value(&variant->runs[r])))
            values[n++] = run_value(&variant->runs[r]);
    struct sample sample = sample_of(values, n);
    memory_free(values);
    return sample;
}

/* "2.1200 ± 0.0497, n = 3" and, below, the verdict on a difference and what became of the others. */
static char *note_make(const struct row *row, const struct plot_variant *variant, const struct compared *verdict,
                       bool logarithmic)
{
    char status[PLOT_STATUS_SIZE], text[2 * PLOT_STATUS_SIZE + VERDICT_SIZE], said[VERDICT_SIZE + 1] = "";
    const char *sign = verdict && row->sample.mean >= 0 ? "+" : "";
    plot_variant_status(variant, logarithmic, status);
    const char *gap = *status ? "\n" : "";
    int digits = fabs(row->sample.mean) < 1000 ? 4 : 0;
    if (row->sample.n == 0)
        return memory_copy_text(*status ? status : "no values");
    if (verdict) {
        said[0] = '\n';
        verdict_format(verdict->verdict, verdict->seeds, said + 1);
    }
    if (isnan(row->half_width))
        snprintf(text, sizeof text, "%s%.*f, n = %zu%s%s%s", sign, digits, row->sample.mean, row->sample.n, said, gap,
                 status);
    else
        snprintf(text, sizeof text, "%s%.*f \xc2\xb1 %.*f, n = %zu%s%s%s", sign, digits, row->sample.mean, digits,
                 row->half_width, row->sample.n, said, gap, status);
    return memory_copy_text(text);
}

static void row_measure(struct row *row, const struct plot_variant *variant, double alpha)
{
    row->sample = variant_sample(variant);
    row->half_width = row->sample.n > 1 ? t_half_width(row->sample.sd, row->sample.n, alpha) : NAN;
}

static void row_prepare(struct row *row, const struct plot_variant *variant, const struct compared *verdict,
                        bool logarithmic)
{
    row->name = plot_text_wrap(variant->label, NAME_WIDTH / (double)TEXT_SIZE);
    row->note = note_make(row, variant, verdict, logarithmic);
    size_t names = plot_text_lines(row->name), notes = plot_text_lines(row->note);
    row->height = (double)(names > notes ? names : notes) * TEXT_HEIGHT + ROW_GAP;
}

/* Around the seeds; intervals are taken in as far as they at most triple the span, since two seeds have intervals nine
 * times their spread. */
static void axis_set(struct final *final, const struct plot_data *data, bool logarithmic, double margin)
{
    if (final->differences)
        for (int side = -1; side <= 1; side++)
            axis_add(&final->axis, 1.5 * side * margin);
    for (size_t v = 0; v < data->variant_count; v++)
        for (size_t r = 0; r < data->variants[v].run_count; r++)
            axis_add(&final->axis, run_value(&data->variants[v].runs[r]));
    struct axis seeds = final->axis;
    double span = seeds.high - seeds.low;
    for (size_t v = 0; v < final->count; v++) {
        const struct row *row = &final->rows[v];
        if (isnan(row->half_width))
            continue;
        double low = row->sample.mean - row->half_width, high = row->sample.mean + row->half_width;
        double lowest = logarithmic ? fmax(seeds.low - span, seeds.low / 2) : seeds.low - span;
        final->clipped = final->clipped || low < lowest || high > seeds.high + span;
        axis_add(&final->axis, fmax(low, lowest));
        axis_add(&final->axis, fmin(high, seeds.high + span));
    }
    axis_finish(&final->axis, logarithmic);
}

static void layout(struct final *final, const struct figure *figure, struct canvas *canvas)
{
    double names = 0, notes = 0, rows = 0;
    for (size_t i = 0; i < final->count; i++) {
        names = fmax(names, TEXT_SIZE * plot_text_widest(final->rows[i].name));
        notes = fmax(notes, TEXT_SIZE * plot_text_widest(final->rows[i].note));
        rows += final->rows[i].height;
    }
    canvas->left = 40;
    canvas_title(canvas, figure);
    canvas->left = 40 + names + 24;
    canvas->right = CANVAS_WIDTH - 40 - notes - 24;
    double spare = rows < SMALLEST_ROWS ? (SMALLEST_ROWS - rows) / (double) final->count : 0;
    double y = canvas->top;
    for (size_t i = 0; i < final->count; i++) {
        struct row *row = &final->rows[i];
        row->top = y;
        row->height += spare;
        double centre = y + row->height / 2;
        double name_first = centre - TEXT_HEIGHT * (double)(plot_text_lines(row->name) - 1) / 2;
        double note_first = centre - TEXT_HEIGHT * (double)(plot_text_lines(row->note) - 1) / 2;
        canvas_text(canvas, row->name, canvas->left - 24, name_first, TEXT_SIZE, true, false);
        canvas_text(canvas, row->note, canvas->right + 24, note_first, TEXT_SIZE, false, false);
        y += row->height;
    }
    canvas->bottom = y;
}

static void footer_place(const struct final *final, const struct figure *figure, struct canvas *canvas)
{
    char text[2048] = "";
    const char *lower = figure->rules.higher ? "worse" : "better";
    FILE *out = fmemopen(text, sizeof text, "w");
    if (!out)
        abort();
    size_t most = 0;
    for (size_t i = 0; i < final->count; i++)
        most = final->rows[i].sample.n > most ? final->rows[i].sample.n : most;
    if (most > 1 && final->differences)
        fprintf(
            out,
            "Circles: each seed's last value minus the baseline's of the same seed; left of 0 is lower, %s. "
            "Filled mark, bar and \xc2\xb1: mean and its %g %% t interval. Grey: within the margin of %g. Verdicts: "
            "p adjusted by Holm over this figure, alpha %g.",
            lower, 100 * (1 - figure->rules.alpha), figure->rules.margin, figure->rules.alpha);
    else if (most == 1 && final->differences)
        fprintf(out, "Mark: the one seed's last value minus the baseline's; left of 0 is lower, %s. No interval.",
                lower);
    else if (most > 1)
        fputs("Circles: each seed at its last step. Filled mark, bar and \xc2\xb1: mean and its 95 % t interval.", out);
    else if (most == 1)
        fputs("Mark: the one seed at its last step; no interval.", out);
    else
        fprintf(out, "Nothing to draw: no run has a final value of %s %s.", figure->metric,
                figure->logarithmic ? "above 0" : "that is a finite number");
    if (final->clipped)
        fputs(" Bars that reach an edge go on beyond it.", out);
    if (isfinite(final->reference) && final->baseline)
        fprintf(out,
                strcmp(final->baseline, "baseline") ? " Dashed line: mean of the baseline (%s)."
                                                    : " Dashed line: mean of the %s.",
                final->baseline);
    if (figure->data.unshown)
        fprintf(out, " %zu values at or below 0 are not on a logarithmic axis.", figure->data.unshown);
    fclose(out);
    canvas_footer(canvas, text, canvas->bottom + AXIS_HEIGHT);
}

/* Even steps, as many as have room for their numbers: gnuplot counts on a wider plot than long names leave. */
static void script_even_tics(FILE *script, const struct axis *axis, double room)
{
    enum { TIC_ROOM = 105 };
    double rough = (axis->high - axis->low) / fmax(2, floor(room / TIC_ROOM)), power = pow(10, floor(log10(rough)));
    double step = rough <= power ? power : rough <= 2 * power ? 2 * power : rough <= 5 * power ? 5 * power : 10 * power;
    const char *comma = "";
    fputs("value_tics = '", script);
    for (double i = ceil(axis->low / step); i * step <= axis->high; i++, comma = ", ")
        fprintf(script, "%s%.12g", comma, fabs(i) > 0 ? i * step : 0);
    fputs("'\n", script);
}

static void script_write(FILE *script, const struct final *final, struct figure *figure, const struct canvas *canvas)
{
    script_begin(script, figure, canvas, canvas->right - canvas->left, &final->axis);
    if (!figure->logarithmic)
        script_even_tics(script, &final->axis, canvas->right - canvas->left);
    fprintf(script, "x_low = %.17g; x_high = %.17g\n", final->axis.low, final->axis.high);
    fprintf(script, "nothing = %d\n", !final->axis.any);
    script_number(script, "reference", final->reference);
    script_number(script, "margin", final->differences ? figure->rules.margin : NAN);
    fprintf(script,
            "\n# A row a variant, counted from the top; y in pixels from the frame's lower edge.\n"
            "variants = %zu\narray color[variants]; array mark[variants]; array row_y[variants]\n",
            final->count);
    for (size_t i = 0; i < final->count; i++) {
        const struct row *row = &final->rows[i];
        fprintf(script, "color[%zu] = '#%06X'; mark[%zu] = %d; row_y[%zu] = %.1f\n", i + 1, row->look.color, i + 1,
                row->look.point, i + 1, canvas->bottom - row->top - row->height / 2);
    }
    fputc('\n', script);
}

static void data_write(FILE *data, const struct final *final, const struct figure *figure)
{
    fprintf(data, "%s\tlow\thigh\tn\trow\tseed\tvariant\n\n\n", figure->metric);
    for (size_t v = 0; v < final->count; v++) {
        const struct plot_variant *variant = &figure->data.variants[v];
        for (size_t r = 0; r < variant->run_count; r++) {
            double value = run_value(&variant->runs[r]);
            fprintf(data, isfinite(value) ? "%.17g" : "nan", value);
            fprintf(data, "\tnan\tnan\t%d\t%zu\t%lld\t%s\n", isfinite(value), v + 1, (long long)variant->runs[r].seed,
                    variant->label);
        }
    }
    fputs("\n\n", data);
    for (size_t v = 0; v < final->count; v++) {
        const struct row *row = &final->rows[v];
        bool any = row->sample.n > 0;
        fprintf(data, any ? "%.17g" : "nan", row->sample.mean);
        data_number(data, any ? row->sample.mean - row->half_width : NAN);
        data_number(data, any ? row->sample.mean + row->half_width : NAN);
        fprintf(data, "\t%zu\t%zu\tmean\t%s\n", row->sample.n, v + 1, figure->data.variants[v].label);
    }
}

/* Differences are judged together, as the table does. */
static void verdicts_make(struct final *final, const struct figure *figure)
{
    if (!final->differences)
        return;
    final->verdicts = memory_alloc(final->count, sizeof *final->verdicts);
    for (size_t v = 0; v < final->count; v++) {
        const struct plot_variant *variant = &figure->data.variants[v];
        double *values = memory_alloc(variant->run_count, sizeof *values);
        size_t n = 0;
        for (size_t r = 0; r < variant->run_count; r++)
            if (isfinite(run_value(&variant->runs[r])))
                values[n++] = run_value(&variant->runs[r]);
        final->verdicts[v].paired = paired_of(values, n, figure->rules.alpha);
        memory_free(values);
    }
    verdicts_set(final->verdicts, final->count, figure->rules);
}

static void figure_write(struct figure *figure, bool differences, FILE *data, FILE *script)
{
    struct final final = {.count = figure->data.variant_count, .reference = NAN, .differences = differences};
    struct canvas canvas = {0};
    struct look *looks = memory_alloc(final.count, sizeof *looks);
    final.rows = memory_alloc(final.count, sizeof *final.rows);
    looks_assign(&figure->data, looks);
    if (differences)
        final.reference = 0;
    verdicts_make(&final, figure);
    for (size_t v = 0; v < final.count; v++) {
        struct row *row = &final.rows[v];
        row->look = looks[v];
        row_measure(row, &figure->data.variants[v], differences ? figure->rules.alpha : 0.05);
        row_prepare(row, &figure->data.variants[v], differences ? &final.verdicts[v] : NULL, figure->logarithmic);
        if (figure->data.variants[v].baseline && row->sample.n) {
            final.reference = row->sample.mean;
            final.baseline = figure->data.variants[v].label;
        }
    }
    axis_set(&final, &figure->data, figure->logarithmic, figure->rules.margin);
    layout(&final, figure, &canvas);
    footer_place(&final, figure, &canvas);
    data_write(data, &final, figure);
    script_write(script, &final, figure, &canvas);
    for (size_t v = 0; v < final.count; v++) {
        memory_free(final.rows[v].name);
        memory_free(final.rows[v].note);
    }
    memory_free(final.rows);
    memory_free(final.verdicts);
    memory_free(looks);
    canvas_release(&canvas);
}

void figure_write_final(struct figure *figure, FILE *data, FILE *script)
{
    figure_write(figure, false, data, script);
}

void figure_write_differences(struct figure *figure, FILE *data, FILE *script)
{
    figure_write(figure, true, data, script);
}
