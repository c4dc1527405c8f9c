/* gnuplot as a child process: found on PATH, no shell, a time limit, its complaints kept.
 *
 * It runs in the figure's folder and is given plain file names, so no path needs quoting. */
#ifndef RUNNER_GNUPLOT_H
#define RUNNER_GNUPLOT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

enum gnuplot_result {
    GNUPLOT_DONE,
    GNUPLOT_FAILED,  /* it ran and said no; another script may do better */
    GNUPLOT_MISSING, /* not on PATH, or not to be started */
    GNUPLOT_HUNG,    /* killed after the time limit */
};

/* gnuplot -d -e setup script, in folder, with LC_ALL=C. setup is one or more gnuplot commands. When the result is not
 * GNUPLOT_DONE, err says what happened with the first lines gnuplot printed. */
enum gnuplot_result gnuplot_run(const char *folder, const char *setup, const char *script, double timeout,
                                struct error *err);

/* The one on PATH and which of our terminals it has: "5.4 patchlevel 4: pngcairo svg pdfcairo". */
enum gnuplot_result gnuplot_describe(char *text, size_t size, struct error *err);

/* True when the file is whole: a PNG, SVG or PDF that ends as its kind ends. gnuplot leaves files of 0 bytes when it
 * fails and half ones when a disk is full, with exit code 0. extension: "png", "svg", "pdf". */
bool gnuplot_output_whole(const char *path, const char *extension, struct error *err);

/* Puts the 14 digits in place of the time of drawing that cairo writes into a PDF, so that the same data gives the same
 * bytes. False and err when the file has no such place. */
bool gnuplot_pdf_stamp(const char *path, const char *digits, struct error *err);

#endif
