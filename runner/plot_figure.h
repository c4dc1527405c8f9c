/* One figure: where everything stands on its canvas, and the script and data that draw it.
 *
 *        left                          right
 *   top  +-----------------------------+   sample text      texts are placed by us, line by line, in pixels of a
 *        |                             | / ----o-- label    canvas 1600 wide: gnuplot's own key neither wraps nor
 *        |  curves                     |<  ----o-- label    moves apart what would overlap
 *   bottom-----------------------------+
 *        x axis, legend (when it does not fit at the right), footer
 *
 * A script is: settings (written here, a line each), plots/style.gp, then the figure's own plots/<kind>.gp. */
#ifndef RUNNER_PLOT_FIGURE_H
#define RUNNER_PLOT_FIGURE_H

#include <stdint.h>
#include <stdio.h>

#include "runner/comparison.h"
#include "runner/plot_data.h"
#include "runner/plot_fonts.h"

struct figure {
    char *name;       /* of its files, without extension; safe */
    char *experiment; /* clean, as are the next three */
    char *title;
    char *value_label; /* "validation loss (bits per byte)" */
    char *subtitle;
    const char *metric, *x;
    bool logarithmic;
    int64_t smooth;
    struct comparison_rules rules; /* of the experiment */
    struct plot_data data;
    struct plot_fonts **fonts; /* made when a text first asks for them */
    bool replaced;             /* a text has characters that no font here has */
};

enum { CANVAS_WIDTH = 1600, CANVAS_HEIGHT = 1000, TEXT_SIZE = 24, TEXT_HEIGHT = 32 };

/* A line of text; y counts from the top to the line's middle. */
struct placed_text {
    char *text;
    double x, y, size;
    bool ends, grey; /* ends: x is where it ends */
};

struct canvas {
    double left, right, top, bottom, height;
    struct placed_text *texts;
    size_t text_count;
};

void canvas_release(struct canvas *canvas);

/* Each line of the text, the first at y. Returns the y below the last one. */
double canvas_text(struct canvas *canvas, const char *text, double x, double y, double size, bool ends, bool grey);

/* Title and subtitle: sets top. Footer: starts at y; sets height. */
void canvas_title(struct canvas *canvas, const struct figure *figure);
void canvas_footer(struct canvas *canvas, const char *footer, double y);

/* Colour-blind-safe: black for the baseline, seven of Okabe and Ito's colours for the others, then other dashes. */
struct look {
    unsigned color;
    int dash, point;
};
void looks_assign(const struct plot_data *data, struct look *looks);

/* Moves centres apart so that labels of these heights do not overlap and stay within [top, bottom], in the order of
 * where they would like to be. The heights together must fit. */
void labels_spread(double *centres, const double *heights, size_t count, double top, double bottom);

/* Axis limits around what was added, with a margin; a single value gets room. */
struct axis {
    double low, high;
    bool any;
};
void axis_add(struct axis *axis, double value);
void axis_finish(struct axis *axis, bool logarithmic);
/* Where the value lies between low (0) and high (1). */
double axis_fraction(const struct axis *axis, bool logarithmic, double value);

/* Settings every script starts with. value_room: pixels that the value's name has along its axis; value: that axis,
 * whose tics are ours when it is logarithmic and spans less than gnuplot has tics for. */
void script_begin(FILE *script, struct figure *figure, const struct canvas *canvas, double value_room,
                  const struct axis *value);
void script_text(FILE *script, const char *name, const char *text);
void script_number(FILE *script, const char *name, double value);

/* "\tnan" for what is not finite. */
void data_number(FILE *data, double value);

/* These write the figure's data and its script up to, and without, the fixed parts. */
void figure_write_curves(struct figure *figure, FILE *data, FILE *script);
void figure_write_final(struct figure *figure, FILE *data, FILE *script);
void figure_write_differences(struct figure *figure, FILE *data, FILE *script);
void figure_write_heat(struct figure *figure, FILE *data, FILE *script);

#endif
