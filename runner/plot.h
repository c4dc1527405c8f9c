/* Figures of an experiment, drawn from results.db alone: no training, no experiment file.
 *
 *   struct plot_request request = {.database_path = "results/results.db", .experiment = "day2-norms"};
 *   size_t drawn;
 *   if (!plots_draw(&request, &drawn, &err)) message("%s", err.text);
 *
 * Each figure keeps beside it its numbers (.tsv), its script (.gp, `gnuplot figure.gp` in its folder) and its query
 * (.sql). The queries and the scripts' fixed parts are the files of plots/, embedded in the program. */
#ifndef RUNNER_PLOT_H
#define RUNNER_PLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

enum plot_format { PLOT_PNG = 1, PLOT_SVG = 2, PLOT_PDF = 4 };

struct plot_request {
    const char *database_path;
    const char *experiment;
    const char *out_folder;                        /* NULL: plots/<experiment> beside the database */
    unsigned formats;                              /* 0: PNG and SVG */
    const char *metric;                            /* NULL: bits_per_byte; loss for the training split */
    const char *split;                             /* NULL: every split */
    const char *x;                                 /* NULL or "step", "tokens", "seconds" */
    int64_t smooth;                                /* steps; 0 or 1: none. The training split alone is smoothed */
    bool logarithmic;                              /* value axis */
    double timeout;                                /* seconds one gnuplot may take; 0: 60 */
    void (*file)(void *context, const char *path); /* told each figure's file once it is there; may be NULL */
    void *context;
};

/* False and the first problem in err when a figure could not be drawn; the others are drawn all the same, and data and
 * script of the failed one stay. drawn, if not NULL, gets the number of figures (not files) that are complete. */
bool plots_draw(const struct plot_request *request, size_t *drawn, struct error *err);

/* PNG and SVG of every default figure. out_folder may be NULL. */
bool plots_draw_default(const char *database_path, const char *experiment, const char *out_folder, size_t *drawn,
                        struct error *err);

#endif
