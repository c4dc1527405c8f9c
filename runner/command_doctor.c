/* runner doctor: what this machine offers to runs, each part tried and not only named. */
#include <errno.h>
#include <fcntl.h>
#include <gsl/gsl_version.h>
#include <sched.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <utf8proc.h>
#include <yaml.h>

#include "core/bf16.h"
#include "core/cpu.h"
#include "core/memory.h"
#include "core/onednn.h"
#include "runner/command.h"
#include "runner/database.h"
#include "runner/file.h"
#include "runner/gnuplot.h"
#include "runner/hash.h"
#include "runner/json.h"
#include "runner/rate.h"
#include "runner/version.h"

enum state { STATE_OK, STATE_NOTE, STATE_BROKEN }; /* a note: something optional is missing or slow */

struct report {
    bool json; /* collect; otherwise each finding is printed as it comes */
    bool broken;
    json_t *root, *checks;
};

static void finding(struct report *report, const char *name, enum state state, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void finding(struct report *report, const char *name, enum state state, const char *format, ...)
{
    static const char *const words[] = {"ok", "note", "broken"};
    char text[1200];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    report->broken |= state == STATE_BROKEN;
    json_t *row = json_object();
    json_put(row, "name", json_from_text(name));
    json_put(row, "state", json_from_text(words[state]));
    json_put(row, "text", json_from_text(text));
    json_push(report->checks, row);
    if (!report->json) {
        printf("%-10s %-6s  %s\n", name, words[state], text);
        fflush(stdout);
    }
}

static void processor_check(struct report *report)
{
    cpu_set_t set;
    int cores = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
    bool best = !strcmp(cpu_level(), cpu_best_level());
    json_put(report->root, "cpu", json_from_text(cpu_model_name()));
    json_put(report->root, "cores", json_integer(cores));
    json_put(report->root, "kernels", json_from_text(cpu_level()));
    json_put(report->root, "best_kernels", json_from_text(cpu_best_level()));
    finding(report, "runner", STATE_OK, "%s, commit %s", version_text(), version_commit());
    finding(report, "processor", STATE_OK, "%s, %d core%s to use", cpu_model_name(), cores, cores == 1 ? "" : "s");
    finding(report, "kernels", best ? STATE_OK : STATE_NOTE, "%s%s%s", cpu_level(),
            best ? ", the best this processor has" : ", but this processor has ", best ? "" : cpu_best_level());
}

static void blas_check(struct report *report)
{
    const char *wanted = blas_core_wanted(cpu_level()), *asked = getenv("OPENBLAS_CORETYPE");
    json_put(report->root, "blas", json_from_text(blas_core_name()));
    if (wanted)
        finding(report, "blas", STATE_NOTE,
                "%s; kernels %s%s%s are slower than what this processor can do: leave OPENBLAS_CORETYPE unset, or set "
                "it to %s",
                blas_config(), blas_core_name(), asked ? " from OPENBLAS_CORETYPE=" : "", asked ? asked : "", wanted);
    else
        finding(report, "blas", STATE_OK, "%s; kernels %s, one thread a run", blas_config(), blas_core_name());
}

/* Only bf16 on AMX needs it. */
static void onednn_check(struct report *report)
{
    struct error err;
    bool hardware = bf16_in_hardware(), loaded = onednn_load(&err);
    json_put(report->root, "onednn", loaded ? json_from_text(onednn_version()) : json_null());
    json_put(report->root, "bf16", json_from_text(hardware ? "hardware" : "software"));
    if (hardware)
        finding(report, "oneDNN", STATE_OK, "%s, makes the bf16 products", onednn_version());
    else if (loaded || strcmp(cpu_level(), "v4") != 0)
        finding(report, "oneDNN", STATE_OK, "not used: bf16 products in software on this processor");
    else
        finding(report, "oneDNN", STATE_NOTE, "%s; bf16 products in software", err.text);
}

/* Odd sizes reach the edges of the kernels' tiles, single rows and columns their special cases. */
static void product_check(struct report *report)
{
    static const int64_t shapes[][3] = {{1, 1, 1},     {7, 5, 3},    {31, 127, 17},   {64, 64, 64},  {130, 257, 65},
                                        {1, 512, 256}, {256, 1, 33}, {97, 101, 1024}, {1030, 40, 67}};
    size_t count = sizeof shapes / sizeof shapes[0];
    double worst = 0;
    const int64_t *at = shapes[0];
    for (size_t i = 0; i < count; i++) {
        double error = product_error(shapes[i][0], shapes[i][1], shapes[i][2]);
        if (!(error <= worst)) {
            worst = error;
            at = shapes[i];
        }
    }
    json_put(report->root, "sgemm_error", json_from_double(worst));
    if (!(worst <= 1))
        finding(
            report, "sgemm", STATE_BROKEN,
            "a product of %lld x %lld by %lld x %lld differs from a plain loop by %.3g times what rounding explains",
            (long long)at[0], (long long)at[2], (long long)at[2], (long long)at[1], worst);
    else
        finding(report, "sgemm", STATE_OK,
                "%zu shapes in 3 forms agree with a plain loop (%.2f of what rounding allows)", count, worst);
}

static void rate_check(struct report *report)
{
    struct config config;
    config_init(&config);
    config.model.d_model = 256;
    config.model.n_heads = 8;
    config.model.n_layers = 1;
    struct products *products = products_create(&config.model, 2048, 1024);
    double best = products_time(products);
    for (int i = 0; i < 3; i++) {
        double seconds = products_time(products);
        best = seconds < best ? seconds : best;
    }
    double rate = products_flops(products) / best * 1e-9;
    products_free(products);
    json_put(report->root, "sgemm_gflops", json_from_double(rate));
    finding(report, "speed", STATE_OK, "sgemm %.1f GFLOP/s on one thread, on the shapes of a block 256 wide", rate);
}

static void libraries_check(struct report *report)
{
    /* STRICT tables came with 3.37. */
    bool recent = sqlite3_libversion_number() >= 3037000;
    finding(report, "sqlite", recent ? STATE_OK : STATE_BROKEN, "SQLite %s%s", sqlite3_libversion(),
            recent ? "" : ", but 3.37 or newer is needed");
    char hash[HASH_TEXT_SIZE];
    hash_bytes("abc", 3, hash);
    bool hashes = !strcmp(hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    finding(report, "sha256", hashes ? STATE_OK : STATE_BROKEN, "%s", hashes ? "as published for \"abc\"" : hash);
    finding(report, "libraries", STATE_OK, "libyaml %s, jansson %s, utf8proc %s (Unicode %s), GSL %s",
            yaml_get_version_string(), jansson_version_str(), utf8proc_version(), utf8proc_unicode_version(),
            gsl_version);
}

/* Draws a line with one terminal; the file must be whole. */
static bool terminal_try(const char *folder, const char *terminal, const char *extension, struct error *err)
{
    char setup[200], name[16];
    snprintf(name, sizeof name, "try.%s", extension);
    snprintf(setup, sizeof setup, "set terminal %s; set output 'try.%s'", terminal, extension);
    if (gnuplot_run(folder, setup, "try.gp", 30, err) != GNUPLOT_DONE)
        return false;
    char *path = path_join(folder, name);
    bool whole = gnuplot_output_whole(path, extension, err);
    unlink(path);
    memory_free(path);
    return whole;
}

static void terminals_check(struct report *report, const char *folder)
{
    static const struct {
        const char *terminal, *extension;
    } rows[] = {{"pngcairo", "png"}, {"svg", "svg"}, {"pdfcairo", "pdf"}};
    char *script = path_join(folder, "try.gp");
    struct error err;
    static const char text[] = "plot x title 'a line'\n";
    bool written = file_write(script, text, sizeof text - 1, &err);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool drawn = written && terminal_try(folder, rows[i].terminal, rows[i].extension, &err);
        /* PDF is drawn only when asked for. */
        enum state lacking = strcmp(rows[i].extension, "pdf") ? STATE_BROKEN : STATE_NOTE;
        if (drawn)
            finding(report, rows[i].extension, STATE_OK, "drawn with gnuplot's terminal %s", rows[i].terminal);
        else
            finding(report, rows[i].extension, lacking, "terminal %s: %s", rows[i].terminal, err.text);
    }
    unlink(script);
    memory_free(script);
}

static void gnuplot_check(struct report *report)
{
    char version[128];
    struct error err;
    if (gnuplot_describe(version, sizeof version, &err) != GNUPLOT_DONE) {
        finding(report, "gnuplot", STATE_BROKEN, "%s; results do not depend on it, plots do", err.text);
        return;
    }
    finding(report, "gnuplot", STATE_OK, "%s", version);
    char *folder = folder_temporary("runner-doctor", &err);
    if (folder) {
        terminals_check(report, folder);
        rmdir(folder);
    } else {
        finding(report, "gnuplot", STATE_BROKEN, "%s", err.text);
    }
    memory_free(folder);
}

/* The folder that results go to, or the nearest one above it that is there. Owner: caller, memory_free(). */
static char *results_folder(const char *database_path)
{
    char *folder = path_folder(database_path);
    while (access(folder, F_OK) && strcmp(folder, "/") != 0 && strcmp(folder, ".") != 0) {
        char *above = path_folder(folder);
        memory_free(folder);
        folder = above;
    }
    return folder;
}

static void disk_check(struct report *report, const char *database_path)
{
    const double needed = 500e6; /* checkpoints of a dozen runs at the Day 2 shape */
    char *folder = results_folder(database_path);
    struct statvfs disk;
    if (statvfs(folder, &disk))
        finding(report, "disk", STATE_BROKEN, "'%s': %s", folder, strerror(errno));
    else if (access(folder, W_OK | X_OK))
        finding(report, "disk", STATE_BROKEN, "'%s' cannot be written: %s", folder, strerror(errno));
    else {
        double available = (double)disk.f_bavail * (double)disk.f_frsize;
        json_put(report->root, "disk_free_bytes", json_integer((json_int_t)available));
        finding(report, "disk", available < needed ? STATE_NOTE : STATE_OK, "%.1f GB free in '%s'%s", available * 1e-9,
                folder, available < needed ? ": a sweep may not fit" : "");
    }
    memory_free(folder);
}

static void states_describe(sqlite3 *db, char *text, size_t size)
{
    sqlite3_stmt *statement = NULL;
    size_t used = 0;
    text[0] = 0;
    if (sqlite3_prepare_v2(db, "select state, count(*) from runs group by state order by state", -1, &statement, NULL))
        snprintf(text, size, "%s", sqlite3_errmsg(db));
    else
        while (sqlite3_step(statement) == SQLITE_ROW && used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%d %s", used ? ", " : "",
                                     sqlite3_column_int(statement, 1), (const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
}

static void database_check(struct report *report, const char *path)
{
    struct error err;
    if (access(path, F_OK) && errno == ENOENT) {
        finding(report, "database", STATE_OK, "none yet at '%s'; the first run makes it", path);
        return;
    }
    sqlite3 *db = database_open_reader(path, &err);
    if (!db) {
        finding(report, "database", STATE_BROKEN, "%s", err.text);
        return;
    }
    sqlite3_stmt *statement = NULL;
    char verdict[200] = "";
    if (!sqlite3_prepare_v2(db, "pragma quick_check(1)", -1, &statement, NULL) && sqlite3_step(statement) == SQLITE_ROW)
        snprintf(verdict, sizeof verdict, "%s", (const char *)sqlite3_column_text(statement, 0));
    else
        snprintf(verdict, sizeof verdict, "%s", sqlite3_errmsg(db));
    sqlite3_finalize(statement);
    if (strcmp(verdict, "ok") != 0) {
        finding(report, "database", STATE_BROKEN, "'%s' is damaged: %s", path, verdict);
    } else {
        char states[300];
        states_describe(db, states, sizeof states);
        finding(report, "database", STATE_OK, "'%s' is whole: %s", path, *states ? states : "no runs yet");
    }
    sqlite3_close(db);
}

static int doctor_run(const struct command *command, const struct arguments *arguments)
{
    (void)command;
    const char *path = option_text(arguments, "db", "results/results.db");
    struct report report = {.json = arguments->json, .root = json_object(), .checks = json_array()};
    json_put(report.root, "version", json_from_text(version_text()));
    json_put(report.root, "git_commit", json_from_text(version_commit()));
    processor_check(&report);
    blas_check(&report);
    onednn_check(&report);
    product_check(&report);
    rate_check(&report);
    libraries_check(&report);
    gnuplot_check(&report);
    disk_check(&report, path);
    database_check(&report, path);
    json_put(report.root, "ok", json_boolean(!report.broken));
    json_put(report.root, "checks", report.checks);
    if (report.json)
        json_print(report.root, stdout);
    json_decref(report.root);
    if (report.broken)
        message("runner: doctor: something that runs or plots need is broken, see above");
    return report.broken ? EXIT_ENVIRONMENT : EXIT_DONE;
}

static const struct option doctor_options[] = {
    {.name = "db", .kind = OPTION_TEXT, .argument = "PATH", .doc = "Database to look at. Default results/results.db."},
    {.name = NULL},
};

extern const struct command command_doctor;
const struct command command_doctor = {
    .name = "doctor",
    .summary = "Check this machine: libraries, matrix products, gnuplot, disk, database.",
    .help = "Tries each part and not only names it: products against a plain loop, a plot\n"
            "in each format, the database's own check. Exit code 3 when something that\n"
            "runs or plots need is broken.\n\n"
            "Example:\n  runner doctor --json",
    .options = doctor_options,
    .json = true,
    .run = doctor_run,
};
