/* Whole sweeps, run by this program as a child of itself: workers side by side, what supervising costs, the grid. */
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/bench_rows.h"
#include "runner/bench_worker.h"
#include "runner/estimate.h"
#include "runner/supervisor.h"
#include "runner/sweep.h"

enum { TEXT_SIZE = 32768 };

/* ---- experiment files, and one sweep of them ---- */

/* As a single-quoted text of YAML, in which only quotes are doubled. */
static void path_quote(const char *path, char quoted[TEXT_SIZE / 2])
{
    size_t used = 0;
    for (; *path && used + 3 < TEXT_SIZE / 2; path++) {
        quoted[used++] = *path;
        if (*path == '\'')
            quoted[used++] = '\'';
    }
    quoted[used] = 0;
}

static bool file_make(struct bench *bench, const char *name, const struct config *config, const char *corpus,
                      struct bench_figure *figure)
{
    char text[TEXT_SIZE], quoted[TEXT_SIZE / 2];
    struct error err;
    path_quote(corpus, quoted);
    snprintf(text, sizeof text,
             "data: {corpus: '%s', tokenizer: {kind: bpe, vocab_size: %" PRId64 "}}\n"
             "model: {d_model: %" PRId64 ", n_heads: %" PRId64 ", n_layers: %" PRId64 ", context_length: %" PRId64 "}\n"
             "training: {steps: %" PRId64 ", warmup_steps: 0, batch_size: %" PRId64 "}\n"
             "evaluation: {interval: %" PRId64 ", blocks: 1, final_blocks: 1}\n",
             quoted, config->tokenizer.vocab_size, config->model.d_model, config->model.n_heads, config->model.n_layers,
             config->model.context_length, config->training.steps, config->training.batch_size, config->training.steps);
    if (bench_lab_file(&bench->lab, name, text, &err))
        return true;
    bench_absent(figure, "%s", err.text);
    return false;
}

/* `runner run` of the words into a folder of its own, which shares the lab's tokenised texts and is then removed. */
static bool sweep_run(struct bench *bench, const char *const *words, struct bench_usage *usage,
                      struct bench_figure *figure)
{
    enum { WORDS = 24 };
    const char *all[WORDS] = {"run"};
    size_t used = 1;
    struct error err;
    char *link = bench_lab_path(&bench->lab, "trial/cache");
    bool good = bench_lab_folder(&bench->lab, "trial", &err) && symlink("../cache", link) == 0;
    memory_free(link);
    for (size_t i = 0; words[i]; i++)
        all[used++] = words[i];
    all[used++] = "--db";
    all[used++] = "trial/results.db";
    all[used++] = "--no-plots";
    all[used] = NULL;
    if (!good)
        bench_absent(figure, "cannot write to the temporary folder");
    else if (!(good = bench_lab_run(&bench->lab, all, usage, &err)))
        bench_absent(figure, "%s", err.text);
    bench_lab_remove(&bench->lab, "trial");
    return good;
}

/* ---- ceilings ---- */

/* The products of a Day 2 step, and who makes each fastest, which is tried out while nothing else runs. Owner: caller,
 * bench_model_release(). */
static void yardstick_init(struct bench_model *model)
{
    struct config config = bench_case_config(&bench_cases[BENCH_DAY2]);
    bench_model_init(model, &config, bench_cases[BENCH_DAY2].vocab_size);
    bench_model_sgemm(model);
}

/* What cores do together by sgemm, the fastest there is, operations a second: a process for each, this one measures. */
static bool cores_sgemm(struct bench_model *model, size_t cores, double *rate, struct bench_figure *figure)
{
    enum { TURNS = 5, CORES_MOST = 256 };
    size_t others = 0;
    cores = cores < CORES_MOST ? cores : CORES_MOST;
    pid_t parent = getpid(), children[CORES_MOST];
    double rates[TURNS];
    while (others + 1 < cores && (children[others] = fork()) >= 0) {
        if (children[others] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            while (getppid() == parent)
                bench_model_sgemm(model);
            _exit(0);
        }
        others++;
    }
    bench_model_sgemm(model);
    for (size_t i = 0; i < TURNS; i++)
        rates[i] = bench_model_sgemm(model);
    for (size_t i = 0; i < others; i++) {
        kill(children[i], SIGKILL);
        waitpid(children[i], NULL, 0);
    }
    *rate = bench_median(rates, TURNS) * (double)cores;
    if (others + 1 < cores)
        bench_absent(figure, "cannot start a process for each of %zu cores", cores);
    return others + 1 == cores;
}

/* ---- two workers ---- */

/* The text is read and tokenised first: what is compared is training. */
static bool day2_ready(struct bench *bench, int64_t steps, const char *name, struct bench_figure *figure)
{
    struct config config = bench_case_config(&bench_cases[BENCH_DAY2]);
    struct dataset dataset;
    config.tokenizer.vocab_size = bench_cases[BENCH_DAY2].vocab_size;
    config.training.steps = steps;
    if (!bench_dataset(bench, &config, &dataset, figure))
        return false;
    dataset_close(&dataset);
    return file_make(bench, name, &config, bench->corpus, figure);
}

/* What a second core gains at sgemm, which knows neither workers nor files: cores of one machine share memory, and
 * virtual ones more than that. */
static bool cores_gain(double *gain, struct bench_figure *figure)
{
    struct bench_model model;
    double one, two;
    yardstick_init(&model);
    bool good = cores_sgemm(&model, 1, &one, figure) && cores_sgemm(&model, 2, &two, figure);
    bench_model_release(&model);
    if (good)
        *gain = two / one;
    return good;
}

void bench_measure_workers(struct bench *bench, int64_t unused, struct bench_figure *figure)
{
    (void)unused;
    enum { TURNS = 45 };
    double alone[TURNS + 1], both[TURNS], gains[TURNS], one, two, sgemm_gain;
    struct config config = bench_case_config(&bench_cases[BENCH_DAY2]);
    struct dataset dataset;
    struct error err;
    if (supervisor_cores() < 2) {
        bench_absent(figure, "this process may use one core only");
        return;
    }
    config.tokenizer.vocab_size = bench_cases[BENCH_DAY2].vocab_size;
    config.evaluation.interval = config.training.steps;
    config.evaluation.blocks = 1;
    if (!cores_gain(&sgemm_gain, figure) || !bench_dataset(bench, &config, &dataset, figure))
        return;
    bool good = bench_workers_pace(&bench->lab, &dataset, &config, TURNS, alone, both, &err);
    dataset_close(&dataset);
    if (!good) {
        bench_absent(figure, "%s", err.text);
        return;
    }
    for (size_t i = 0; i < TURNS; i++)
        gains[i] = both[i] / ((alone[i] + alone[i + 1]) / 2);
    double gain = bench_median(gains, TURNS);
    one = bench_median(alone, TURNS + 1);
    two = bench_median(both, TURNS);
    bench_value(
        figure, gain,
        "real workers at the Day 2 shape, held in turns: %.2f steps/s alone, %.2f by both; %d turns, the middle "
        "half from %.2f to %.2f; sgemm on two cores at once is %.2f times that of one",
        one, two, TURNS, gains[TURNS / 4], gains[TURNS - 1 - TURNS / 4], sgemm_gain);
}

/* ---- what supervising costs ---- */

/* Seconds of processor a step of a model that is next to nothing takes by itself. */
static bool bare_step(struct bench *bench, const struct config *config, double *seconds, struct bench_figure *figure)
{
    struct dataset dataset;
    struct error err;
    struct step_record record;
    if (!bench_dataset(bench, config, &dataset, figure))
        return false;
    struct trainer *trainer = trainer_create(config, 1, tokenizer_vocab_size(dataset.tokenizer), &dataset.train, &err);
    if (!trainer) {
        bench_absent(figure, "%s", err.text);
        dataset_close(&dataset);
        return false;
    }
    trainer_step(trainer, &record);
    clock_t begin = clock();
    for (int64_t i = 1; i < config->training.steps; i++)
        trainer_step(trainer, &record);
    *seconds = (double)(clock() - begin) / CLOCKS_PER_SEC / (double)(config->training.steps - 1);
    trainer_free(trainer);
    dataset_close(&dataset);
    return true;
}

/* Processor time, not elapsed time: it is steady to a microsecond a step where a busy machine is not to a percent.
 * Twice the steps less once the steps leaves out what a run costs once. */
static bool logged_step(struct bench *bench, struct config config, double *seconds, struct bench_figure *figure)
{
    double cpu[2];
    for (int i = 0; i < 2; i++) {
        struct bench_usage usage;
        const char *name = i ? "long.yaml" : "short.yaml";
        if (!file_make(bench, name, &config, bench->corpus, figure) ||
            !sweep_run(bench, (const char *const[]){name, "--workers", "1", NULL}, &usage, figure))
            return false;
        cpu[i] = usage.cpu;
        config.training.steps *= 2;
    }
    *seconds = (cpu[1] - cpu[0]) / ((double)config.training.steps / 4);
    return true;
}

static struct config next_to_nothing(void)
{
    struct config config;
    config_init(&config);
    config.model.d_model = 8;
    config.model.n_heads = 1;
    config.model.n_layers = 1;
    config.model.context_length = 8;
    config.training.batch_size = 1;
    config.training.steps = 20000;
    config.training.warmup_steps = 0;
    config.tokenizer.vocab_size = 300;
    return config;
}

void bench_measure_supervision(struct bench *bench, int64_t unused, struct bench_figure *figure)
{
    (void)unused;
    enum { ROUNDS = 3, STEPS = 12 };
    struct config tiny = next_to_nothing();
    struct bench_usage day2;
    double extra[ROUNDS], bare, logged;
    for (size_t i = 0; i < ROUNDS; i++) {
        if (!bare_step(bench, &tiny, &bare, figure) || !logged_step(bench, tiny, &logged, figure))
            return;
        extra[i] = logged - bare;
    }
    if (!day2_ready(bench, STEPS, "watched.yaml", figure) ||
        !sweep_run(bench, (const char *const[]){"watched.yaml", "--workers", "1", NULL}, &day2, figure))
        return;
    if (isnan(day2.own_share)) {
        bench_absent(figure, "a Day 2 run of %d steps was too short to watch", STEPS);
        return;
    }
    double a_step = bench_median(extra, ROUNDS), step = bench_share_of(bench, BENCH_DAY2)->step_seconds;
    bench_value(figure, 100 * (a_step / step + day2.own_share),
                "processor time: a logged step costs %.0f us more than a bare one, of %.0f ms; the supervisor with its "
                "bar takes %.2f %% of a core while a Day 2 run trains",
                a_step * 1e6, step * 1e3, 100 * day2.own_share);
}

/* ---- the grid, cut short ---- */

static bool grid_flops(struct bench *bench, const char *const *sets, size_t set_count, struct bench_grid *grid,
                       struct bench_figure *figure)
{
    struct experiment_options options = {.sets = sets, .set_count = set_count};
    struct problems problems;
    char *cache = bench_lab_path(&bench->lab, "cache");
    problems_init(&problems);
    struct experiment *experiment = experiment_load(bench->grid, &options, &problems);
    struct sweep *sweep = experiment ? sweep_resolve(experiment, cache, false, &problems) : NULL;
    *grid = (struct bench_grid){.runs = sweep ? sweep->run_count : 0};
    for (size_t i = 0; sweep && i < sweep->run_count; i++) {
        const struct run *run = &sweep->runs[i];
        const struct config *config = &sweep->experiment->variants[run->variant].config;
        grid->training_flops += run->flops_per_token * (double)config->training.steps *
                                (double)config->training.batch_size * (double)config->model.context_length;
        /* A forward pass is a third of a training step. */
        grid->evaluation_flops +=
            run->flops_per_token / 3 * estimate_evaluation_tokens(config, &sweep->datasets[run->dataset], 0);
    }
    if (!sweep)
        bench_absent(figure, "'%.200s' cannot be run: see 'runner plan'", bench->grid);
    memory_free(cache);
    problems_release(&problems);
    sweep_free(sweep);
    return sweep != NULL;
}

/* Runs it between two measurements of sgemm. */
static bool grid_time(struct bench *bench, const char *const *words, struct bench_grid *grid,
                      struct bench_figure *figure)
{
    struct bench_usage usage;
    struct bench_model model;
    yardstick_init(&model);
    double before, after;
    bool good = cores_sgemm(&model, supervisor_cores(), &before, figure) && sweep_run(bench, words, &usage, figure) &&
                cores_sgemm(&model, supervisor_cores(), &after, figure);
    if (good) {
        grid->rate = (before + after) / 2;
        grid->wall = usage.wall;
    }
    bench_model_release(&model);
    return good;
}

/* Once for both rows: bench->grid_time. */
static bool grid_measure(struct bench *bench, int64_t steps, struct bench_figure *figure)
{
    enum { SETS = 7, SET_SIZE = 64 };
    char texts[SETS - 1][SET_SIZE];
    const char *sets[SETS];
    const char *words[2 * SETS + 4] = {bench->grid};
    size_t used = 1;
    if (bench->grid_time.wall > 0)
        return true;
    if (!bench->grid) {
        bench_absent(figure, "no --grid FILE given");
        return false;
    }
    char *corpus = memory_alloc(strlen(bench->corpus) + 16, 1);
    /* As many blocks for a step as in the whole grid: four times 96 and once 192 for 400 steps. */
    snprintf(texts[0], SET_SIZE, "training.steps=%" PRId64, steps);
    snprintf(texts[1], SET_SIZE, "training.warmup_steps=0");
    snprintf(texts[2], SET_SIZE, "evaluation.interval=%" PRId64, steps);
    snprintf(texts[3], SET_SIZE, "evaluation.blocks=%" PRId64, steps / 2);
    snprintf(texts[4], SET_SIZE, "evaluation.final_blocks=%" PRId64, steps);
    snprintf(texts[5], SET_SIZE, "training.min_learning_rate=0");
    snprintf(corpus, strlen(bench->corpus) + 16, "data.corpus=%s", bench->corpus);
    for (size_t i = 0; i < SETS; i++) {
        sets[i] = i + 1 < SETS ? texts[i] : corpus;
        words[used++] = "--set";
        words[used++] = sets[i];
    }
    words[used] = NULL;
    bool good = bench_lab_ready(bench, figure) && grid_flops(bench, sets, SETS, &bench->grid_time, figure) &&
                grid_time(bench, words, &bench->grid_time, figure);
    memory_free(corpus);
    return good;
}

void bench_measure_grid(struct bench *bench, int64_t steps, struct bench_figure *figure)
{
    const struct bench_grid *grid = &bench->grid_time;
    if (!grid_measure(bench, steps, figure))
        return;
    double limit = grid->training_flops / (0.75 * grid->rate);
    bench_value(figure, grid->wall / limit,
                "stand-in: %d runs of %d steps, evaluated as often for a step as in the whole grid, on %d cores: %.1f "
                "s, and training FLOPs over 75 %% of sgemm on all cores at once (%.1f GFLOP/s) are %.1f s; whole: make "
                "bench GRID=1",
                (int)grid->runs, (int)steps, (int)supervisor_cores(), grid->wall, grid->rate * 1e-9, limit);
}

void bench_measure_grid_all(struct bench *bench, int64_t steps, struct bench_figure *figure)
{
    const struct bench_grid *grid = &bench->grid_time;
    if (!grid_measure(bench, steps, figure))
        return;
    double limit = (grid->training_flops + grid->evaluation_flops) / (0.75 * grid->rate);
    bench_value(figure, grid->wall / limit, "the same sweep; evaluation is %.0f %% more FLOPs: %.1f s at 75 %%",
                100 * grid->evaluation_flops / grid->training_flops, limit);
}
