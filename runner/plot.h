/* Figures of an experiment, drawn from results.db alone: no training, no experiment file.
 *
 *   struct plot_request request = {.database_path = "results/results.db", .experiment = "day2-norms"};
 *   size_t drawn;
 *   if (plots_draw(&request, &drawn, &err) != PLOT_DRAWN) message("%s", err.text);
 *
 * Each figure keeps beside it its numbers (.tsv), its script (.gp, `gnuplot figure.gp` in its folder) and its query
 * (.sql). The queries and the scripts' fixed parts are the files of plots/, embedded in the program. */
#ifndef RUNNER_PLOT_H
#define RUNNER_PLOT_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

enum plot_format { PLOT_PNG = 1, PLOT_SVG = 2, PLOT_PDF = 4 };

struct plot_request {
    const char *database_path;
    const char *experiment;
    const char *out_folder;                        /* NULL: plots/<experiment> beside the database */
    const char *figure;                            /* NULL: every one; "curves", "final", "differences", "heat" */
    unsigned formats;                              /* 0: PNG and SVG */
    const char *metric;                            /* NULL: bits_per_byte; loss for the training split */
    const char *split;                             /* NULL: every split */
    const char *x;                                 /* NULL or "step", "tokens", "seconds", "flops" */
    int64_t smooth;                                /* steps; 0 or 1: none. The training split alone is smoothed */
    bool logarithmic;                              /* value axis */
    double timeout;                                /* seconds one gnuplot may take; 0: 60 */
    void (*file)(void *context, const char *path); /* told each figure's file once it is there; may be NULL */
    void (*note)(void *context, const char *text); /* things to tell that are no failure; may be NULL */
    void *context;
};

enum plot_result {
    PLOT_DRAWN,
    PLOT_REFUSED, /* no such experiment, split, metric or axis: the message names what there is */
    PLOT_FAILED,  /* database, disk or gnuplot */
};

/* On PLOT_FAILED err has the first problem; the other figures are drawn all the same, and data, script and query of
 * those that failed stay. drawn, if not NULL, gets the number of figures (not files) that are complete. */
enum plot_result plots_draw(const struct plot_request *request, size_t *drawn, struct error *err);

/* The same from an open database; database_path then only says where figures go by default. */
enum plot_result plots_draw_open(sqlite3 *db, const struct plot_request *request, size_t *drawn, struct error *err);

/* PNG and SVG of every default figure. out_folder may be NULL. */
bool plots_draw_default(const char *database_path, const char *experiment, const char *out_folder, size_t *drawn,
                        struct error *err);

#endif
