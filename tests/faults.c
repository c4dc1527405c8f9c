/* Faults for `runner`, linked into a program of the tests alone (build/tests/runner-faults): the linker puts the
 * functions here in the place of those they are named after, and SQLite's system calls are taken over as it allows.
 *
 *   RUNNER_FAULT=memory:N        the N-th block of memory is not there
 *   RUNNER_FAULT=full:N          the N-th call that writes, names, makes or syncs something fails: no space left
 *   RUNNER_FAULT=io:N            the same with an input/output error; limit:N: past a file limit
 *   RUNNER_FAULT=full:N+         and all after it
 *   RUNNER_FAULT=crash:K, hang:K, nan:K, exit:K   what a worker does in place of its step K
 *   RUNNER_FAULT_IN=runner|work  in which of the two processes; both when it is not given
 *   RUNNER_FAULT_COUNT=FILE      "runner memory 812" lines are appended there at the end */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/trainer.h"

int __real_open(const char *path, int flags, ...);
ssize_t __real_write(int fd, const void *bytes, size_t size);

static bool ready, here;
static char kind[16];
static long at, calls_memory, calls_io;
static bool from_then_on;

static bool is_worker(void)
{
    char line[4096] = "";
    int fd = __real_open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? 0 : read(fd, line, sizeof line - 1);
    if (fd >= 0)
        close(fd);
    size_t first = strlen(line);
    return size > (ssize_t)first + 1 && strcmp(line + first + 1, "work") == 0;
}

static void counts_tell(void)
{
    const char *path = getenv("RUNNER_FAULT_COUNT");
    char text[128];
    int fd = path ? __real_open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    const char *who = is_worker() ? "work" : "runner";
    int size = snprintf(text, sizeof text, "%s memory %ld\n%s io %ld\n", who, calls_memory, who, calls_io);
    if (fd < 0)
        return;
    if (__real_write(fd, text, (size_t)size) != size)
        abort();
    close(fd);
}

static void settings_read(void)
{
    const char *fault = getenv("RUNNER_FAULT"), *in = getenv("RUNNER_FAULT_IN");
    ready = true;
    if (fault) {
        const char *colon = strchr(fault, ':');
        size_t length = colon ? (size_t)(colon - fault) : 0;
        if (!length || length >= sizeof kind)
            abort();
        memcpy(kind, fault, length);
        at = strtol(colon + 1, NULL, 10);
        from_then_on = strchr(colon, '+') != NULL;
        here = !in || strcmp(in, is_worker() ? "work" : "runner") == 0;
    }
    atexit(counts_tell);
}

/* calls: this one is counted. */
static bool fails(const char *what, long calls)
{
    if (!ready)
        settings_read();
    return here && strcmp(kind, what) == 0 && (calls == at || (from_then_on && calls > at));
}

static bool io_fails(void)
{
    static const struct {
        const char *name;
        int number;
    } errors[] = {{"full", ENOSPC}, {"io", EIO}, {"limit", EFBIG}};
    ++calls_io;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (fails(errors[i].name, calls_io)) {
            errno = errors[i].number;
            return true;
        }
    return false;
}

/* A file of results: neither a terminal or pipe nor a stream into memory. */
static bool is_file(int fd)
{
    int saved = errno;
    struct stat status;
    bool file = fd > STDERR_FILENO && fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    errno = saved;
    return file;
}

/* ---- memory and files ---- */

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
    return fails("memory", ++calls_memory) ? NULL : __real_calloc(count, size);
}

/* What ferror() looks at in glibc: nobody asks fwrite() alone. */
enum { STREAM_ERROR = 0x20 };

size_t __real_fwrite(const void *bytes, size_t size, size_t count, FILE *stream);
size_t __wrap_fwrite(const void *bytes, size_t size, size_t count, FILE *stream);
size_t __wrap_fwrite(const void *bytes, size_t size, size_t count, FILE *stream)
{
    if (!is_file(fileno(stream)) || !io_fails())
        return __real_fwrite(bytes, size, count, stream);
    stream->_flags |= STREAM_ERROR;
    return 0;
}

int __real_fflush(FILE *stream);
int __wrap_fflush(FILE *stream);
int __wrap_fflush(FILE *stream)
{
    return stream && is_file(fileno(stream)) && io_fails() ? EOF : __real_fflush(stream);
}

/* As on a full disk of a network: the file is closed, and what was written is not there. */
int __real_fclose(FILE *stream);
int __wrap_fclose(FILE *stream);
int __wrap_fclose(FILE *stream)
{
    int flags = fcntl(fileno(stream), F_GETFL);
    bool failed = flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && is_file(fileno(stream)) && io_fails();
    int saved = errno, result = __real_fclose(stream);
    if (failed)
        errno = saved;
    return failed ? EOF : result;
}

int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    mode_t mode = 0;
    if (flags & O_CREAT) {
        va_list args;
        va_start(args, flags);
        mode = va_arg(args, mode_t);
        va_end(args);
        if (io_fails())
            return -1;
    }
    return __real_open(path, flags, mode);
}

ssize_t __wrap_write(int fd, const void *bytes, size_t size);
ssize_t __wrap_write(int fd, const void *bytes, size_t size)
{
    return is_file(fd) && io_fails() ? -1 : __real_write(fd, bytes, size);
}

int __real_ftruncate(int fd, off_t size);
int __wrap_ftruncate(int fd, off_t size);
int __wrap_ftruncate(int fd, off_t size)
{
    return io_fails() ? -1 : __real_ftruncate(fd, size);
}

int __real_unlink(const char *path);
int __wrap_unlink(const char *path);
int __wrap_unlink(const char *path)
{
    return io_fails() ? -1 : __real_unlink(path);
}

int __real_link(const char *from, const char *to);
int __wrap_link(const char *from, const char *to);
int __wrap_link(const char *from, const char *to)
{
    return io_fails() ? -1 : __real_link(from, to);
}

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
    return io_fails() ? -1 : __real_fsync(fd);
}

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to)
{
    return io_fails() ? -1 : __real_rename(from, to);
}

int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode)
{
    return io_fails() ? -1 : __real_mkdir(path, mode);
}

ssize_t __real_pwrite(int fd, const void *bytes, size_t size, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t size, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
    return io_fails() ? -1 : __real_pwrite(fd, bytes, size, offset);
}

FILE *__real_fdopen(int fd, const char *mode);
FILE *__wrap_fdopen(int fd, const char *mode);
FILE *__wrap_fdopen(int fd, const char *mode)
{
    return io_fails() ? NULL : __real_fdopen(fd, mode);
}

/* ---- SQLite ---- */

static ssize_t database_write(int fd, const void *bytes, size_t size, off_t offset)
{
    return io_fails() ? -1 : __real_pwrite(fd, bytes, size, offset);
}

static int database_sync(int fd)
{
    return io_fails() ? -1 : __real_fsync(fd);
}

static int database_cut(int fd, off_t size)
{
    return io_fails() ? -1 : __real_ftruncate(fd, size);
}

static ssize_t database_append(int fd, const void *bytes, size_t size)
{
    return io_fails() ? -1 : __real_write(fd, bytes, size);
}

static int database_unlink(const char *path)
{
    return io_fails() ? -1 : __real_unlink(path);
}

static int database_open_file(const char *path, int flags, int mode)
{
    return (flags & O_CREAT) && io_fails() ? -1 : __real_open(path, flags, mode);
}

int __real_sqlite3_open_v2(const char *path, sqlite3 **db, int flags, const char *vfs);
int __wrap_sqlite3_open_v2(const char *path, sqlite3 **db, int flags, const char *vfs);
int __wrap_sqlite3_open_v2(const char *path, sqlite3 **db, int flags, const char *vfs)
{
    static const struct {
        const char *name;
        sqlite3_syscall_ptr call;
    } calls[] = {{"pwrite", (sqlite3_syscall_ptr)database_write},  {"pwrite64", (sqlite3_syscall_ptr)database_write},
                 {"fsync", (sqlite3_syscall_ptr)database_sync},    {"ftruncate", (sqlite3_syscall_ptr)database_cut},
                 {"write", (sqlite3_syscall_ptr)database_append},  {"unlink", (sqlite3_syscall_ptr)database_unlink},
                 {"open", (sqlite3_syscall_ptr)database_open_file}};
    static bool taken;
    sqlite3_vfs *unix_vfs = taken || sqlite3_initialize() != SQLITE_OK ? NULL : sqlite3_vfs_find(NULL);
    for (size_t i = 0; unix_vfs && i < sizeof calls / sizeof *calls; i++)
        unix_vfs->xSetSystemCall(unix_vfs, calls[i].name, calls[i].call);
    taken = true;
    return __real_sqlite3_open_v2(path, db, flags, vfs);
}

/* ---- steps ---- */

bool __real_trainer_step(struct trainer *trainer, struct step_record *record);
bool __wrap_trainer_step(struct trainer *trainer, struct step_record *record);
bool __wrap_trainer_step(struct trainer *trainer, struct step_record *record)
{
    if (!ready)
        settings_read();
    int64_t step = trainer_steps_done(trainer);
    if (here && step == at) {
        if (strcmp(kind, "crash") == 0)
            raise(SIGSEGV);
        while (strcmp(kind, "hang") == 0)
            pause();
        if (strcmp(kind, "exit") == 0)
            exit(0);
        if (strcmp(kind, "nan") == 0) {
            *record = (struct step_record){.step = step, .loss = NAN, .grad_norm = 1, .learning_rate = 1e-3};
            return false;
        }
    }
    return __real_trainer_step(trainer, record);
}
