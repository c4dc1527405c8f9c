/* Checkpoints: written through file.h, read only after size, header and SHA-256 agree. */
#include "runner/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/file.h"
#include "runner/metric_sql.h"

static const char checkpoint_magic[8] = "RUNCKPT";
/* Its evaluations have all metrics: the version counts those that joined. */
enum { CHECKPOINT_VERSION = 1 + METRIC_COUNT - METRICS_AT_FIRST };
enum { CHECKPOINT_KEPT = 2, CHECKPOINT_CHUNK = 1 << 20, CHECKPOINT_FOLDER = 4096 };

struct checkpoint_header {
    char magic[8];
    uint32_t version, real_size;
    char key[72]; /* 64 digits, zeros */
    int64_t steps_done;
    double seconds;
    uint64_t step_count, evaluation_count, count;
};
_Static_assert(sizeof(struct checkpoint_header) == 16 + 72 + 40, "no padding: all bytes are hashed and compared");

/* "<folder>/<key>/<name>"; name may be empty. */
static bool checkpoint_path(char path[CHECKPOINT_FOLDER], const char *folder, const char *key, const char *name,
                            struct error *err)
{
    int length = snprintf(path, CHECKPOINT_FOLDER, "%s/%s%s%s", folder, key, *name ? "/" : "", name);
    if (length < 0 || length >= CHECKPOINT_FOLDER)
        return error_set(err, "checkpoint folder '%.200s...': the path is longer than %d bytes", folder,
                         CHECKPOINT_FOLDER - 1);
    return true;
}

static const char *checkpoint_name(char name[64], int64_t steps)
{
    snprintf(name, 64, "step-%" PRId64 ".ckpt", steps);
    return name;
}

/* The N of "step-N.ckpt"; -1 for any other name. */
static int64_t checkpoint_name_steps(const char *name)
{
    char again[64];
    if (strncmp(name, "step-", 5) != 0)
        return -1;
    int64_t steps = strtoll(name + 5, NULL, 10);
    return steps >= 0 && strcmp(checkpoint_name(again, steps), name) == 0 ? steps : -1;
}

static int descending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

int64_t *checkpoint_list(const char *folder, const char *key, size_t *count)
{
    char path[CHECKPOINT_FOLDER];
    int64_t *steps = memory_alloc(0, sizeof *steps);
    *count = 0;
    DIR *directory = checkpoint_path(path, folder, key, "", NULL) ? opendir(path) : NULL;
    if (!directory)
        return steps;
    for (struct dirent *entry; (entry = readdir(directory));) {
        int64_t found = checkpoint_name_steps(entry->d_name);
        if (found < 0)
            continue;
        steps = memory_grow(steps, *count * sizeof *steps, *count + 1, sizeof *steps);
        steps[(*count)++] = found;
    }
    closedir(directory);
    qsort(steps, *count, sizeof *steps, descending);
    return steps;
}

int64_t checkpoint_newest(const char *folder, const char *key)
{
    size_t count;
    int64_t *steps = checkpoint_list(folder, key, &count);
    int64_t newest = count ? steps[0] : -1;
    memory_free(steps);
    return newest;
}

/* Removes all but the `kept` newest. */
static bool checkpoint_trim(const char *folder, const char *key, size_t kept, struct error *err)
{
    size_t count;
    int64_t *steps = checkpoint_list(folder, key, &count);
    bool ok = true;
    for (size_t i = kept; i < count && ok; i++) {
        char path[CHECKPOINT_FOLDER], name[64];
        ok = checkpoint_path(path, folder, key, checkpoint_name(name, steps[i]), err) &&
             (unlink(path) == 0 || errno == ENOENT || error_set(err, "cannot remove '%s': %s", path, strerror(errno)));
    }
    memory_free(steps);
    return ok;
}

bool checkpoint_remove(const char *folder, const char *key, struct error *err)
{
    return checkpoint_trim(folder, key, 0, err);
}

bool checkpoint_move(const char *from, const char *to, const char *key, struct error *err)
{
    char old[CHECKPOINT_FOLDER], new[CHECKPOINT_FOLDER], name[64];
    if (checkpoint_newest(from, key) < 0 || checkpoint_newest(to, key) >= 0)
        return true;
    size_t count;
    int64_t *steps = checkpoint_list(from, key, &count);
    bool ok = checkpoint_path(new, to, key, "", err) && folder_make(new, err);
    for (size_t i = 0; i < count && ok; i++)
        ok = checkpoint_path(old, from, key, checkpoint_name(name, steps[i]), err) &&
             checkpoint_path(new, to, key, name, err) &&
             (rename(old, new) == 0 ||
              error_set(err, "cannot move '%.300s' to '%.300s': %s", old, new, strerror(errno)));
    memory_free(steps);
    return ok;
}

struct sink {
    struct file_writer file;
    SHA2_CTX hash;
};

static bool sink_write(struct sink *sink, const void *bytes, size_t size, struct error *err)
{
    SHA256Update(&sink->hash, bytes, size);
    return file_writer_add(&sink->file, bytes, size, err);
}

static bool checkpoint_put(struct sink *sink, const char *key, const struct trainer_state *state,
                           const struct checkpoint *checkpoint, struct error *err)
{
    struct checkpoint_header header = {.version = CHECKPOINT_VERSION,
                                       .real_size = sizeof(real),
                                       .steps_done = checkpoint->steps_done,
                                       .seconds = checkpoint->seconds,
                                       .step_count = checkpoint->step_count,
                                       .evaluation_count = checkpoint->evaluation_count,
                                       .count = state->count};
    memcpy(header.magic, checkpoint_magic, sizeof header.magic);
    memcpy(header.key, key, strnlen(key, sizeof header.key - 1));
    size_t reals = state->count * sizeof(real);
    unsigned char digest[SHA256_DIGEST_LENGTH];
    SHA256Init(&sink->hash);
    if (!sink_write(sink, &header, sizeof header, err) ||
        !sink_write(sink, checkpoint->steps, checkpoint->step_count * sizeof *checkpoint->steps, err) ||
        !sink_write(sink, checkpoint->evaluations, checkpoint->evaluation_count * sizeof *checkpoint->evaluations,
                    err) ||
        !sink_write(sink, state->parameters, reals, err) || !sink_write(sink, state->first_moment, reals, err) ||
        !sink_write(sink, state->second_moment, reals, err))
        return false;
    SHA256Final(digest, &sink->hash);
    return file_writer_add(&sink->file, digest, sizeof digest, err) && file_writer_commit(&sink->file, err);
}

bool checkpoint_write(const char *folder, const char *key, const struct trainer_state *state,
                      const struct checkpoint *checkpoint, struct error *err)
{
    char path[CHECKPOINT_FOLDER], name[64];
    struct sink sink = {0};
    bool ok = checkpoint_path(path, folder, key, "", err) && folder_make(path, err) &&
              checkpoint_path(path, folder, key, checkpoint_name(name, checkpoint->steps_done), err) &&
              file_writer_open(&sink.file, path, err) && checkpoint_put(&sink, key, state, checkpoint, err) &&
              checkpoint_trim(folder, key, CHECKPOINT_KEPT, err);
    file_writer_abandon(&sink.file);
    return ok;
}

static bool bytes_read(int fd, void *bytes, size_t size, struct error *err)
{
    char *next = bytes;
    while (size) {
        ssize_t got = read(fd, next, size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_set(err, "cannot be read: %s", strerror(errno));
        if (got == 0)
            return error_set(err, "ends too early");
        next += got;
        size -= (size_t)got;
    }
    return true;
}

/* Size of the file that the header promises; 0 when no file can be that large. */
static uint64_t checkpoint_size(const struct checkpoint_header *header)
{
    uint64_t steps, evaluations, reals, size = sizeof *header + SHA256_DIGEST_LENGTH;
    if (__builtin_mul_overflow(header->step_count, sizeof(struct step_record), &steps) ||
        __builtin_mul_overflow(header->evaluation_count, sizeof(struct evaluation_row), &evaluations) ||
        __builtin_mul_overflow(header->count, 3 * sizeof(real), &reals) || __builtin_add_overflow(size, steps, &size) ||
        __builtin_add_overflow(size, evaluations, &size) || __builtin_add_overflow(size, reals, &size))
        return 0;
    return size;
}

static bool header_check(const struct checkpoint_header *header, uint64_t size, const char *key, int64_t steps_done,
                         size_t count, struct error *err)
{
    if (memcmp(header->magic, checkpoint_magic, sizeof header->magic) != 0)
        return error_set(err, "is not a checkpoint");
    if (header->version != CHECKPOINT_VERSION || header->real_size != sizeof(real))
        return error_set(err, "has version %u with %u-byte numbers, expected version %d with %zu-byte numbers",
                         header->version, header->real_size, CHECKPOINT_VERSION, sizeof(real));
    if (size != checkpoint_size(header))
        return error_set(err, "has %" PRIu64 " bytes, expected %" PRIu64, size, checkpoint_size(header));
    if (strncmp(header->key, key, sizeof header->key) != 0 || header->steps_done != steps_done ||
        header->count != count)
        return error_set(err, "belongs to another run or step");
    return true;
}

/* Hashes the file but for its last bytes, which must be the hash. */
static bool hash_check(int fd, uint64_t size, struct error *err)
{
    SHA2_CTX hash;
    unsigned char digest[SHA256_DIGEST_LENGTH], stored[SHA256_DIGEST_LENGTH];
    unsigned char *chunk = memory_alloc(CHECKPOINT_CHUNK, 1);
    bool ok = lseek(fd, 0, SEEK_SET) == 0 || error_set(err, "cannot be read: %s", strerror(errno));
    SHA256Init(&hash);
    for (uint64_t left = size - sizeof stored; left && ok;) {
        size_t part = left < CHECKPOINT_CHUNK ? (size_t)left : CHECKPOINT_CHUNK;
        ok = bytes_read(fd, chunk, part, err);
        SHA256Update(&hash, chunk, part);
        left -= part;
    }
    SHA256Final(digest, &hash);
    memory_free(chunk);
    return ok && bytes_read(fd, stored, sizeof stored, err) &&
           (memcmp(digest, stored, sizeof digest) == 0 ||
            error_set(err, "does not have the SHA-256 it was written with"));
}

/* The name of a split is used as a text later, whoever wrote the file. */
static bool curve_check(const struct checkpoint *checkpoint, struct error *err)
{
    for (size_t i = 0; i < checkpoint->evaluation_count; i++) {
        const char *split = checkpoint->evaluations[i].split;
        if (!memchr(split, 0, sizeof checkpoint->evaluations[i].split))
            return error_set(err, "has a split's name without an end, in evaluation %zu", i);
    }
    return true;
}

static bool curve_take(int fd, const struct checkpoint_header *header, struct checkpoint *checkpoint, struct error *err)
{
    *checkpoint = (struct checkpoint){
        .steps_done = header->steps_done,
        .seconds = header->seconds,
        .steps = memory_alloc(header->step_count, sizeof *checkpoint->steps),
        .step_count = header->step_count,
        .evaluations = memory_alloc(header->evaluation_count, sizeof *checkpoint->evaluations),
        .evaluation_count = header->evaluation_count,
    };
    if (lseek(fd, sizeof *header, SEEK_SET) < 0)
        return error_set(err, "cannot be read: %s", strerror(errno));
    return bytes_read(fd, checkpoint->steps, checkpoint->step_count * sizeof *checkpoint->steps, err) &&
           bytes_read(fd, checkpoint->evaluations, checkpoint->evaluation_count * sizeof *checkpoint->evaluations,
                      err) &&
           curve_check(checkpoint, err);
}

static bool state_take(int fd, struct trainer_state *state, struct error *err)
{
    size_t reals = state->count * sizeof(real);
    return bytes_read(fd, state->parameters, reals, err) && bytes_read(fd, state->first_moment, reals, err) &&
           bytes_read(fd, state->second_moment, reals, err);
}

/* err: what is wrong with the file, to follow its name. *touched: the state's buffers have been written to. */
static bool checkpoint_take(const char *path, const char *key, int64_t steps_done, struct trainer_state *state,
                            struct checkpoint *checkpoint, bool *touched, struct error *err)
{
    struct checkpoint_header header;
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set(err, "cannot be read: %s", strerror(errno));
    bool ok = fstat(fd, &status) == 0 || error_set(err, "cannot be read: %s", strerror(errno));
    uint64_t size = ok ? (uint64_t)status.st_size : 0;
    ok = ok && (size >= sizeof header || error_set(err, "has %" PRIu64 " bytes, too few for a checkpoint", size)) &&
         bytes_read(fd, &header, sizeof header, err) &&
         header_check(&header, size, key, steps_done, state->count, err) && hash_check(fd, size, err) &&
         curve_take(fd, &header, checkpoint, err);
    if (ok) {
        *touched = true;
        ok = state_take(fd, state, err);
    }
    if (!ok)
        checkpoint_release(checkpoint);
    close(fd);
    return ok;
}

bool checkpoint_check(const char *folder, const char *key, int64_t steps_done, bool *gone, struct error *err)
{
    struct checkpoint_header header;
    struct stat status;
    char path[CHECKPOINT_FOLDER], name[64];
    *gone = false;
    if (!checkpoint_path(path, folder, key, checkpoint_name(name, steps_done), err))
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    *gone = fd < 0 && errno == ENOENT;
    if (fd < 0)
        return error_set(err, "cannot be read: %s", strerror(errno));
    bool ok = fstat(fd, &status) == 0 || error_set(err, "cannot be read: %s", strerror(errno));
    uint64_t size = ok ? (uint64_t)status.st_size : 0;
    ok = ok && (size >= sizeof header || error_set(err, "has %" PRIu64 " bytes, too few for a checkpoint", size)) &&
         bytes_read(fd, &header, sizeof header, err) &&
         header_check(&header, size, key, steps_done, header.count, err) && hash_check(fd, size, err);
    close(fd);
    return ok;
}

static void damage_note(const char *path, const char *what, const int64_t *next, void (*note)(void *, const char *),
                        void *context)
{
    char text[CHECKPOINT_FOLDER + sizeof(struct error) + 128], name[64];
    if (next)
        snprintf(text, sizeof text, "checkpoint '%s' %s: trying the one before it, %s", path, what,
                 checkpoint_name(name, *next));
    else
        snprintf(text, sizeof text, "checkpoint '%s' %s, and there is none before it: starting from step 0", path,
                 what);
    if (note)
        note(context, text);
}

bool checkpoint_read(const char *folder, const char *key, struct trainer_state *state, struct checkpoint *checkpoint,
                     void (*note)(void *context, const char *text), void *context, struct error *err)
{
    size_t count;
    int64_t *steps = checkpoint_list(folder, key, &count);
    bool found = false, touched = false;
    char path[CHECKPOINT_FOLDER] = "", name[64];
    struct error damage = {0};
    if (checkpoint_path(path, folder, key, "", NULL))
        folder_remove_stale(path, 0);
    *checkpoint = (struct checkpoint){0};
    err->text[0] = 0;
    for (size_t i = 0; i < count && !found; i++) {
        found = checkpoint_path(path, folder, key, checkpoint_name(name, steps[i]), &damage) &&
                checkpoint_take(path, key, steps[i], state, checkpoint, &touched, &damage);
        if (!found)
            damage_note(path, damage.text, i + 1 < count ? &steps[i + 1] : NULL, note, context);
    }
    if (!found && touched)
        error_set(err, "checkpoint '%s' %s", path, damage.text);
    memory_free(steps);
    return found;
}

void checkpoint_release(struct checkpoint *checkpoint)
{
    memory_free(checkpoint->steps);
    memory_free(checkpoint->evaluations);
    *checkpoint = (struct checkpoint){0};
}
