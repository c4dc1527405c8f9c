/* Canvas, looks, axes and script settings that all figures share. */
#include "runner/plot_figure.h"

#include <math.h>
#include <string.h>

#include "core/memory.h"
#include "runner/plot_text.h"

void canvas_release(struct canvas *canvas)
{
    for (size_t i = 0; i < canvas->text_count; i++)
        memory_free(canvas->texts[i].text);
    memory_free(canvas->texts);
}

double canvas_text(struct canvas *canvas, const char *text, double x, double y, double size, bool ends, bool grey)
{
    char *copy = memory_copy_text(text), *rest = copy;
    for (char *line; (line = strsep(&rest, "\n"));) {
        size_t bytes = canvas->text_count * sizeof *canvas->texts;
        canvas->texts = memory_grow(canvas->texts, bytes, canvas->text_count + 1, sizeof *canvas->texts);
        canvas->texts[canvas->text_count++] = (struct placed_text){memory_copy_text(line), x, y, size, ends, grey};
        y += size * TEXT_HEIGHT / TEXT_SIZE;
    }
    memory_free(copy);
    return y;
}

/* The first lines of a text; what does not fit ends in an ellipsis. */
static void lines_limit(char *wrapped, size_t lines)
{
    char *end = wrapped;
    for (size_t i = 0; i < lines; i++) {
        end = strchr(i ? end + 1 : end, '\n');
        if (!end)
            return;
    }
    size_t cut = (size_t)(end - wrapped);
    while (cut > 3 && ((unsigned char)wrapped[cut - 3] & 0xc0) == 0x80)
        cut--;
    if (cut > 3)
        memcpy(wrapped + cut - 3, "\xe2\x80\xa6", 3);
    wrapped[cut] = 0;
}

void canvas_title(struct canvas *canvas, const struct figure *figure)
{
    enum { TITLE_SIZE = 31, SUBTITLE_SIZE = 23 };
    double room = CANVAS_WIDTH - canvas->left - 40;
    char *title = plot_text_wrap(figure->title, room / TITLE_SIZE);
    char *subtitle = plot_text_wrap(figure->subtitle, room / SUBTITLE_SIZE);
    lines_limit(title, 3);
    double y = canvas_text(canvas, title, canvas->left, 38, TITLE_SIZE, false, false);
    y = canvas_text(canvas, subtitle, canvas->left, y, SUBTITLE_SIZE, false, true);
    canvas->top = y + 6;
    memory_free(title);
    memory_free(subtitle);
}

void canvas_footer(struct canvas *canvas, const char *footer, double y)
{
    enum { FOOTER_SIZE = 20, MARGIN = 40 };
    char *wrapped = plot_text_wrap(footer, (CANVAS_WIDTH - 2 * MARGIN) / (double)FOOTER_SIZE);
    canvas->height = canvas_text(canvas, wrapped, MARGIN, y, FOOTER_SIZE, false, true) + 4;
    memory_free(wrapped);
}

void looks_assign(const struct plot_data *data, struct look *looks)
{
    static const unsigned colors[] = {0x0072B2, 0xD55E00, 0x009E73, 0xCC79A7, 0xE69F00, 0x56B4E9, 0xF0E442};
    static const int points[] = {5, 9, 13, 11, 15};
    enum { COLORS = sizeof colors / sizeof *colors, POINTS = sizeof points / sizeof *points };
    size_t next = 0;
    for (size_t v = 0; v < data->variant_count; v++) {
        looks[v] = (struct look){0x000000, 1, 7};
        if (data->variants[v].baseline)
            continue;
        looks[v] = (struct look){colors[next % COLORS], 1 + (int)(next / COLORS % 5), points[next % POINTS]};
        next++;
    }
}

void labels_spread(double *centres, const double *heights, size_t count, double top, double bottom)
{
    size_t *order = memory_alloc(count, sizeof *order);
    for (size_t i = 0; i < count; i++) {
        size_t j = i;
        for (; j > 0 && centres[order[j - 1]] > centres[i]; j--)
            order[j] = order[j - 1];
        order[j] = i;
    }
    double edge = top;
    for (size_t i = 0; i < count; i++) {
        size_t label = order[i];
        centres[label] = fmax(centres[label], edge + heights[label] / 2);
        edge = centres[label] + heights[label] / 2;
    }
    edge = bottom;
    for (size_t i = count; i-- > 0;) {
        size_t label = order[i];
        centres[label] = fmin(centres[label], edge - heights[label] / 2);
        edge = centres[label] - heights[label] / 2;
    }
    memory_free(order);
}

void axis_add(struct axis *axis, double value)
{
    if (!isfinite(value))
        return;
    axis->low = axis->any ? fmin(axis->low, value) : value;
    axis->high = axis->any ? fmax(axis->high, value) : value;
    axis->any = true;
}

void axis_finish(struct axis *axis, bool logarithmic)
{
    if (!axis->any) {
        *axis = (struct axis){logarithmic ? 1 : 0, logarithmic ? 10 : 1, false};
        return;
    }
    if (logarithmic) {
        double ratio = axis->high > axis->low ? pow(axis->high / axis->low, 0.04) : 1.1;
        axis->low /= ratio;
        axis->high *= ratio;
        return;
    }
    double span = axis->high - axis->low;
    double margin = span > 0 ? 0.04 * span : axis->high != 0 ? 0.05 * fabs(axis->high) : 1;
    axis->low -= margin;
    axis->high += margin;
}

double axis_fraction(const struct axis *axis, bool logarithmic, double value)
{
    if (logarithmic)
        return log(value / axis->low) / log(axis->high / axis->low);
    return (value - axis->low) / (axis->high - axis->low);
}

void script_text(FILE *script, const char *name, const char *text)
{
    fprintf(script, "%s = ", name);
    plot_text_quote(script, text);
    fputc('\n', script);
}

void script_number(FILE *script, const char *name, double value)
{
    if (isfinite(value))
        fprintf(script, "%s = %.17g\n", name, value);
    else
        fprintf(script, "%s = NaN\n", name);
}

void data_number(FILE *data, double value)
{
    if (isfinite(value))
        fprintf(data, "\t%.17g", value);
    else
        fputs("\tnan", data);
}

/* name = what PNG and PDF can draw of the text, when that is not all of it. */
static void script_drawable(FILE *script, struct figure *figure, const char *name, const char *text)
{
    if (plot_text_common(text))
        return;
    if (!*figure->fonts)
        *figure->fonts = plot_fonts_create();
    char *drawable = plot_text_drawable(*figure->fonts, text);
    if (drawable)
        script_text(script, name, drawable);
    figure->replaced = figure->replaced || drawable;
    memory_free(drawable);
}

static void script_texts(FILE *script, struct figure *figure, const struct canvas *canvas)
{
    fprintf(script,
            "texts = %zu\narray words[texts]; array text_x[texts]; array text_y[texts]; array text_size[texts]\n"
            "array text_ends[texts]; array text_color[texts]; array plain[texts]\n",
            canvas->text_count);
    for (size_t i = 0; i < canvas->text_count; i++) {
        const struct placed_text *text = &canvas->texts[i];
        fprintf(script, "words[%zu] = ", i + 1);
        plot_text_quote(script, text->text);
        fprintf(script, "; text_x[%zu] = %.1f; text_y[%zu] = %.1f; text_size[%zu] = %g", i + 1, text->x, i + 1,
                canvas->height - text->y, i + 1, text->size);
        fprintf(script, "; text_ends[%zu] = %d; text_color[%zu] = '%s'\n", i + 1, text->ends, i + 1,
                text->grey ? "#505050" : "#000000");
    }
    fputs("do for [i = 1:texts] { plain[i] = words[i] }\n", script);
    for (size_t i = 0; i < canvas->text_count; i++) {
        char name[32];
        snprintf(name, sizeof name, "plain[%zu]", i + 1);
        script_drawable(script, figure, name, canvas->texts[i].text);
    }
    fputc('\n', script);
}

/* gnuplot labels whole decades alone: below two of them some of 1 to 9 in each decade, or even steps where those
 * are too few. "" leaves it to gnuplot. */
static void script_tics(FILE *script, const struct axis *axis, bool logarithmic)
{
    static const double leads[] = {1, 2, 3, 4, 5, 6, 8};
    enum { LEADS = sizeof leads / sizeof *leads };
    fputs("value_tics = '", script);
    double ratio = logarithmic ? axis->high / axis->low : INFINITY;
    const char *comma = "";
    if (ratio < 3) {
        double rough = (axis->high - axis->low) / 6, power = pow(10, floor(log10(rough)));
        double step = rough / power < 1.5 ? power : rough / power < 3.5 ? 2 * power : 5 * power;
        double first = ceil(axis->low / step);
        for (int i = 0; i < 12 && (first + i) * step <= axis->high; i++, comma = ", ")
            fprintf(script, "%s%.12g", comma, (first + i) * step);
    } else if (ratio < 50) {
        int begin = (int)floor(log10(axis->low));
        for (int i = 0; i < 3 * LEADS; i++) {
            int exponent = begin + i / LEADS;
            double tic = leads[i % LEADS] * pow(10, exponent);
            if (tic < axis->low || tic > axis->high)
                continue;
            fprintf(script, "%s%.12g", comma, tic);
            comma = ", ";
        }
    }
    fputs("'\n", script);
}

void script_begin(FILE *script, struct figure *figure, const struct canvas *canvas, double value_room,
                  const struct axis *value)
{
    fprintf(script,
            "# %s.png and .svg from %s.tsv:  gnuplot %s.gp\n"
            "# One format, also pdf:  gnuplot -e \"formats='pdf'\" %s.gp\n"
            "# Texts, colours and places are below, in pixels of the canvas from its lower left corner.\n\n",
            figure->name, figure->name, figure->name, figure->name);
    script_text(script, "name", figure->name);
    script_text(script, "value_label", figure->value_label);
    fputs("value_plain = value_label\n", script);
    script_drawable(script, figure, "value_plain", figure->value_label);
    fprintf(script, "logarithmic = %d\n", figure->logarithmic);
    fprintf(script, "width = %d; height = %.0f\n", CANVAS_WIDTH, canvas->height);
    fprintf(script, "left = %.1f; right = %.1f; top = %.1f; bottom = %.1f\n", canvas->left, canvas->right,
            canvas->height - canvas->top, canvas->height - canvas->bottom);
    double label_width = plot_text_width(figure->value_label);
    script_tics(script, value, figure->logarithmic);
    fprintf(script, "value_size = %.1f\n\n", fmin(TEXT_SIZE, fmax(10, value_room / label_width)));
    script_texts(script, figure, canvas);
}
