/* Progress on standard error: a bar or plain lines, and how long it will still take. */
#include "runner/progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utf8proc.h>

#include "core/memory.h"

enum { LINE_SIZE = 4096, BAR_CELLS = 20, DEFAULT_WIDTH = 80 };
static const double redraw_seconds = 0.1;

struct run_progress {
    struct progress_run plan;
    enum run_state state; /* RUN_NONE until it starts */
    int64_t step;
    double loss, begun, busy, left; /* seconds; left: work */
    double bits_per_byte, validation_loss;
    int64_t validation_step; /* -1: none seen */
};

struct progress {
    struct run_progress *runs;
    size_t count, total, workers;
    enum progress_mode mode;
    bool colour, drawn;
    FILE *out;
    double begun, redrawn, done; /* done: work since this command started */
    int64_t steps;               /* likewise */
};

enum progress_mode progress_mode_of(FILE *out)
{
    const char *term = getenv("TERM");
    return isatty(fileno(out)) && term && strcmp(term, "dumb") != 0 ? PROGRESS_BAR : PROGRESS_PLAIN;
}

/* Work of one forward pass over one block. A training step costs three a sequence. */
static double block_work(const struct progress_run *run)
{
    return run->flops_per_token * (double)run->config->model.context_length / 3;
}

static double step_work(const struct progress_run *run)
{
    return 3 * (double)run->config->training.batch_size * block_work(run);
}

static double evaluation_work(const struct progress_run *run, int64_t limit, size_t first_split)
{
    double blocks = 0;
    for (size_t i = first_split; i < run->split_count; i++)
        blocks += (double)(limit == 0 || limit > run->split_blocks[i] ? run->split_blocks[i] : limit);
    return blocks * block_work(run);
}

/* From `step` updates on, when the evaluation due there has been made for the first `evaluated` splits. */
static double work_left(const struct progress_run *run, int64_t step, size_t evaluated)
{
    const struct evaluation_config *evaluation = &run->config->evaluation;
    int64_t steps = run->config->training.steps, limit, due;
    int64_t before = step > 0 ? (step - 1) / evaluation->interval + 1 : 0;
    int64_t between = steps > step ? (steps - 1) / evaluation->interval + 1 - before : 0;
    double left = step_work(run) * (double)(steps - step) +
                  evaluation_work(run, evaluation->blocks, 0) * (double)between +
                  evaluation_work(run, evaluation->final_blocks, 0);
    due = trainer_evaluation_due(run->config, step, &limit);
    return due ? left - evaluation_work(run, limit, 0) + evaluation_work(run, limit, evaluated) : left;
}

struct progress *progress_create(const struct progress_run *runs, size_t count, size_t total, size_t workers,
                                 enum progress_mode mode, FILE *out, double now)
{
    struct progress *progress = memory_alloc(1, sizeof *progress);
    const char *no_color = getenv("NO_COLOR");
    *progress = (struct progress){.count = count,
                                  .total = total,
                                  .workers = workers ? workers : 1,
                                  .mode = mode,
                                  .colour = mode == PROGRESS_BAR && !(no_color && *no_color),
                                  .out = out,
                                  .begun = now};
    progress->runs = memory_alloc(count, sizeof *progress->runs);
    for (size_t i = 0; i < count; i++) {
        progress->runs[i] = (struct run_progress){.plan = runs[i], .validation_step = -1, .loss = NAN};
        progress->runs[i].left = work_left(&runs[i], 0, 0);
    }
    return progress;
}

static void bar_erase(struct progress *progress)
{
    if (progress->drawn)
        fputs("\r\033[K", progress->out);
    progress->drawn = false;
}

void progress_free(struct progress *progress)
{
    if (!progress)
        return;
    bar_erase(progress);
    fflush(progress->out);
    memory_free(progress->runs);
    memory_free(progress);
}

const char *progress_time(double seconds, char buf[PROGRESS_TIME_SIZE])
{
    if (!isfinite(seconds) || seconds < 0 || seconds > 1e12) {
        snprintf(buf, PROGRESS_TIME_SIZE, "?");
        return buf;
    }
    int64_t whole = (int64_t)(seconds + 0.5);
    if (whole >= 86400)
        snprintf(buf, PROGRESS_TIME_SIZE, "%" PRId64 " day%s %d h", whole / 86400, whole >= 172800 ? "s" : "",
                 (int)(whole / 3600 % 24));
    else if (whole >= 3600)
        snprintf(buf, PROGRESS_TIME_SIZE, "%d:%02d:%02d", (int)(whole / 3600), (int)(whole / 60 % 60),
                 (int)(whole % 60));
    else
        snprintf(buf, PROGRESS_TIME_SIZE, "%d:%02d", (int)(whole / 60), (int)(whole % 60));
    return buf;
}

static double busy_seconds(const struct run_progress *run, double now)
{
    return run->state == RUN_RUNNING ? run->busy + now - run->begun : run->busy;
}

/* Index of the worker that is free first. */
static size_t soonest(const double *loads, size_t count)
{
    size_t best = 0;
    for (size_t i = 1; i < count; i++)
        if (loads[i] < loads[best])
            best = i;
    return best;
}

/* Work of the busiest worker when what remains is handed out in order. */
static double longest_load(const struct progress *progress)
{
    double *loads = memory_alloc(progress->workers, sizeof *loads), longest = 0;
    for (int running = 1; running >= 0; running--)
        for (size_t i = 0; i < progress->count; i++) {
            const struct run_progress *run = &progress->runs[i];
            if (run->state == (running ? RUN_RUNNING : RUN_NONE))
                loads[soonest(loads, progress->workers)] += run->left;
        }
    for (size_t i = 0; i < progress->workers; i++)
        longest = fmax(longest, loads[i]);
    memory_free(loads);
    return longest;
}

double progress_left(const struct progress *progress, double now)
{
    double busy = 0;
    for (size_t i = 0; i < progress->count; i++)
        busy += busy_seconds(&progress->runs[i], now);
    return progress->done > 0 && busy > 0 ? longest_load(progress) * busy / progress->done : NAN;
}

struct line {
    char text[LINE_SIZE];
    size_t used;
};

static void line_add(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void line_add(struct line *line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(line->text + line->used, sizeof line->text - line->used, format, args);
    va_end(args);
    if (length > 0)
        line->used +=
            (size_t)length < sizeof line->text - line->used ? (size_t)length : sizeof line->text - line->used - 1;
}

/* Bytes of text that fill at most `width` columns. */
static size_t columns_fit(const char *text, size_t size, int width)
{
    size_t used = 0;
    for (int columns = 0; used < size;) {
        utf8proc_int32_t code;
        utf8proc_ssize_t length =
            utf8proc_iterate((const utf8proc_uint8_t *)text + used, (utf8proc_ssize_t)(size - used), &code);
        columns += length > 0 ? utf8proc_charwidth(code) : 1;
        if (columns > width)
            break;
        used += length > 0 ? (size_t)length : 1;
    }
    return used;
}

static int terminal_width(FILE *out)
{
    struct winsize size;
    return ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : DEFAULT_WIDTH;
}

static double share_done(const struct progress *progress)
{
    double left = 0;
    for (size_t i = 0; i < progress->count; i++)
        left += progress->runs[i].left;
    return progress->done + left > 0 ? progress->done / (progress->done + left) : 0;
}

static size_t runs_ended(const struct progress *progress)
{
    size_t ended = progress->total - progress->count;
    for (size_t i = 0; i < progress->count; i++)
        ended += progress->runs[i].state != RUN_NONE && progress->runs[i].state != RUN_RUNNING;
    return ended;
}

static void speed_add(struct line *line, const struct progress *progress, double now)
{
    char left[PROGRESS_TIME_SIZE];
    double elapsed = now - progress->begun, rate = elapsed > 0 ? (double)progress->steps / elapsed : 0;
    if (progress->steps > 0)
        line_add(line, ", %.3g steps/s, %s left", rate, progress_time(progress_left(progress, now), left));
}

static void bar_draw(struct progress *progress, double now)
{
    struct line line = {.used = 0};
    double share = share_done(progress);
    int filled = (int)(share * BAR_CELLS);
    line_add(&line, "[%.*s%*s] %3d%%, %zu/%zu runs", filled, "####################", BAR_CELLS - filled, "",
             (int)(100 * share), runs_ended(progress), progress->total);
    speed_add(&line, progress, now);
    for (size_t i = 0; i < progress->count; i++) {
        const struct run_progress *run = &progress->runs[i];
        if (run->state != RUN_RUNNING)
            continue;
        line_add(&line, " | %s, seed %" PRId64 ": %" PRId64 "/%" PRId64, run->plan.label, run->plan.seed, run->step,
                 run->plan.config->training.steps);
        if (!isnan(run->loss))
            line_add(&line, " loss %.3f", run->loss);
    }
    /* The last column stays free: some terminals wrap when it is written. */
    size_t shown = columns_fit(line.text, line.used, terminal_width(progress->out) - 1);
    fprintf(progress->out, "\r%.*s\033[K", (int)shown, line.text);
    fflush(progress->out);
    progress->drawn = true;
    progress->redrawn = now;
}

void progress_tick(struct progress *progress, double now)
{
    if (progress->mode == PROGRESS_BAR && now - progress->redrawn >= redraw_seconds)
        bar_draw(progress, now);
}

static void line_print(struct progress *progress, const struct line *line)
{
    bar_erase(progress);
    fprintf(progress->out, "%s\n", line->text);
    fflush(progress->out);
}

static void name_add(struct line *line, const struct progress *progress, size_t run)
{
    const struct progress_run *plan = &progress->runs[run].plan;
    line_add(line, "[%zu/%zu] %s, seed %" PRId64 ": ", progress->total - progress->count + run + 1, progress->total,
             plan->label, plan->seed);
}

void progress_note(struct progress *progress, size_t run, const char *text)
{
    struct line line = {.used = 0};
    if (run != SIZE_MAX)
        name_add(&line, progress, run);
    line_add(&line, "%s", text);
    line_print(progress, &line);
}

void progress_run_start(struct progress *progress, size_t run, int64_t step, size_t evaluated, double now)
{
    struct run_progress *state = &progress->runs[run];
    int64_t steps = state->plan.config->training.steps;
    state->state = RUN_RUNNING;
    state->begun = now;
    state->step = step;
    state->left = work_left(&state->plan, step, evaluated);
    if (progress->mode == PROGRESS_BAR)
        return;
    struct line line = {.used = 0};
    name_add(&line, progress, run);
    if (step)
        line_add(&line, "resumed at step %" PRId64 " of %" PRId64, step, steps);
    else
        line_add(&line, "started, %" PRId64 " steps", steps);
    line_print(progress, &line);
}

static void work_done(struct progress *progress, struct run_progress *run, double work)
{
    progress->done += work;
    run->left = fmax(0, run->left - work);
}

void progress_step(struct progress *progress, size_t run, const struct step_record *record, double now)
{
    struct run_progress *state = &progress->runs[run];
    state->step = record->step + 1;
    state->loss = record->loss;
    progress->steps++;
    work_done(progress, state, step_work(&state->plan));
    progress_tick(progress, now);
}

void progress_evaluation(struct progress *progress, size_t run, const struct evaluation_row *row, double now)
{
    struct run_progress *state = &progress->runs[run];
    work_done(progress, state, (double)row->record.blocks * block_work(&state->plan));
    if (strcmp(row->split, "validation") != 0)
        return;
    state->validation_step = row->step;
    state->validation_loss = row->record.loss;
    state->bits_per_byte = row->record.bits_per_byte;
    if (progress->mode == PROGRESS_BAR)
        return;
    struct line line = {.used = 0};
    name_add(&line, progress, run);
    line_add(&line, "step %" PRId64 ", validation loss %.4f, %.4f bits/byte", row->step, row->record.loss,
             row->record.bits_per_byte);
    speed_add(&line, progress, now);
    line_print(progress, &line);
}

static const char *state_colour(const struct progress *progress, enum run_state state)
{
    if (!progress->colour)
        return "";
    return state == RUN_FINISHED ? "\033[32m" : state == RUN_INTERRUPTED ? "\033[33m" : "\033[31m";
}

void progress_run_end(struct progress *progress, size_t run, enum run_state state, const char *reason, double now)
{
    struct run_progress *ended = &progress->runs[run];
    char took[PROGRESS_TIME_SIZE];
    ended->busy = busy_seconds(ended, now);
    ended->state = state;
    ended->left = 0;
    struct line line = {.used = 0};
    name_add(&line, progress, run);
    line_add(&line, "%s%s%s", state_colour(progress, state), run_state_name(state), progress->colour ? "\033[0m" : "");
    if (state == RUN_FINISHED) {
        line_add(&line, " in %s", progress_time(ended->busy, took));
        if (ended->validation_step == ended->plan.config->training.steps)
            line_add(&line, ", validation loss %.4f, %.4f bits/byte", ended->validation_loss, ended->bits_per_byte);
    } else if (state == RUN_INTERRUPTED && !reason) {
        line_add(&line, " at step %" PRId64, ended->step);
    }
    if (reason)
        line_add(&line, ": %s", reason);
    line_print(progress, &line);
}
