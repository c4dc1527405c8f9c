/* Everything a write-up of an experiment needs, read from results.db alone, and the two pages made of it.
 *
 *   struct report *report = report_read(db, "day2-norms", &err);
 *   report_draw(report, db, folder, &err);         // figures/ in the folder
 *   report_write_html(report, folder, out, &err);  // figures inside the page
 *   report_write_markdown(report, out);            // figures beside it
 *   report_free(report); */
#ifndef RUNNER_REPORT_H
#define RUNNER_REPORT_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/error.h"
#include "runner/loss_table.h"
#include "runner/table.h"

/* Marks around names within an answer: each page sets them apart in its own way. */
#define REPORT_NAME_BEGIN '\x01'
#define REPORT_NAME_END '\x02'

struct report_figure {
    char *file; /* "figures/final-validation.svg" */
    const char *caption;
};

struct report {
    char *experiment, *description, *question, *path, *metric, *split;
    char *choices;              /* a line of JSON for each command that made the runs: its words beside the path */
    bool changed;               /* the experiment's file, since: it makes other runs now */
    const char *database;       /* its path, for the commands; NULL: the one that they take by themselves. Not owned */
    char *answer;               /* one sentence, names marked */
    struct loss_table **losses; /* of the split that the experiment compares on, then of the other evaluated ones */
    size_t loss_count;
    struct table *settings; /* variants by knobs that vary */
    struct table *provenance, *runs;
    struct report_figure *figures;
    size_t figure_count;
};

/* NULL and err. Owner: caller, report_free(). */
struct report *report_read(sqlite3 *db, const char *experiment, struct error *err);
void report_free(struct report *report); /* takes NULL */

/* Draws the figures as SVG into the folder's figures/; what was drawn before a failure is in the report. */
bool report_draw(struct report *report, sqlite3 *db, const char *folder, struct error *err);

/* One sentence from the verdicts, at most one clause each: better, worse, same, not separated. Owner: caller,
 * memory_free(). */
char *report_answer(const struct loss_table *table);

bool report_write_html(const struct report *report, const char *folder, FILE *out, struct error *err);
void report_write_markdown(const struct report *report, FILE *out);

#endif
