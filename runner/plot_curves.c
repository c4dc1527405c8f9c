/* The curves of a figure: mean, band and seeds of every variant, labelled where the lines end. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "runner/plot_figure.h"
#include "runner/plot_text.h"

enum { MOST_POINTS = 1000, FEW_POINTS = 40, SAMPLE = 80, LABEL_WIDTH = 430, LEGEND_PLOT_HEIGHT = 640 };

struct curve {
    struct plot_mean *line;
    size_t count;
    struct look look;
    char *label; /* wrapped, with the status as lines of its own */
    double width, height;
    double end_x, end_y; /* last point of the line; not a number: nothing is drawn */
    double sample_x, sample_y;
};

struct curves {
    struct curve *items;
    size_t count;
    struct axis x, y;
    size_t thinned;       /* neighbouring points that became one */
    size_t most_points;   /* of one line */
    size_t fewest, most;  /* seeds in a mean */
    bool crosses, beyond; /* a diverged run is shown; its end is above the axis */
    bool direct;          /* labels at the line ends */
    const char *x_label;
    double x_unit;
};

static void curve_prepare(struct curves *curves, struct curve *curve, struct plot_variant *variant,
                          const struct figure *figure)
{
    curve->line = plot_mean_of(variant, figure->smooth, &curve->count);
    size_t k = plot_mean_thin(curve->line, &curve->count, MOST_POINTS);
    curves->thinned = k > curves->thinned ? k : curves->thinned;
    for (size_t r = 0; r < variant->run_count; r++) {
        k = plot_run_thin(&variant->runs[r], MOST_POINTS);
        curves->thinned = k > curves->thinned ? k : curves->thinned;
    }
    for (size_t i = 0; i < curve->count; i++) {
        size_t n = curve->line[i].n;
        curves->fewest = curves->fewest && curves->fewest < n ? curves->fewest : n;
        curves->most = curves->most > n ? curves->most : n;
    }
    if (curve->count > curves->most_points)
        curves->most_points = curve->count;
}

/* Limits come from runs that did not diverge: one that goes to 1e30 on its way would flatten all others. When all
 * diverged, twice their highest first value bounds the axis. */
static void axes_set(struct curves *curves, const struct figure *figure)
{
    struct axis diverged = {0};
    double bound = -INFINITY;
    for (size_t v = 0; v < figure->data.variant_count; v++) {
        const struct plot_variant *variant = &figure->data.variants[v];
        for (size_t r = 0; r < variant->run_count; r++) {
            const struct plot_run *run = &variant->runs[r];
            if (run->finite)
                bound = fmax(bound, 2 * fabs(run->points[0].value));
            for (size_t i = 0; i < run->count; i++) {
                if (!isfinite(run->points[i].value))
                    continue;
                axis_add(&curves->x, run->points[i].x);
                axis_add(run->diverged ? &diverged : &curves->y, run->points[i].value);
            }
        }
    }
    if (!curves->y.any && diverged.any) {
        curves->y = diverged;
        curves->y.high = fmax(curves->y.low, fmin(curves->y.high, bound));
    }
    axis_finish(&curves->y, figure->logarithmic);
    if (!curves->x.any)
        axis_finish(&curves->x, false);
    else if (curves->x.high <= curves->x.low)
        curves->x = (struct axis){curves->x.low - 1, curves->x.high + 1, true};
}

/* Units of the x axis that keep its numbers short. */
static void x_unit_set(struct curves *curves, const char *x)
{
    double high = curves->x.high;
    curves->x_label = "training step";
    curves->x_unit = 1;
    if (strcmp(x, "tokens") == 0) {
        curves->x_unit = high >= 2e9 ? 1e9 : high >= 2e6 ? 1e6 : high >= 2e3 ? 1e3 : 1;
        curves->x_label = high >= 2e9   ? "training tokens (billions)"
                          : high >= 2e6 ? "training tokens (millions)"
                          : high >= 2e3 ? "training tokens (thousands)"
                                        : "training tokens";
    } else if (strcmp(x, "seconds") == 0) {
        curves->x_unit = high >= 2e4 ? 3600 : high >= 600 ? 60 : 1;
        curves->x_label = high >= 2e4   ? "training time (hours)"
                          : high >= 600 ? "training time (minutes)"
                                        : "training time (seconds)";
    } else if (strcmp(x, "flops") == 0) {
        static const char *const labels[] = {"training FLOPs", "training FLOPs (1e9)", "training FLOPs (1e12)",
                                             "training FLOPs (1e15)", "training FLOPs (1e18)"};
        static const double units[] = {1, 1e9, 1e12, 1e15, 1e18};
        int unit = 0;
        while (unit < 4 && high >= 2 * units[unit + 1])
            unit++;
        curves->x_unit = units[unit];
        curves->x_label = labels[unit];
    }
}

/* Where the label's leader starts: the end of the mean, else of the longest single run. */
static void curve_end_set(struct curves *curves, struct curve *curve, const struct plot_variant *variant, bool smooth)
{
    curve->end_x = curve->end_y = NAN;
    if (curve->count) {
        const struct plot_mean *last = &curve->line[curve->count - 1];
        curve->end_x = last->x;
        curve->end_y = smooth ? last->smoothed : last->value;
    }
    for (size_t r = 0; r < variant->run_count; r++) {
        const struct plot_run *run = &variant->runs[r];
        curves->crosses = curves->crosses || (run->diverged && run->finite);
        for (size_t i = run->count; !curve->count && i-- > 0;) {
            if (!isfinite(run->points[i].value))
                continue;
            if (!(curve->end_x > run->points[i].x)) {
                curve->end_x = run->points[i].x;
                curve->end_y = run->points[i].value;
            }
            break;
        }
    }
    curve->end_y = isnan(curve->end_y) ? NAN : fmax(curves->y.low, fmin(curves->y.high, curve->end_y));
}

static void curve_label_set(struct curve *curve, const struct plot_variant *variant, bool logarithmic, double width)
{
    char status[PLOT_STATUS_SIZE];
    plot_variant_status(variant, logarithmic, status);
    memory_free(curve->label);
    char *label = plot_text_wrap(variant->label, width / TEXT_SIZE);
    char *note = plot_text_wrap(status, width / TEXT_SIZE);
    size_t size = strlen(label) + strlen(note) + 4;
    curve->label = memory_alloc(size, 1);
    snprintf(curve->label, size, *note ? "%s\n(%s)" : "%s", label, note);
    curve->width = TEXT_SIZE * plot_text_widest(curve->label);
    curve->height = TEXT_HEIGHT * (double)plot_text_lines(curve->label);
    memory_free(label);
    memory_free(note);
}

static double labels_height(const struct curves *curves)
{
    double height = 0;
    for (size_t i = 0; i < curves->count; i++)
        height += curves->items[i].height;
    return height;
}

static double labels_width(const struct curves *curves)
{
    double width = 0;
    for (size_t i = 0; i < curves->count; i++)
        width = fmax(width, curves->items[i].width);
    return width;
}

static void curve_label_place(struct canvas *canvas, struct curve *curve, double x, double centre)
{
    double first = centre - (curve->height - TEXT_HEIGHT) / 2;
    curve->sample_x = x;
    curve->sample_y = centre;
    canvas_text(canvas, curve->label, x + SAMPLE + 14, first, TEXT_SIZE, false, false);
}

static void labels_place_direct(struct curves *curves, struct canvas *canvas, bool logarithmic)
{
    double *centres = memory_alloc(curves->count, sizeof *centres);
    double *heights = memory_alloc(curves->count, sizeof *heights);
    double plot_height = canvas->bottom - canvas->top;
    for (size_t i = 0; i < curves->count; i++) {
        const struct curve *curve = &curves->items[i];
        double fraction = isnan(curve->end_y) ? 0 : axis_fraction(&curves->y, logarithmic, curve->end_y);
        centres[i] = canvas->bottom - fraction * plot_height;
        heights[i] = curve->height + 4;
    }
    labels_spread(centres, heights, curves->count, canvas->top, canvas->bottom);
    for (size_t i = 0; i < curves->count; i++)
        curve_label_place(canvas, &curves->items[i], canvas->right + 60, centres[i]);
    memory_free(centres);
    memory_free(heights);
}

/* In columns below the plot, read downwards. Returns the y below. */
static double labels_place_below(struct curves *curves, struct canvas *canvas, double y)
{
    double room = canvas->right - 40, column = labels_width(curves) + SAMPLE + 14 + 36;
    size_t columns = (size_t)fmax(1, floor(room / column));
    size_t rows = (curves->count + columns - 1) / columns;
    double lowest = y;
    for (size_t i = 0; i < curves->count; i += rows) {
        size_t index = i / rows;
        double at = y, x = 40 + (double)index * column;
        for (size_t j = i; j < i + rows && j < curves->count; j++) {
            struct curve *curve = &curves->items[j];
            curve_label_place(canvas, curve, x, at + curve->height / 2);
            at += curve->height + 4;
        }
        lowest = fmax(lowest, at);
    }
    return lowest;
}

static const char *blocks_text(int64_t blocks, char buf[32])
{
    snprintf(buf, 32, blocks ? "up to %lld" : "all", (long long)blocks);
    return buf;
}

static void footer_write(FILE *out, const struct curves *curves, const struct figure *figure)
{
    char seeds[64], last[32], before[32];
    const char *band = curves->fewest > 2  ? "95 % t interval of the mean"
                       : curves->most == 2 ? "from the one seed to the other"
                                           : "95 % t interval of the mean; of two seeds, from the one to the other";
    if (curves->fewest == curves->most)
        snprintf(seeds, sizeof seeds, "%zu", curves->most);
    else
        snprintf(seeds, sizeof seeds, "%zu to %zu", curves->fewest, curves->most);
    if (curves->most > 1)
        fprintf(out, "Line: mean of %s seeds; band: %s; faint: each seed.", seeds, band);
    else if (curves->most == 1)
        fputs("One seed each: no band.", out);
    if (curves->most && figure->data.blocks != figure->data.final_blocks)
        fprintf(out, " The last point is of %s blocks of text, those before it of %s.",
                blocks_text(figure->data.final_blocks, last), blocks_text(figure->data.blocks, before));
    if (curves->crosses)
        fprintf(out, " Cross: last value of a run that diverged%s; it is in no mean.",
                curves->beyond ? " (at the edge: beyond the axis)" : "");
    if (figure->smooth > 1 && curves->most)
        fprintf(out,
                " Bold: the mean smoothed by a debiased exponential average with factor %.6g (%lld points), drawn "
                "over the raw mean.",
                1 - 1 / (double)figure->smooth, (long long)figure->smooth);
    if (curves->thinned > 1)
        fprintf(out, " A point stands for up to %zu neighbouring values (their mean).", curves->thinned);
    if (curves->most_points == 1)
        fputs(" One step only: a point each, no curve.", out);
    if (figure->data.unshown)
        fprintf(out, " %zu values at or below 0 are not on a logarithmic axis.", figure->data.unshown);
}

static double footer_place(const struct curves *curves, const struct figure *figure, struct canvas *canvas, double y)
{
    char text[1024] = "";
    FILE *out = fmemopen(text, sizeof text, "w");
    if (!out)
        abort();
    footer_write(out, curves, figure);
    fclose(out);
    canvas_footer(canvas, text, y);
    return canvas->height;
}

static void layout(struct curves *curves, const struct figure *figure, struct canvas *canvas)
{
    enum { AXIS_HEIGHT = 150 };
    canvas->left = 150;
    canvas_title(canvas, figure);
    size_t titles = canvas->text_count;
    double below = footer_place(curves, figure, canvas, 0); /* tried at 0 for its height, then put where it belongs */
    while (canvas->text_count > titles)
        memory_free(canvas->texts[--canvas->text_count].text);
    canvas->bottom = CANVAS_HEIGHT - below - AXIS_HEIGHT;
    double spare = 4 * (double)curves->count;
    curves->direct = labels_height(curves) + spare <= canvas->bottom - canvas->top;
    if (curves->direct) {
        canvas->right = CANVAS_WIDTH - 60 - SAMPLE - 14 - labels_width(curves) - 16;
        labels_place_direct(curves, canvas, figure->logarithmic);
        footer_place(curves, figure, canvas, canvas->bottom + AXIS_HEIGHT);
        return;
    }
    for (size_t v = 0; v < curves->count; v++)
        curve_label_set(&curves->items[v], &figure->data.variants[v], figure->logarithmic, 2 * LABEL_WIDTH);
    canvas->right = CANVAS_WIDTH - 40;
    canvas->bottom = canvas->top + LEGEND_PLOT_HEIGHT;
    double y = labels_place_below(curves, canvas, canvas->bottom + AXIS_HEIGHT);
    footer_place(curves, figure, canvas, y + 24);
}

static void nothing_place(const struct curves *curves, const struct figure *figure, struct canvas *canvas)
{
    if (curves->y.any)
        return;
    char text[160];
    snprintf(text, sizeof text, "Nothing to draw: no run has a value of %s %s.", figure->metric,
             figure->logarithmic ? "above 0" : "that is a finite number");
    double room = canvas->right - canvas->left;
    char *wrapped = plot_text_wrap(text, (room - 40) / TEXT_SIZE);
    canvas_text(canvas, wrapped, canvas->left + 24, (canvas->top + canvas->bottom) / 2, TEXT_SIZE, false, false);
    memory_free(wrapped);
}

static void script_write(FILE *script, const struct curves *curves, struct figure *figure, const struct canvas *canvas)
{
    script_begin(script, figure, canvas, canvas->bottom - canvas->top, &curves->y);
    script_text(script, "x_label", curves->x_label);
    script_number(script, "x_unit", curves->x_unit);
    fprintf(script, "x_low = %.17g; x_high = %.17g\n", curves->x.low / curves->x_unit, curves->x.high / curves->x_unit);
    fprintf(script, "y_low = %.17g; y_high = %.17g\n", curves->y.low, curves->y.high);
    fprintf(script, "nothing = %d; smooth = %d; marks = %d; leaders = %d; sample = %d\n\n", !curves->y.any,
            figure->smooth > 1, curves->most_points <= FEW_POINTS, curves->direct, SAMPLE);
    fprintf(script,
            "variants = %zu\narray color[variants]; array faint[variants]; array dash[variants]; array mark[variants]\n"
            "array sample_x[variants]; array sample_y[variants]; array end_x[variants]; array end_y[variants]\n",
            curves->count);
    for (size_t i = 0; i < curves->count; i++) {
        const struct curve *curve = &curves->items[i];
        size_t n = i + 1;
        fprintf(script, "color[%zu] = '#%06X'; faint[%zu] = '#%02X%06X'; dash[%zu] = %d; mark[%zu] = %d", n,
                curve->look.color, n,
                !curve->count      ? 0x40
                : curves->most > 8 ? 0xD0
                                   : 0x90,
                curve->look.color, n, curve->look.dash, n, curve->look.point);
        fprintf(script, "; sample_x[%zu] = %.1f; sample_y[%zu] = %.1f", n, curve->sample_x, n,
                canvas->height - curve->sample_y);
        if (isnan(curve->end_y))
            fprintf(script, "; end_x[%zu] = NaN; end_y[%zu] = NaN\n", n, n);
        else
            fprintf(script, "; end_x[%zu] = %.17g; end_y[%zu] = %.17g\n", n, curve->end_x / curves->x_unit, n,
                    curve->end_y);
    }
    fputc('\n', script);
}

/* A block that is never empty, as blocks are counted. */
static void block_end(FILE *data, const char *what, const char *label, bool empty)
{
    if (empty)
        fprintf(data, "nan\tnan\tnan\tnan\tnan\tnan\t%s\t%s\n", what, label);
    fputs("\n\n", data);
}

static void point_write(FILE *data, double x, double value, double low, double high, size_t n, double smoothed)
{
    fprintf(data, "%.17g", x);
    data_number(data, value);
    data_number(data, low);
    data_number(data, high);
    fprintf(data, "\t%zu", n);
    data_number(data, smoothed);
}

static void runs_write(FILE *data, const struct plot_variant *variant)
{
    size_t written = 0;
    for (size_t r = 0; r < variant->run_count; r++) {
        const struct plot_run *run = &variant->runs[r];
        if (written && run->count)
            fputc('\n', data);
        for (size_t i = 0; i < run->count; i++, written++) {
            point_write(data, run->points[i].x, run->points[i].value, NAN, NAN, 1, NAN);
            fprintf(data, "\t%lld\t%s\n", (long long)run->seed, variant->label);
        }
    }
    block_end(data, "seed", variant->label, written == 0);
}

static void crosses_write(FILE *data, const struct plot_variant *variant, const struct axis *axis, bool *beyond)
{
    size_t written = 0;
    for (size_t r = 0; r < variant->run_count; r++) {
        const struct plot_run *run = &variant->runs[r];
        size_t last = run->count;
        while (last > 0 && !isfinite(run->points[last - 1].value))
            last--;
        if (!run->diverged || last == 0)
            continue;
        point_write(data, run->points[last - 1].x, run->points[last - 1].value, NAN, NAN, 1, NAN);
        fprintf(data, "\tdiverged\t%s\n", variant->label);
        *beyond = *beyond || run->points[last - 1].value > axis->high || run->points[last - 1].value < axis->low;
        written++;
    }
    block_end(data, "diverged", variant->label, written == 0);
}

static void data_write(FILE *data, struct curves *curves, const struct figure *figure)
{
    fprintf(data, "%s\t%s\tlow\thigh\tn\tsmoothed\tseed\tvariant\n\n\n", figure->x, figure->metric);
    for (size_t v = 0; v < curves->count; v++) {
        const struct curve *curve = &curves->items[v];
        const struct plot_variant *variant = &figure->data.variants[v];
        for (size_t i = 0; i < curve->count; i++) {
            const struct plot_mean *mean = &curve->line[i];
            point_write(data, mean->x, mean->value, mean->low, mean->high, mean->n, mean->smoothed);
            fprintf(data, "\tmean\t%s\n", variant->label);
        }
        block_end(data, "mean", variant->label, curve->count == 0);
        runs_write(data, variant);
        crosses_write(data, variant, &curves->y, &curves->beyond);
    }
}

void figure_write_curves(struct figure *figure, FILE *data, FILE *script)
{
    struct curves curves = {.count = figure->data.variant_count};
    struct canvas canvas = {0};
    struct look *looks = memory_alloc(curves.count, sizeof *looks);
    curves.items = memory_alloc(curves.count, sizeof *curves.items);
    looks_assign(&figure->data, looks);
    for (size_t v = 0; v < curves.count; v++) {
        curves.items[v].look = looks[v];
        curve_prepare(&curves, &curves.items[v], &figure->data.variants[v], figure);
    }
    axes_set(&curves, figure);
    x_unit_set(&curves, figure->x);
    for (size_t v = 0; v < curves.count; v++) {
        curve_end_set(&curves, &curves.items[v], &figure->data.variants[v], figure->smooth > 1);
        curve_label_set(&curves.items[v], &figure->data.variants[v], figure->logarithmic, LABEL_WIDTH);
    }
    data_write(data, &curves, figure);
    layout(&curves, figure, &canvas);
    nothing_place(&curves, figure, &canvas);
    script_write(script, &curves, figure, &canvas);
    for (size_t v = 0; v < curves.count; v++) {
        memory_free(curves.items[v].line);
        memory_free(curves.items[v].label);
    }
    memory_free(curves.items);
    memory_free(looks);
    canvas_release(&canvas);
}
