/* Training one run: evaluate, checkpoint, step, and a record of each; resumed runs end bit-identical. */
#include "runner/worker.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/bf16.h"
#include "core/cpu.h"
#include "core/memory.h"
#include "core/onednn.h"
#include "core/trainer.h"
#include "runner/checkpoint.h"
#include "runner/clock.h"
#include "runner/command.h"
#include "runner/dataset.h"
#include "runner/file.h"
#include "runner/inspect.h"
#include "runner/precision.h"
#include "runner/record.h"
#include "runner/safetensors.h"
#include "runner/version.h"

/* Writing checkpoints may take one part in so many of a run. */
enum { CHECKPOINT_SHARE = 100 };

/* What the run has come to; WORKER_ON while it goes on. */
enum worker_end { WORKER_ON, WORKER_FINISHED, WORKER_DIVERGED, WORKER_STOPPED, WORKER_ENVIRONMENT };

struct worker {
    const struct job *job;
    const volatile sig_atomic_t *stop;
    int out;
    struct dataset dataset;
    struct trainer *trainer;
    struct checkpoint curve; /* all of it since step 0 */
    size_t step_capacity, evaluation_capacity;
    int64_t saved_steps; /* what the newest checkpoint on disk holds */
    size_t saved_evaluations;
    double saved_at, next_save;
    char message[1024]; /* why, at WORKER_ENVIRONMENT */
};

/* A supervisor that is gone is a request to stop. */
static enum worker_end told(bool written)
{
    return written ? WORKER_ON : WORKER_STOPPED;
}

static void note_send(void *context, const char *text)
{
    const struct worker *worker = context;
    fprintf(stderr, "%s\n", text);
    if (!record_write_text(worker->out, RECORD_NOTE, text))
        fprintf(stderr, "the supervisor is gone\n");
}

static void environment_describe(struct run_environment *environment, int precision)
{
    memset(environment, 0, sizeof *environment);
    if (gethostname(environment->host, sizeof environment->host - 1) != 0)
        snprintf(environment->host, sizeof environment->host, "unknown");
    snprintf(environment->cpu, sizeof environment->cpu, "%s", cpu_model_name());
    snprintf(environment->kernels, sizeof environment->kernels, "%s", cpu_level());
    /* Core name and version; the build options that blas_config() goes on with are the library's, not the run's. */
    const char *config = blas_config();
    const char *version_end = strchr(config, ' ') ? strchr(strchr(config, ' ') + 1, ' ') : NULL;
    int threads = blas_threads();
    snprintf(environment->blas, sizeof environment->blas, "%.31s %.*s, %d thread%s", blas_core_name(),
             version_end ? (int)(version_end - config) : 30, config, threads, threads == 1 ? "" : "s");
    if (precision != PRECISION_FP32 && bf16_in_hardware()) {
        size_t used = strlen(environment->blas);
        snprintf(environment->blas + used, sizeof environment->blas - used, " + oneDNN %s, bf16 in hardware",
                 onednn_version());
    }
    snprintf(environment->precision, sizeof environment->precision, "%s", precision_name(precision));
    snprintf(environment->git_commit, sizeof environment->git_commit, "%s", version_commit());
    snprintf(environment->version, sizeof environment->version, "%s", version_text());
}

/* Room for one more; what is there stays. */
static void *curve_room(void *rows, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return rows;
    *capacity = count * 2 + 256;
    return memory_grow(rows, count * size, *capacity, size);
}

static void step_keep(struct worker *worker, const struct step_record *record)
{
    struct checkpoint *curve = &worker->curve;
    curve->steps = curve_room(curve->steps, curve->step_count, &worker->step_capacity, sizeof *curve->steps);
    curve->steps[curve->step_count++] = *record;
}

static void evaluation_keep(struct worker *worker, const struct evaluation_row *row)
{
    struct checkpoint *curve = &worker->curve;
    curve->evaluations = curve_room(curve->evaluations, curve->evaluation_count, &worker->evaluation_capacity,
                                    sizeof *curve->evaluations);
    curve->evaluations[curve->evaluation_count++] = *row;
}

static bool evaluation_kept(const struct checkpoint *curve, int64_t step, const char *split)
{
    for (size_t i = curve->evaluation_count; i-- > 0 && curve->evaluations[i].step == step;)
        if (strcmp(curve->evaluations[i].split, split) == 0)
            return true;
    return false;
}

static enum worker_end environment_fail(struct worker *worker, const struct error *err)
{
    snprintf(worker->message, sizeof worker->message, "%s", err->text);
    return WORKER_ENVIRONMENT;
}

static enum worker_end checkpoint_save(struct worker *worker)
{
    struct checkpoint *curve = &worker->curve;
    if (curve->steps_done == worker->saved_steps && curve->evaluation_count == worker->saved_evaluations)
        return WORKER_ON;
    struct trainer_state state = trainer_state(worker->trainer);
    struct error err;
    double begin = seconds_now();
    if (!checkpoint_write(worker->job->checkpoint_folder, worker->job->key, &state, curve, &err))
        return environment_fail(worker, &err);
    worker->saved_steps = curve->steps_done;
    worker->saved_evaluations = curve->evaluation_count;
    worker->saved_at = seconds_now();
    double pause = fmax(CHECKPOINT_SECONDS, CHECKPOINT_SHARE * (worker->saved_at - begin));
    worker->next_save = worker->saved_at + pause;
    return told(record_write(worker->out, RECORD_CHECKPOINT, &curve->steps_done, sizeof curve->steps_done));
}

static bool checkpoint_due(const struct worker *worker)
{
    int64_t every = worker->job->checkpoint_every, steps = worker->curve.steps_done;
    return every ? steps % every == 0 && steps > 0 : seconds_now() >= worker->next_save;
}

static const char *value_name(double value)
{
    return isnan(value) ? "nan" : "inf";
}

static enum worker_end diverged_send(struct worker *worker, int64_t step, const char *what, double value)
{
    struct record_diverged record = {.step = step};
    snprintf(record.reason, sizeof record.reason, "%s is %s", what, value_name(value));
    fprintf(stderr, "diverged at step %" PRId64 ": %s\n", step, record.reason);
    if (!record_write(worker->out, RECORD_DIVERGED, &record, sizeof record))
        return WORKER_STOPPED;
    return WORKER_DIVERGED;
}

/* Of all of the validation text, before any step. */
static void start_check(struct worker *worker, double loss)
{
    int64_t vocab_size = tokenizer_vocab_size(worker->dataset.tokenizer);
    char text[256];
    if (!inspect_loss_is_off(loss, vocab_size))
        return;
    inspect_loss_describe("the validation loss before any step", loss, vocab_size, text, sizeof text);
    note_send(worker, text);
}

static enum worker_end evaluate_split(struct worker *worker, const struct dataset_split *split, int64_t limit)
{
    const struct checkpoint *curve = &worker->curve;
    struct evaluation_row row = {.step = curve->steps_done, .seconds = curve->seconds};
    row.tokens = curve->step_count ? curve->steps[curve->step_count - 1].tokens : 0;
    memcpy(row.split, split->name, strnlen(split->name, sizeof row.split - 1));
    trainer_evaluate(worker->trainer, &split->stream, limit, &row.record);
    if (!record_write(worker->out, RECORD_EVALUATION, &row, sizeof row))
        return WORKER_STOPPED;
    if (!isfinite(row.record.loss)) {
        char what[sizeof row.split + 8];
        snprintf(what, sizeof what, "%s loss", row.split);
        return diverged_send(worker, row.step, what, row.record.loss);
    }
    if (row.step == 0 && split == worker->dataset.splits)
        start_check(worker, row.record.loss);
    evaluation_keep(worker, &row);
    return WORKER_ON;
}

static enum worker_end evaluate_due(struct worker *worker)
{
    int64_t limit;
    if (!trainer_evaluation_due(&worker->job->config, worker->curve.steps_done, &limit))
        return WORKER_ON;
    for (size_t i = 0; i < worker->dataset.split_count; i++) {
        const struct dataset_split *split = &worker->dataset.splits[i];
        if (evaluation_kept(&worker->curve, worker->curve.steps_done, split->name))
            continue;
        if (*worker->stop)
            return WORKER_STOPPED;
        enum worker_end end = evaluate_split(worker, split, limit);
        if (end != WORKER_ON)
            return end;
    }
    return WORKER_ON;
}

static enum worker_end step_once(struct worker *worker)
{
    struct step_record record;
    double begin = seconds_now();
    bool finite = trainer_step(worker->trainer, &record);
    record.seconds = worker->curve.seconds + seconds_now() - begin;
    enum worker_end end = told(record_write(worker->out, RECORD_STEP, &record, sizeof record));
    if (!finite)
        return isfinite(record.loss) ? diverged_send(worker, record.step, "gradient norm", record.grad_norm)
                                     : diverged_send(worker, record.step, "loss", record.loss);
    worker->curve.seconds = record.seconds;
    worker->curve.steps_done = trainer_steps_done(worker->trainer);
    step_keep(worker, &record);
    return end;
}

/* The weights under their names: what outlives the checkpoints. */
static bool weights_write(const struct worker *worker, struct error *err)
{
    struct model *model = trainer_model(worker->trainer);
    const struct tensor_table *table = model_tensors(model);
    struct safetensors_entry *entries = memory_alloc(table->count, sizeof *entries);
    for (size_t i = 0; i < table->count; i++) {
        const struct tensor *tensor = &table->tensors[i];
        entries[i] = (struct safetensors_entry){.name = tensor->name,
                                                .dtype = sizeof(real) == 4 ? SAFETENSORS_F32 : SAFETENSORS_F64,
                                                .dims = tensor->dims,
                                                .shape = {tensor->shape[0], tensor->shape[1]},
                                                .data = model_parameters(model) + tensor->offset};
    }
    char steps[24];
    snprintf(steps, sizeof steps, "%" PRId64, worker->curve.steps_done);
    const char *const metadata[] = {"format", "runner", "run_key", worker->job->key, "steps", steps, NULL};
    char *folder = path_join(worker->job->checkpoint_folder, worker->job->key);
    char *path = path_join(folder, "final.safetensors");
    bool ok = folder_make(folder, err) && safetensors_write(path, entries, table->count, metadata, err);
    memory_free(path);
    memory_free(folder);
    memory_free(entries);
    return ok;
}

static enum worker_end finish(struct worker *worker)
{
    struct error err;
    if (!weights_write(worker, &err))
        return environment_fail(worker, &err);
    int64_t steps = worker->curve.steps_done;
    if (!record_write(worker->out, RECORD_FINISHED, &steps, sizeof steps))
        return WORKER_STOPPED;
    return WORKER_FINISHED;
}

static enum worker_end train(struct worker *worker)
{
    for (;;) {
        enum worker_end end = evaluate_due(worker);
        if (end == WORKER_ON && checkpoint_due(worker))
            end = checkpoint_save(worker);
        if (end != WORKER_ON)
            return end;
        if (worker->curve.steps_done >= worker->job->config.training.steps)
            return finish(worker);
        if (*worker->stop)
            return WORKER_STOPPED;
        end = step_once(worker);
        if (end != WORKER_ON)
            return end;
    }
}

/* State and curve of the newest checkpoint, or of step 0, and the record that says so. */
static bool resume(struct worker *worker, enum worker_end *end, struct error *err)
{
    struct checkpoint *curve = &worker->curve;
    struct trainer_state state = trainer_state(worker->trainer);
    if (checkpoint_read(worker->job->checkpoint_folder, worker->job->key, &state, curve, note_send, worker, err))
        trainer_resume(worker->trainer, curve->steps_done);
    else if (*err->text)
        return false;
    worker->step_capacity = curve->step_count;
    worker->evaluation_capacity = curve->evaluation_count;
    worker->saved_steps = curve->steps_done;
    worker->saved_evaluations = curve->evaluation_count;
    worker->next_save = seconds_now() + CHECKPOINT_SECONDS;
    struct record_start start = {
        .step = curve->steps_done, .step_count = curve->step_count, .evaluation_count = curve->evaluation_count};
    environment_describe(&start.environment, worker->job->config.training.precision);
    *end = told(record_write_start(worker->out, &start, curve->steps, curve->evaluations));
    return true;
}

/* What is wrong with this run's own folder costs this run; what is wrong with the disk is met on writing. */
static bool place_check(const struct job *job, struct error *err)
{
    struct stat status;
    char *path = path_join(job->checkpoint_folder, job->key);
    bool good = true;
    if (stat(path, &status) == 0 && !S_ISDIR(status.st_mode))
        good = error_set(err, "this run's folder '%s' cannot be used: a %s of that name is there", path,
                         file_kind_name(status.st_mode));
    else if (access(path, R_OK | W_OK | X_OK) != 0 && errno == EACCES)
        good = error_set(err, "this run's folder '%s' cannot be used: %s", path, strerror(errno));
    memory_free(path);
    return good;
}

static bool begin(struct worker *worker, enum worker_end *end, struct error *err)
{
    if (!place_check(worker->job, err) ||
        !dataset_open(worker->job->dataset_path, worker->job->config.model.context_length, &worker->dataset, err))
        return false;
    worker->trainer = trainer_create(&worker->job->config, worker->job->seed,
                                     tokenizer_vocab_size(worker->dataset.tokenizer), &worker->dataset.train, err);
    return worker->trainer && resume(worker, end, err);
}

static int end_code(struct worker *worker, enum worker_end end)
{
    if (end == WORKER_STOPPED)
        end = checkpoint_save(worker);
    if (end == WORKER_ENVIRONMENT) {
        fprintf(stderr, "%s\n", worker->message);
        record_write_text(worker->out, RECORD_ENVIRONMENT, worker->message);
        return EXIT_ENVIRONMENT;
    }
    return end == WORKER_FINISHED || end == WORKER_DIVERGED ? EXIT_DONE : EXIT_STOPPED;
}

int worker_run(const struct job *job, int out, const volatile sig_atomic_t *stop)
{
    struct worker worker = {.job = job, .stop = stop, .out = out};
    enum worker_end end = WORKER_ON;
    struct error err = {0};
    int code = EXIT_USAGE;
    if (begin(&worker, &end, &err))
        code = end_code(&worker, end == WORKER_ON ? train(&worker) : end);
    else
        fprintf(stderr, "%s\n", err.text);
    checkpoint_release(&worker.curve);
    trainer_free(worker.trainer);
    dataset_close(&worker.dataset);
    return code;
}
