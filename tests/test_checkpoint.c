/* Checkpoints: what was written is read, what is damaged is passed over, and a resumed run equals an uninterrupted one.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/checkpoint.h"
#include "tests/folder_case.h"

static const char key[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
enum { COUNT = 37, STEPS = 5, EVALUATIONS = 2, TRAINED = 12 };

static char notes[4096];

static void checkpoint_begin(void)
{
    folder_open();
    notes[0] = 0;
}

static void run_path(char path[256], const char *name)
{
    snprintf(path, 256, "%s/%s/%s", folder, key, name);
}

TestSuite(checkpoint, .init = checkpoint_begin, .fini = folder_close);

static void note_keep(void *context, const char *text)
{
    (void)context;
    strncat(notes, text, sizeof notes - strlen(notes) - 2);
    strncat(notes, "\n", sizeof notes - strlen(notes) - 1);
}

struct buffers {
    real parameters[COUNT], first[COUNT], second[COUNT];
};

static struct trainer_state state_of(struct buffers *buffers)
{
    return (struct trainer_state){buffers->parameters, buffers->first, buffers->second, COUNT};
}

/* Everything in it is a function of n. */
static void write_at(int64_t n)
{
    struct buffers buffers;
    struct step_record steps[STEPS];
    struct evaluation_row evaluations[EVALUATIONS];
    for (int i = 0; i < COUNT; i++) {
        buffers.parameters[i] = (real)(n * 1000 + i);
        buffers.first[i] = (real)(n * 2000 + i);
        buffers.second[i] = (real)(n * 3000 + i);
    }
    memset(evaluations, 0, sizeof evaluations);
    for (int i = 0; i < STEPS; i++)
        steps[i] = (struct step_record){.step = i, .loss = (double)n + 0.1 * i, .batch_checksum = (uint64_t)n};
    for (int i = 0; i < EVALUATIONS; i++) {
        evaluations[i].step = n;
        snprintf(evaluations[i].split, sizeof evaluations[i].split, "split%d", i);
    }
    struct checkpoint checkpoint = {n, (double)n / 3, steps, STEPS, evaluations, EVALUATIONS};
    struct trainer_state state = state_of(&buffers);
    struct error err = {0};
    cr_assert(checkpoint_write(folder, key, &state, &checkpoint, &err), "%s", err.text);
}

static bool read_back(struct buffers *buffers, struct checkpoint *checkpoint)
{
    struct trainer_state state = state_of(buffers);
    struct error err;
    bool found = checkpoint_read(folder, key, &state, checkpoint, note_keep, NULL, &err);
    cr_assert(found || !*err.text, "%s", err.text);
    return found;
}

static void expect_step(int64_t n)
{
    struct buffers buffers;
    struct checkpoint checkpoint;
    cr_assert(read_back(&buffers, &checkpoint), "notes: %s", notes);
    cr_assert_eq(checkpoint.steps_done, n);
    cr_assert_eq(checkpoint.seconds, (double)n / 3);
    cr_assert_eq(checkpoint.step_count, STEPS);
    cr_assert_eq(checkpoint.evaluation_count, EVALUATIONS);
    cr_assert_eq(checkpoint.steps[4].loss, (double)n + 0.1 * 4);
    cr_assert_str_eq(checkpoint.evaluations[1].split, "split1");
    cr_assert_eq(buffers.parameters[COUNT - 1], (real)(n * 1000 + COUNT - 1));
    cr_assert_eq(buffers.first[7], (real)(n * 2000 + 7));
    cr_assert_eq(buffers.second[0], (real)(n * 3000));
    checkpoint_release(&checkpoint);
}

Test(checkpoint, what_was_written_is_read_and_two_generations_are_kept)
{
    char path[256];
    for (int64_t n = 8; n <= 11; n++)
        write_at(n);
    cr_assert_eq(checkpoint_newest(folder, key), 11);
    expect_step(11);
    cr_assert_str_eq(notes, "");
    run_path(path, "step-10.ckpt");
    cr_assert_eq(access(path, F_OK), 0);
    run_path(path, "step-9.ckpt");
    cr_assert_neq(access(path, F_OK), 0);
}

Test(checkpoint, without_one_nothing_is_found_and_nothing_is_wrong)
{
    struct buffers buffers;
    struct checkpoint checkpoint;
    cr_assert_not(read_back(&buffers, &checkpoint));
    cr_assert_eq(checkpoint_newest(folder, key), -1);
    checkpoint_release(&checkpoint);
}

enum damage { CUT_IN_HALF, CUT_TO_ZERO, CUT_BY_ONE, BYTE_FLIPPED, HEADER_FLIPPED, HASH_FLIPPED, TEN_ADDED, DAMAGES };

static void damage_do(const char *path, enum damage damage)
{
    struct stat status;
    int fd = open(path, O_RDWR);
    cr_assert(fd >= 0 && fstat(fd, &status) == 0);
    off_t size = status.st_size, at = damage == HEADER_FLIPPED ? 100 : damage == HASH_FLIPPED ? size - 1 : size / 2;
    unsigned char byte;
    switch (damage) {
    case CUT_IN_HALF: cr_assert_eq(ftruncate(fd, size / 2), 0); break;
    case CUT_TO_ZERO: cr_assert_eq(ftruncate(fd, 0), 0); break;
    case CUT_BY_ONE: cr_assert_eq(ftruncate(fd, size - 1), 0); break;
    case TEN_ADDED: cr_assert_eq(pwrite(fd, "0123456789", 10, size), 10); break;
    case BYTE_FLIPPED:
    case HEADER_FLIPPED:
    case HASH_FLIPPED:
        cr_assert_eq(pread(fd, &byte, 1, at), 1);
        byte ^= 0x10;
        cr_assert_eq(pwrite(fd, &byte, 1, at), 1);
        break;
    case DAMAGES: break;
    }
    close(fd);
}

Test(checkpoint, a_damaged_newest_one_is_named_and_the_one_before_it_is_used)
{
    char path[256];
    for (enum damage damage = 0; damage < DAMAGES; damage++) {
        notes[0] = 0;
        write_at(3);
        write_at(4);
        run_path(path, "step-4.ckpt");
        damage_do(path, damage);
        expect_step(3);
        cr_assert_not_null(strstr(notes, "step-4.ckpt'"), "damage %d: %s", (int)damage, notes);
        cr_assert_not_null(strstr(notes, "trying the one before it, step-3.ckpt"), "damage %d: %s", (int)damage, notes);
    }
}

/* Written by somebody who knows the format: the SHA-256 is right. */
Test(checkpoint, a_name_of_a_split_without_an_end_is_refused_whatever_the_hash_says)
{
    struct buffers buffers = {{0}, {0}, {0}};
    struct trainer_state state = state_of(&buffers);
    struct evaluation_row row = {.step = 4};
    struct error err = {0};
    memset(row.split, 'x', sizeof row.split);
    struct checkpoint hostile = {.steps_done = 4, .evaluations = &row, .evaluation_count = 1};
    write_at(3);
    cr_assert(checkpoint_write(folder, key, &state, &hostile, &err), "%s", err.text);
    expect_step(3);
    cr_assert_not_null(strstr(notes, "step-4.ckpt' has a split's name without an end"), "%s", notes);
}

Test(checkpoint, when_all_are_damaged_the_run_starts_from_step_0_and_says_so)
{
    char path[256];
    struct buffers buffers;
    struct checkpoint checkpoint;
    write_at(3);
    run_path(path, "step-3.ckpt");
    damage_do(path, CUT_IN_HALF);
    memset(&buffers, 7, sizeof buffers);
    struct buffers before = buffers;
    cr_assert_not(read_back(&buffers, &checkpoint));
    cr_assert_eq(memcmp(&before, &buffers, sizeof buffers), 0, "the buffers were touched");
    cr_assert_not_null(strstr(notes, "starting from step 0"), "%s", notes);
}

Test(checkpoint, a_file_left_by_a_killed_writer_is_removed_and_foreign_names_are_left)
{
    char stale[256], foreign[256];
    write_at(3);
    run_path(stale, ".tmp-1-0");
    run_path(foreign, "step-03.ckpt");
    close(open(stale, O_CREAT | O_WRONLY, 0600));
    close(open(foreign, O_CREAT | O_WRONLY, 0600));
    expect_step(3);
    cr_assert_neq(access(stale, F_OK), 0);
    cr_assert_eq(access(foreign, F_OK), 0);
    cr_assert_str_eq(notes, "");
}

Test(checkpoint, a_full_disk_is_named_and_the_earlier_one_stays)
{
    struct rlimit limit, small;
    struct buffers buffers = {{0}, {0}, {0}};
    struct trainer_state state = state_of(&buffers);
    struct checkpoint checkpoint = {.steps_done = 4};
    struct error err = {0};
    write_at(3);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &limit);
    small = limit;
    small.rlim_cur = 100;
    setrlimit(RLIMIT_FSIZE, &small);
    bool written = checkpoint_write(folder, key, &state, &checkpoint, &err);
    setrlimit(RLIMIT_FSIZE, &limit);
    cr_assert_not(written);
    cr_assert_not_null(strstr(err.text, "File too large"), "%s", err.text);
    expect_step(3);
}

Test(checkpoint, removal_leaves_the_weights_of_the_finished_run)
{
    char path[256];
    struct error err = {0};
    write_at(3);
    write_at(4);
    run_path(path, "final.safetensors");
    close(open(path, O_CREAT | O_WRONLY, 0600));
    cr_assert(checkpoint_remove(folder, key, &err), "%s", err.text);
    cr_assert_eq(checkpoint_newest(folder, key), -1);
    cr_assert_eq(access(path, F_OK), 0);
}

/* A small model with everything random in it, on text that is a function of the position. */
static struct config small_config(void)
{
    struct config config;
    config_init(&config);
    config.model.context_length = 8;
    config.model.d_model = 12;
    config.model.n_heads = 2;
    config.model.n_layers = 2;
    config.model.dropout = 0.5;
    config.training.steps = TRAINED;
    config.training.batch_size = 3;
    config.training.warmup_steps = 4;
    return config;
}

static struct trainer *small_trainer(const struct config *config)
{
    static int32_t tokens[500];
    static uint32_t bytes[500];
    struct token_stream stream = {tokens, bytes, 500};
    struct error err = {0};
    for (int i = 0; i < 500; i++) {
        tokens[i] = (i * i + 3 * i) % 17;
        bytes[i] = 1;
    }
    struct trainer *trainer = trainer_create(config, 5, 17, &stream, &err);
    cr_assert_not_null(trainer, "%s", err.text);
    return trainer;
}

static void train_to(struct trainer *trainer, int64_t steps, struct step_record *curve)
{
    while (trainer_steps_done(trainer) < steps) {
        int64_t step = trainer_steps_done(trainer);
        cr_assert(trainer_step(trainer, &curve[step]));
        curve[step].seconds = 0;
    }
}

Test(checkpoint, a_run_resumed_at_any_step_ends_with_the_bits_of_an_uninterrupted_one)
{
    struct config config = small_config();
    struct step_record whole[TRAINED], part[TRAINED];
    struct trainer *uninterrupted = small_trainer(&config);
    train_to(uninterrupted, TRAINED, whole);
    struct trainer_state expected = trainer_state(uninterrupted);
    size_t bytes = expected.count * sizeof(real);
    for (int64_t stop = 1; stop < TRAINED; stop += 3) {
        struct error err = {0};
        struct trainer *first = small_trainer(&config), *second = small_trainer(&config);
        train_to(first, stop, part);
        struct trainer_state state = trainer_state(first);
        struct checkpoint checkpoint = {.steps_done = stop, .steps = part, .step_count = (size_t)stop};
        cr_assert(checkpoint_write(folder, key, &state, &checkpoint, &err), "%s", err.text);
        trainer_free(first);

        state = trainer_state(second);
        cr_assert(checkpoint_read(folder, key, &state, &checkpoint, note_keep, NULL, &err), "%s", notes);
        cr_assert_eq(memcmp(checkpoint.steps, whole, (size_t)stop * sizeof *whole), 0);
        trainer_resume(second, checkpoint.steps_done);
        train_to(second, TRAINED, part);
        cr_assert_eq(memcmp(part, whole, sizeof whole), 0, "curves differ after a stop at step %d", (int)stop);
        cr_assert_eq(memcmp(state.parameters, expected.parameters, bytes), 0, "weights, stop at %d", (int)stop);
        cr_assert_eq(memcmp(state.first_moment, expected.first_moment, bytes), 0, "moments, stop at %d", (int)stop);
        cr_assert_eq(memcmp(state.second_moment, expected.second_moment, bytes), 0, "moments, stop at %d", (int)stop);
        checkpoint_release(&checkpoint);
        trainer_free(second);
    }
    trainer_free(uninterrupted);
}
