/* A worker in this process: a job on a small text, its records in a file. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "core/bf16.h"
#include "core/memory.h"
#include "runner/checkpoint.h"
#include "runner/command.h"
#include "runner/dataset.h"
#include "runner/file.h"
#include "runner/record.h"
#include "runner/safetensors.h"
#include "runner/worker.h"
#include "tests/folder_case.h"

static volatile sig_atomic_t stop;

static void worker_begin(void)
{
    folder_open();
    stop = 0;
}

TestSuite(worker, .init = worker_begin, .fini = folder_close, .timeout = 120);

static void inside(char path[4096], const char *name)
{
    snprintf(path, 4096, "%s/%s", folder, name);
}

/* A text of its own, a model with dropout 0.5, evaluations every 5 steps: 23 steps take some tenths of a second. */
static struct job job_make(char last_of_key)
{
    struct job job = {.seed = 3};
    struct dataset dataset = {0};
    struct error err = {0};
    char text[4096], cache[4096], *lines = NULL;
    size_t size;
    FILE *out = open_memstream(&lines, &size);
    for (int i = 0; i < 300; i++)
        fprintf(out, "line %d of the text has %d words in it\n", i * 7 % 31, i * i % 13);
    fclose(out);
    inside(text, "text.txt");
    inside(cache, "cache");
    cr_assert(folder_make(cache, &err) && file_write(text, lines, size, &err), "%s", err.text);
    free(lines);

    config_init(&job.config);
    job.config.model.context_length = 16;
    job.config.model.d_model = 16;
    job.config.model.n_heads = 2;
    job.config.model.n_layers = 1;
    job.config.model.dropout = 0.5;
    job.config.training.steps = 23;
    job.config.training.batch_size = 2;
    job.config.evaluation.interval = 5;
    job.config.evaluation.blocks = 3;
    job.config.evaluation.final_blocks = 5;
    job.config.tokenizer.kind = TOKENIZER_BYTE;
    char *paths[] = {text};
    struct data_spec spec = {.corpus = {.given = true, .paths = paths, .path_count = 1, .folder = folder}};
    cr_assert(dataset_prepare(&spec, &job.config, cache, NULL, NULL, &dataset, &err), "%s", err.text);
    snprintf(job.dataset_path, sizeof job.dataset_path, "%s", dataset.path);
    dataset_close(&dataset);
    memset(job.key, 'a', 64);
    job.key[63] = last_of_key;
    inside(job.checkpoint_folder, "checkpoints");
    return job;
}

/* What the records of one process of a worker add up to. */
struct story {
    struct step_record steps[64];
    struct evaluation_row evaluations[64];
    size_t step_count, evaluation_count, notes, checkpoints;
    bool finished, diverged;
    struct record_diverged divergence;
    int64_t from;
    int code;
};

static void story_add(struct story *story, const struct record *record)
{
    switch (record->kind) {
    case RECORD_START:
        story->from = record->start->step;
        story->step_count = record->start->step_count;
        story->evaluation_count = record->start->evaluation_count;
        memcpy(story->steps, record->steps, story->step_count * sizeof *story->steps);
        memcpy(story->evaluations, record->evaluations, story->evaluation_count * sizeof *story->evaluations);
        break;
    case RECORD_STEP: story->steps[story->step_count++] = *record->steps; break;
    case RECORD_EVALUATION: story->evaluations[story->evaluation_count++] = *record->evaluations; break;
    case RECORD_CHECKPOINT: story->checkpoints++; break;
    case RECORD_FINISHED: story->finished = true; break;
    case RECORD_DIVERGED:
        story->diverged = true;
        story->divergence = *record->diverged;
        break;
    case RECORD_NOTE: story->notes++; break;
    case RECORD_ENVIRONMENT: break;
    }
}

static struct story work(const struct job *job)
{
    struct story story = {.from = -1};
    struct record_reader reader = {0};
    struct record record;
    struct error err = {0};
    char path[4096];
    inside(path, "records");
    int fd = open(path, O_CREAT | O_TRUNC | O_RDWR, 0600);
    cr_assert_geq(fd, 0);
    story.code = worker_run(job, fd, &stop);
    lseek(fd, 0, SEEK_SET);
    enum record_status status = RECORD_MORE;
    while (record_reader_fill(&reader, fd) > 0)
        while ((status = record_next(&reader, &record, &err)) == RECORD_READY)
            story_add(&story, &record);
    cr_assert_eq(status, RECORD_MORE, "%s", err.text);
    cr_assert_eq(record_reader_left(&reader), 0);
    record_reader_release(&reader);
    close(fd);
    return story;
}

/* Time differs from one process to the next; nothing else may. */
static void expect_equal(struct story *a, struct story *b)
{
    cr_assert_eq(a->step_count, b->step_count);
    cr_assert_eq(a->evaluation_count, b->evaluation_count);
    for (size_t i = 0; i < a->step_count; i++)
        a->steps[i].seconds = b->steps[i].seconds = 0;
    for (size_t i = 0; i < a->evaluation_count; i++)
        a->evaluations[i].seconds = b->evaluations[i].seconds = 0;
    cr_assert_eq(memcmp(a->steps, b->steps, a->step_count * sizeof *a->steps), 0, "steps differ");
    cr_assert_eq(memcmp(a->evaluations, b->evaluations, a->evaluation_count * sizeof *a->evaluations), 0,
                 "evaluations differ");
}

static void weights_read(const struct job *job, char **bytes, size_t *size)
{
    struct error err = {0};
    char path[8192];
    snprintf(path, sizeof path, "%s/%s/final.safetensors", job->checkpoint_folder, job->key);
    struct safetensors *file = safetensors_open(path, &err);
    cr_assert_not_null(file, "%s", err.text);
    cr_assert_str_eq(safetensors_metadata(file, "run_key"), job->key);
    cr_assert_not_null(safetensors_find(file, "blocks.0.attention.query.weight"));
    size_t count = safetensors_count(file);
    *size = 0;
    for (size_t i = 0; i < count; i++)
        *size += safetensors_at(file, i)->bytes;
    char *next = *bytes = memory_alloc(*size, 1);
    for (size_t i = 0; i < count; i++) {
        memcpy(next, safetensors_at(file, i)->data, safetensors_at(file, i)->bytes);
        next += safetensors_at(file, i)->bytes;
    }
    safetensors_close(file);
}

Test(worker, a_run_logs_every_step_and_each_planned_evaluation_of_each_split)
{
    struct job job = job_make('1');
    struct story story = work(&job);
    cr_assert_eq(story.code, EXIT_DONE);
    cr_assert(story.finished && !story.diverged);
    cr_assert_eq(story.from, 0);
    cr_assert_eq(story.step_count, 23);
    static const int64_t planned[] = {0, 5, 10, 15, 20, 23};
    size_t splits = story.evaluation_count / 6;
    cr_assert(splits >= 1 && story.evaluation_count == 6 * splits, "%zu", story.evaluation_count);
    for (size_t i = 0; i < 6; i++) {
        cr_assert_eq(story.evaluations[i * splits].step, planned[i]);
        cr_assert_eq(story.evaluations[i * splits].record.blocks, i == 5 ? 5 : 3);
        cr_assert_eq(story.evaluations[i * splits].tokens, planned[i] * 32);
    }
    cr_assert_str_eq(story.evaluations[0].split, "validation");
    for (size_t i = 1; i < story.step_count; i++)
        cr_assert_geq(story.steps[i].seconds, story.steps[i - 1].seconds);
}

static void stop_note(int number)
{
    (void)number;
    stop = 1;
}

/* Stops the next worker after so many microseconds; 0: does not, and no earlier call does. */
static void stop_after(long microseconds)
{
    struct itimerval none = {.it_value = {.tv_usec = 0}}, timer = {.it_value = {.tv_usec = microseconds}};
    signal(SIGALRM, stop_note);
    setitimer(ITIMER_REAL, &none, NULL);
    stop = 0;
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void expect_equal_weights(const struct job *job, const struct job *other, bool equal)
{
    char *a, *b;
    size_t size_a, size_b;
    weights_read(job, &a, &size_a);
    weights_read(other, &b, &size_b);
    cr_assert(size_a == size_b && (memcmp(a, b, size_a) == 0) == equal, "weights %s", equal ? "differ" : "are equal");
    memory_free(a);
    memory_free(b);
}

/* The job under another key, stopped and taken up again until it is done. */
static void expect_resumable(const struct job *whole_job, char last_of_key)
{
    struct job job = *whole_job;
    job.key[63] = last_of_key;
    job.checkpoint_every = 4;
    stop_after(0);
    struct story whole = work(whole_job), part = {.from = -1};
    int processes = 0;
    for (long wait = 500; !part.finished && processes < 2000; wait += 200, processes++) {
        stop_after(wait);
        part = work(&job);
        cr_assert(part.finished || part.code == EXIT_STOPPED, "code %d", part.code);
        cr_assert_eq(part.notes, 0);
    }
    cr_assert(part.finished);
    cr_assert_gt(processes, 1, "it was never stopped");
    expect_equal(&whole, &part);
    expect_equal_weights(whole_job, &job, true);
}

Test(worker, stopped_at_any_moments_it_ends_with_the_bits_of_an_uninterrupted_run)
{
    struct job job = job_make('1');
    expect_resumable(&job, '2');
}

static void expect_resumable_in(enum bf16_path path)
{
    static const int precisions[] = {PRECISION_BF16X3, PRECISION_BF16};
    struct job plain = job_make('0');
    cr_assert(bf16_select(path, NULL));
    cr_assert(work(&plain).finished);
    for (size_t i = 0; i < sizeof precisions / sizeof precisions[0]; i++) {
        struct job job = plain;
        job.key[63] = (char)('1' + 2 * i);
        job.config.training.precision = precisions[i];
        expect_resumable(&job, (char)('2' + 2 * i));
        expect_equal_weights(&plain, &job, false);
    }
}

Test(worker, stopped_at_any_moments_it_ends_with_the_same_bits_in_every_other_precision)
{
    expect_resumable_in(BF16_SOFTWARE);
}

Test(worker, stopped_at_any_moments_it_ends_with_the_same_bits_where_hardware_multiplies_bf16)
{
    if (bf16_select(BF16_HARDWARE, NULL))
        expect_resumable_in(BF16_HARDWARE);
    else
        cr_assert_not(bf16_in_hardware());
}

Test(worker, a_damaged_checkpoint_costs_only_the_steps_since_the_one_before)
{
    struct job whole_job = job_make('1'), job = whole_job;
    job.key[63] = '2';
    job.checkpoint_every = 4;
    struct story whole = work(&whole_job), first = work(&job);
    cr_assert_eq(first.checkpoints, 5);
    char path[8192];
    snprintf(path, sizeof path, "%s/%s/step-20.ckpt", job.checkpoint_folder, job.key);
    cr_assert_eq(truncate(path, 1000), 0);
    struct story second = work(&job);
    cr_assert_eq(second.from, 16);
    cr_assert_eq(second.notes, 1);
    cr_assert(second.finished);
    expect_equal(&whole, &second);
}

Test(worker, a_finished_run_started_again_trains_nothing)
{
    struct job job = job_make('1');
    job.checkpoint_every = 23;
    struct story first = work(&job), second = work(&job);
    cr_assert_eq(first.checkpoints, 1);
    cr_assert_eq(second.from, 23);
    cr_assert(second.finished);
    expect_equal(&first, &second);
}

Test(worker, a_run_that_diverges_says_at_which_step_and_keeps_the_checkpoint_before_it)
{
    struct job job = job_make('1');
    job.config.training.learning_rate = 1e30;
    job.config.training.warmup_steps = 0;
    job.config.training.grad_clip = 0;
    job.checkpoint_every = 1;
    struct story story = work(&job);
    cr_assert_eq(story.code, EXIT_DONE);
    cr_assert(story.diverged && !story.finished);
    int64_t step = story.divergence.step;
    cr_assert(strstr(story.divergence.reason, " is nan") || strstr(story.divergence.reason, " is inf"), "%s",
              story.divergence.reason);
    int64_t newest = checkpoint_newest(job.checkpoint_folder, job.key);
    cr_assert(newest >= 0 && newest <= step, "checkpoint %d, diverged at %d", (int)newest, (int)step);
    struct story again = work(&job);
    cr_assert(again.diverged);
    cr_assert_eq(again.divergence.step, step);
}

Test(worker, a_reader_that_is_gone_stops_it_with_a_checkpoint)
{
    struct job job = job_make('1');
    int ends[2];
    signal(SIGPIPE, SIG_IGN);
    cr_assert_eq(pipe(ends), 0);
    close(ends[0]);
    cr_assert_eq(worker_run(&job, ends[1], &stop), EXIT_STOPPED);
    close(ends[1]);
}

Test(worker, a_full_disk_is_an_environment_error)
{
    struct job job = job_make('1');
    char text[128];
    snprintf(text, sizeof text, "%s/blocked", folder);
    close(open(text, O_CREAT | O_WRONLY, 0600));
    snprintf(job.checkpoint_folder, sizeof job.checkpoint_folder, "%s/x", text);
    job.checkpoint_every = 2;
    struct story story = work(&job);
    cr_assert_eq(story.code, EXIT_ENVIRONMENT);
    cr_assert_eq(story.step_count, 2);
}

Test(worker, a_job_survives_json_with_any_bytes_in_its_paths)
{
    struct job job = {.seed = -5, .checkpoint_every = 7}, back;
    struct error err = {0};
    memset(job.key, '0', 64);
    config_init(&job.config);
    job.config.training.learning_rate = 1.0 / 3;
    snprintf(job.dataset_path, sizeof job.dataset_path, "/a \"b\"/\xff\xc3\xa4\n");
    snprintf(job.checkpoint_folder, sizeof job.checkpoint_folder, "c");
    char *json = job_json(&job);
    cr_assert(job_from_json(json, &back, &err), "%s", err.text);
    cr_assert_str_eq(back.dataset_path, job.dataset_path);
    cr_assert_eq(back.seed, -5);
    cr_assert_eq(back.checkpoint_every, 7);
    cr_assert_eq(back.config.training.learning_rate, 1.0 / 3);
    memory_free(json);
    cr_assert_not(job_from_json("{\"key\": \"../x\"}", &back, &err));
    cr_assert_not(job_from_json("[", &back, &err));
}
