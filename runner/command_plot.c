/* runner plot: figures of an experiment from the database. */
#include <stdio.h>
#include <string.h>

#include "core/metric.h"
#include "runner/command.h"
#include "runner/json.h"
#include "runner/plot.h"

struct drawn {
    bool json;
    json_t *files;
};

static void file_tell(void *context, const char *path)
{
    struct drawn *drawn = context;
    if (drawn->json)
        json_push(drawn->files, json_from_text(path));
    else
        printf("%s\n", path);
}

static void note_tell(void *context, const char *text)
{
    (void)context;
    message("%s", text);
}

static unsigned formats_of(const struct arguments *arguments)
{
    const char *format = option_text(arguments, "format", "");
    return strcmp(format, "png") == 0   ? PLOT_PNG
           : strcmp(format, "svg") == 0 ? PLOT_SVG
           : strcmp(format, "pdf") == 0 ? PLOT_PDF
                                        : PLOT_PNG | PLOT_SVG;
}

static int plot_run(const struct command *command, const struct arguments *arguments)
{
    (void)command;
    struct drawn drawn = {.json = arguments->json, .files = json_array()};
    struct plot_request request = {.database_path = option_text(arguments, "db", "results/results.db"),
                                   .experiment = arguments->positional[0],
                                   .out_folder = option_text(arguments, "out", NULL),
                                   .formats = formats_of(arguments),
                                   .metric = option_text(arguments, "metric", NULL),
                                   .split = option_text(arguments, "split", NULL),
                                   .x = option_text(arguments, "x", NULL),
                                   .smooth = option_integer(arguments, "smooth", 0),
                                   .logarithmic = option_flag(arguments, "log"),
                                   .file = file_tell,
                                   .note = note_tell,
                                   .context = &drawn};
    struct error err = {""};
    size_t figures = 0;
    enum plot_result result = plots_draw(&request, &figures, &err);
    if (arguments->json && result != PLOT_REFUSED) {
        json_t *root = json_object();
        json_put(root, "experiment", json_from_text(request.experiment));
        json_put(root, "figures", json_integer((json_int_t)figures));
        json_put(root, "files", json_incref(drawn.files));
        json_print(root, stdout);
        json_decref(root);
    }
    json_decref(drawn.files);
    if (result == PLOT_DRAWN)
        return EXIT_DONE;
    message("runner: %s", err.text);
    return result == PLOT_REFUSED ? EXIT_USAGE : EXIT_ENVIRONMENT;
}

#define METRIC_CHOICE(name, ...) #name "|"

static const struct option options[] = {
    {.name = "format",
     .kind = OPTION_TEXT,
     .argument = "FORMAT",
     .doc = "png and svg when not given",
     .choices = "png|svg|pdf"},
    {.name = "metric",
     .kind = OPTION_TEXT,
     .argument = "M",
     .doc = "what is drawn; bits_per_byte when not given, loss for train",
     .choices = METRICS(METRIC_CHOICE) "grad_norm|learning_rate"},
    {.name = "split",
     .kind = OPTION_TEXT,
     .argument = "S",
     .doc = "validation, train or a kind of text; all when not given"},
    {.name = "x",
     .kind = OPTION_TEXT,
     .argument = "AXIS",
     .doc = "horizontal axis",
     .choices = "step|tokens|seconds|flops"},
    {.name = "smooth",
     .kind = OPTION_INTEGER,
     .argument = "N",
     .doc = "draw training curves smoothed over N steps above the raw ones",
     .minimum = 1,
     .maximum = 1000000000},
    {.name = "log", .kind = OPTION_FLAG, .doc = "logarithmic value axis"},
    {.name = "out",
     .kind = OPTION_TEXT,
     .argument = "DIR",
     .doc = "folder for the files; plots/EXPERIMENT beside the database when not given"},
    {.name = "db", .kind = OPTION_TEXT, .argument = "PATH", .doc = "database (default results/results.db)"},
    {0},
};

extern const struct command command_plot;
const struct command command_plot = {
    .name = "plot",
    .arguments = "EXPERIMENT",
    .summary = "Draw an experiment's curves and final values.",
    .help = "Draws, for each split, the curves of every variant (mean, band and seeds), its\n"
            "final values (seeds, mean, 95 % interval), their differences to the baseline and, when\n"
            "exactly two knobs vary, a heat map; for training the loss and the gradient norm. Prints\n"
            "the files made. Each figure keeps beside it its data (.tsv), its query (.sql) and its script (.gp):\n"
            "edit that and run `gnuplot FIGURE.gp` in its folder. Only the database is read.\n\n"
            "Example:\n  runner plot quick --split train --smooth 20",
    .options = options,
    .json = true,
    .minimum_arguments = 1,
    .maximum_arguments = 1,
    .run = plot_run,
};
