/* Other people's training of the same model, timed by a program that makes a step when it is told to
 * (tests/bench/peers), in turns with ours. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/onednn.h"
#include "runner/bench_rows.h"
#include "runner/clock.h"
#include "runner/file.h"
#include "runner/precision.h"
#include "runner/signals.h"
#include "runner/spawn.h"

enum { LINE_SIZE = 4096, TURNS = 21, WARM = 2 };
/* Seconds for a line, of which the first waits for a compiler. */
static const double patience = 300;
static const char log_name[] = "peers.log";

/* One way of theirs. */
struct peer {
    struct process process;
    int64_t log_begin; /* where what it says on standard error begins */
    json_t *about;     /* {"version", "ways": how many, "name", "threads"}, or a "reason" in it */
    double threads;
    char text[LINE_SIZE]; /* what has come and is not yet taken */
    size_t used;
};

/* The next line, without its end; false when there is none. */
static bool line_read(struct peer *peer, char line[LINE_SIZE])
{
    double until = seconds_now() + patience;
    for (;;) {
        char *end = memchr(peer->text, '\n', peer->used);
        if (end) {
            size_t length = (size_t)(end - peer->text);
            memcpy(line, peer->text, length);
            line[length] = 0;
            peer->used -= length + 1;
            memmove(peer->text, end + 1, peer->used);
            return true;
        }
        struct pollfd wait = {.fd = peer->process.out, .events = POLLIN};
        poll(&wait, 1, 1000);
        ssize_t got = peer->used < LINE_SIZE - 1
                          ? read(peer->process.out, peer->text + peer->used, LINE_SIZE - 1 - peer->used)
                          : 0;
        if (got > 0)
            peer->used += (size_t)got;
        else if (got == 0 || (errno != EAGAIN && errno != EINTR) || seconds_now() > until)
            return false;
    }
}

/* Seconds of one step; NaN when it makes none. */
static double peer_step(struct peer *peer)
{
    char line[LINE_SIZE], *end;
    if (write(peer->process.in, "\n", 1) != 1 || !line_read(peer, line))
        return NAN;
    double seconds = strtod(line, &end);
    return end > line && !*end && seconds > 0 ? seconds : NAN;
}

static void peer_end(struct peer *peer)
{
    close(peer->process.in);
    kill(-peer->process.pid, SIGKILL);
    waitpid(peer->process.pid, NULL, 0);
    signals_helper(0);
    close(peer->process.out);
    json_decref(peer->about);
}

/* Starts way number `way`, and has what it says of itself, behind what libraries may print. */
static bool peer_start(struct peer *peer, const char *peers, const char *precision, int64_t way, const char *log,
                       struct error *err)
{
    char number[32], line[LINE_SIZE];
    const char *const command[] = {peers, "--turns", "--short", "--precision", precision, "--way", number, NULL};
    snprintf(number, sizeof number, "%" PRId64, way);
    *peer = (struct peer){.about = NULL};
    if (!process_start(&peer->process, command, NULL, log, &peer->log_begin, err))
        return false;
    signals_helper(peer->process.pid);
    while (!peer->about && line_read(peer, line))
        peer->about = json_loads(line, 0, NULL);
    peer->threads = json_number_value(json_object_get(peer->about, "threads"));
    return true;
}

/* The last line of what it said on standard error. */
static void last_words(const char *log, int64_t log_begin, struct bench_figure *figure)
{
    struct error err;
    char *text = NULL;
    size_t size = 0;
    if (!file_read(log, (size_t)1 << 24, &text, &size, &err))
        size = 0;
    while (size && strchr(" \r\n", text[size - 1]))
        size--;
    size_t begin = size, first = (size_t)log_begin;
    while (begin > first && text[begin - 1] != '\n')
        begin--;
    if (size > first)
        bench_absent(figure, "%.*s", (int)(size - begin < 256 ? size - begin : 256), text + begin);
    else
        bench_absent(figure, "it said nothing");
    memory_free(text);
}

/* Whatever program it was that wrote it. */
static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "(not named)";
}

/* Their step for each core over ours: the median of turns, each beside the steps of ours before and after it. Better
 * than *least: that, and the figure. False when a step was not made. */
static bool peer_time(struct peer *peer, struct bench_model *model, const char *mark, double *least,
                      struct bench_figure *figure)
{
    double ours[TURNS + 1], theirs[TURNS], ratios[TURNS];
    for (int i = 0; i < WARM; i++)
        if (isnan(peer_step(peer)))
            return false;
    ours[0] = bench_model_step(model);
    for (int i = 0; i < TURNS; i++) {
        theirs[i] = peer_step(peer) * peer->threads;
        ours[i + 1] = bench_model_step(model);
        ratios[i] = theirs[i] / ((ours[i] + ours[i + 1]) / 2);
        if (!(ratios[i] > 0))
            return false;
    }
    double ratio = bench_median(ratios, TURNS);
    if (ratio < *least) {
        *least = ratio;
        bench_value(
            figure, ratio,
            "%sin turns: ours %.0f ms a step, theirs %.0f ms for each core, %.2f to %.2f; %s, %s, %.0f thread%s", mark,
            bench_median(ours, TURNS + 1) * 1e3, bench_median(theirs, TURNS) * 1e3, ratios[0], ratios[TURNS - 1],
            text_of(peer->about, "version"), text_of(peer->about, "name"), peer->threads, peer->threads > 1 ? "s" : "");
    }
    return true;
}

void bench_peers_best(const char *peers, const char *precision, const char *folder, struct bench_model *model,
                      const char *mark, struct bench_figure *figure)
{
    double least = INFINITY;
    char log[LINE_SIZE];
    void (*before)(int) = signal(SIGPIPE, SIG_IGN); /* one that has ended reads no more */
    snprintf(log, sizeof log, "%s/%s", folder, log_name);
    bench_model_step(model);
    for (int64_t way = 1, ways = 1; way <= ways; way++) {
        struct peer peer;
        struct error err;
        bool started = peer_start(&peer, peers, precision, way, log, &err);
        const char *reason = started ? json_string_value(json_object_get(peer.about, "reason")) : err.text;
        bool timed = started && !reason && peer.about && peer_time(&peer, model, mark, &least, figure);
        ways = started ? json_integer_value(json_object_get(peer.about, "ways")) : 0;
        if (reason)
            bench_absent(figure, "%s", reason);
        else if (!timed)
            last_words(log, peer.log_begin, figure);
        if (started)
            peer_end(&peer);
        if (!timed) /* the best of some of theirs is not their best */
            break;
    }
    signal(SIGPIPE, before);
}

void bench_measure_peers(struct bench *bench, int64_t precision, struct bench_figure *figure)
{
    bool away = precision != PRECISION_FP32 && !bench_has_amx();
    if (!bench->peers) {
        bench_absent(figure, "no --peers PROGRAM given (tests/bench/peers)");
        return;
    }
    if (away && !onednn_has_bf16()) {
        bench_absent(figure, "no AMX here, nor other instructions for bf16: theirs and ours round in software");
        return;
    }
    if (!bench_lab_ready(bench, figure))
        return;
    struct config config = bench_case_config(&bench_cases[BENCH_DAY2]);
    struct bench_model model;
    config.training.precision = (int)precision;
    bench_model_init(&model, &config, bench_cases[BENCH_DAY2].vocab_size);
    bench_peers_best(bench->peers, precision_name((int)precision), bench->lab.folder, &model,
                     away ? "no AMX here; " : "", figure);
    figure->elsewhere = away;
    bench_model_release(&model);
}
