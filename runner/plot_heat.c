/* A heat map of two knobs: a cell a variant, coloured by its mean at the last step, its numbers written in it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "runner/plot_figure.h"
#include "runner/plot_text.h"
#include "runner/statistics.h"

enum { NAME_WIDTH = 360, HEADER = 56, CELL_LEAST = 120, CELL_MOST = 170 };

struct cell {
    size_t down, across;
    struct sample sample;
    size_t planned;
    char *text;
};

struct heat {
    struct cell *cells;
    size_t count;
    const char **down, **across; /* levels in the file's order */
    size_t down_count, across_count;
    double low, high; /* of the means; not a number: no cell has one */
    double cell_width, cell_height;
};

static size_t level_index(const char **levels, size_t *count, const char *level)
{
    for (size_t i = 0; i < *count; i++)
        if (strcmp(levels[i], level) == 0)
            return i;
    levels[*count] = level;
    return (*count)++;
}

static void cell_fill(struct cell *cell, const struct plot_variant *variant)
{
    char text[256], status[PLOT_STATUS_SIZE];
    double *values = memory_alloc(variant->run_count, sizeof *values);
    size_t n = 0;
    for (size_t r = 0; r < variant->run_count; r++) {
        const struct plot_run *run = &variant->runs[r];
        if (run->count && isfinite(run->points[run->count - 1].value))
            values[n++] = run->points[run->count - 1].value;
    }
    cell->sample = sample_of(values, n);
    cell->planned = variant->run_count;
    memory_free(values);
    plot_variant_status(variant, false, status);
    if (n == 0)
        snprintf(text, sizeof text, "%s", *status ? status : "no values");
    else if (n == 1)
        snprintf(text, sizeof text, "%.4f\nn = 1 of %zu", cell->sample.mean, cell->planned);
    else
        snprintf(text, sizeof text, "%.4f\nsd %.4f\nn = %zu of %zu", cell->sample.mean, cell->sample.sd, n,
                 cell->planned);
    cell->text = memory_copy_text(text);
}

static void heat_make(struct heat *heat, const struct plot_data *data)
{
    heat->count = data->variant_count;
    heat->cells = memory_alloc(heat->count, sizeof *heat->cells);
    heat->down = memory_alloc(heat->count, sizeof *heat->down);
    heat->across = memory_alloc(heat->count, sizeof *heat->across);
    heat->low = heat->high = NAN;
    for (size_t v = 0; v < heat->count; v++) {
        const struct plot_variant *variant = &data->variants[v];
        struct cell *cell = &heat->cells[v];
        cell->down = level_index(heat->down, &heat->down_count, variant->down);
        cell->across = level_index(heat->across, &heat->across_count, variant->across);
        cell_fill(cell, variant);
        heat->low = fmin(heat->low, cell->sample.mean);
        heat->high = fmax(heat->high, cell->sample.mean);
    }
}

static void heat_release(struct heat *heat)
{
    for (size_t i = 0; i < heat->count; i++)
        memory_free(heat->cells[i].text);
    memory_free(heat->cells);
    memory_free(heat->down);
    memory_free(heat->across);
}

/* Between a pale and a middle blue, on both of which black is readable; white without a value. */
static unsigned cell_color(const struct heat *heat, const struct cell *cell)
{
    static const unsigned pale[] = {0xF3, 0xF7, 0xFC}, deep[] = {0x7F, 0xB4, 0xDC};
    if (isnan(cell->sample.mean))
        return 0xFFFFFF;
    double span = heat->high - heat->low, depth = span > 0 ? (heat->high - cell->sample.mean) / span : 0.5;
    unsigned color = 0;
    for (int i = 0; i < 3; i++)
        color = color << 8 | (unsigned)lround(pale[i] + depth * ((double)deep[i] - pale[i]));
    return color;
}

/* The lines of a text, centred at (x, y). */
static void text_centre(struct canvas *canvas, const char *text, double x, double y, double size)
{
    double height = TEXT_HEIGHT * size / TEXT_SIZE;
    char *copy = memory_copy_text(text), *rest = copy;
    y -= height * (double)(plot_text_lines(text) - 1) / 2;
    for (char *line; (line = strsep(&rest, "\n")); y += height)
        canvas_text(canvas, line, x - size * plot_text_width(line) / 2, y, size, false, false);
    memory_free(copy);
}

static char *level_label(const char *knob, const char *level, double width)
{
    const char *dot = strrchr(knob, '.');
    char text[512];
    snprintf(text, sizeof text, "%s=%s", dot ? dot + 1 : knob, level);
    return plot_text_wrap(text, width / TEXT_SIZE);
}

static void labels_place(const struct heat *heat, const struct plot_data *data, struct canvas *canvas)
{
    for (size_t i = 0; i < heat->across_count; i++) {
        char *label = level_label(data->across, heat->across[i], heat->cell_width - 8);
        double x = canvas->left + heat->cell_width * ((double)i + 0.5);
        text_centre(canvas, label, x, canvas->top - HEADER / 2.0, TEXT_SIZE);
        memory_free(label);
    }
    for (size_t i = 0; i < heat->down_count; i++) {
        char *label = level_label(data->down, heat->down[i], NAME_WIDTH);
        double y = canvas->top + heat->cell_height * ((double)i + 0.5);
        y -= TEXT_HEIGHT * (double)(plot_text_lines(label) - 1) / 2;
        canvas_text(canvas, label, canvas->left - 20, y, TEXT_SIZE, true, false);
        memory_free(label);
    }
}

static void cells_place(const struct heat *heat, struct canvas *canvas)
{
    double size = fmin(TEXT_SIZE, heat->cell_width / 8);
    for (size_t i = 0; i < heat->count; i++) {
        const struct cell *cell = &heat->cells[i];
        char *text = isnan(cell->sample.mean) ? plot_text_wrap(cell->text, (heat->cell_width - 8) / size)
                                              : memory_copy_text(cell->text);
        text_centre(canvas, text, canvas->left + heat->cell_width * ((double)cell->across + 0.5),
                    canvas->top + heat->cell_height * ((double)cell->down + 0.5), size);
        memory_free(text);
    }
}

static void layout(struct heat *heat, const struct figure *figure, struct canvas *canvas)
{
    double names = 0;
    size_t lines = 1;
    char footer[256];
    snprintf(footer, sizeof footer,
             "Each cell: mean over the seeds at the last step, their standard deviation, and how many of the planned "
             "seeds it is of. Darker is lower, %s.",
             figure->rules.higher ? "worse" : "better");
    canvas->left = 40;
    canvas_title(canvas, figure);
    for (size_t i = 0; i < heat->down_count; i++) {
        char *label = level_label(figure->data.down, heat->down[i], NAME_WIDTH);
        names = fmax(names, TEXT_SIZE * plot_text_widest(label));
        memory_free(label);
    }
    canvas->left = 40 + names + 20;
    canvas->right = CANVAS_WIDTH - 40;
    heat->cell_width = (canvas->right - canvas->left) / (double)heat->across_count;
    for (size_t i = 0; i < heat->across_count; i++) {
        char *label = level_label(figure->data.across, heat->across[i], heat->cell_width - 8);
        lines = plot_text_lines(label) > lines ? plot_text_lines(label) : lines;
        memory_free(label);
    }
    canvas->top += HEADER + TEXT_HEIGHT * (double)(lines - 1) / 2;
    heat->cell_height = fmax(CELL_LEAST, fmin(CELL_MOST, 640 / (double)heat->down_count));
    canvas->bottom = canvas->top + heat->cell_height * (double)heat->down_count;
    labels_place(heat, &figure->data, canvas);
    cells_place(heat, canvas);
    canvas_footer(canvas,
                  isnan(heat->low) ? "Nothing to colour: no run has a final value that is a finite number." : footer,
                  canvas->bottom + 40);
}

static void data_write(FILE *data, const struct heat *heat, const struct figure *figure)
{
    fprintf(data, "%s\tsd\tn\tplanned\t%s\t%s\tvariant\n\n\n", figure->metric, figure->data.down, figure->data.across);
    for (size_t i = 0; i < heat->count; i++) {
        const struct cell *cell = &heat->cells[i];
        fprintf(data, isfinite(cell->sample.mean) ? "%.17g" : "nan", cell->sample.mean);
        data_number(data, cell->sample.sd);
        fprintf(data, "\t%zu\t%zu\t%s\t%s\t%s\n", cell->sample.n, cell->planned, heat->down[cell->down],
                heat->across[cell->across], figure->data.variants[i].label);
    }
}

static void script_write(FILE *script, const struct heat *heat, struct figure *figure, const struct canvas *canvas)
{
    struct axis none = {0, 1, false};
    script_begin(script, figure, canvas, canvas->right - canvas->left, &none);
    fprintf(script, "cells = %zu; cell_width = %.1f; cell_height = %.1f\n", heat->count, heat->cell_width,
            heat->cell_height);
    fputs("array cell_left[cells]; array cell_bottom[cells]; array cell_color[cells]\n", script);
    for (size_t i = 0; i < heat->count; i++) {
        const struct cell *cell = &heat->cells[i];
        double bottom = canvas->top + heat->cell_height * (double)(cell->down + 1);
        fprintf(script, "cell_left[%zu] = %.1f; cell_bottom[%zu] = %.1f; cell_color[%zu] = '#%06X'\n", i + 1,
                canvas->left + heat->cell_width * (double)cell->across, i + 1, canvas->height - bottom, i + 1,
                cell_color(heat, cell));
    }
    fputc('\n', script);
}

void figure_write_heat(struct figure *figure, FILE *data, FILE *script)
{
    struct heat heat = {0};
    struct canvas canvas = {0};
    heat_make(&heat, &figure->data);
    layout(&heat, figure, &canvas);
    data_write(data, &heat, figure);
    script_write(script, &heat, figure, &canvas);
    heat_release(&heat);
    canvas_release(&canvas);
}
