/* A lock that the kernel drops when its process dies.
 *
 * An open file description lock, so that two opens within one process exclude each other as well. The file is removed
 * by its holder; whoever locked a file that has been removed meanwhile notices by its inode and starts again. */
#include "runner/lockfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/clock.h"

#define POLL_SECONDS 0.1

/* What this process holds. */
static struct held {
    int fd;
    struct held *next;
} * held_first;

static void held_add(int fd)
{
    struct held *held = memory_alloc(1, sizeof *held);
    *held = (struct held){.fd = fd, .next = held_first};
    held_first = held;
}

static void held_remove(int fd)
{
    for (struct held **at = &held_first; *at; at = &(*at)->next)
        if ((*at)->fd == fd) {
            struct held *held = *at;
            *at = held->next;
            memory_free(held);
            return;
        }
}

static struct flock whole_file(void)
{
    return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET};
}

/* What the holder wrote, control bytes replaced. */
static void holder_read(int fd, char *holder, size_t size)
{
    ssize_t got = pread(fd, holder, size - 1, 0);
    holder[got > 0 ? got : 0] = 0;
    holder[strcspn(holder, "\n")] = 0;
    for (char *c = holder; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    if (!*holder)
        snprintf(holder, size, "another process");
}

/* True when what is written there is of another machine, and so lately that its process may live: the lock, if there is
 * one, does not reach us. */
static bool holder_is_elsewhere(int fd, char *holder, size_t size)
{
    char host[256] = "", ours[300];
    struct stat status;
    if (fstat(fd, &status) < 0 || status.st_size == 0 || labs(time(NULL) - status.st_mtime) >= LOCKFILE_FRESH_SECONDS)
        return false;
    holder_read(fd, holder, size);
    gethostname(host, sizeof host - 1);
    snprintf(ours, sizeof ours, " on %s: ", host);
    const char *on = strncmp(holder, "pid ", 4) == 0 ? strstr(holder, " on ") : NULL;
    return on && strncmp(on, ours, strlen(ours)) != 0;
}

bool lockfile_holder(const char *path, char *holder, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    struct flock lock = whole_file();
    bool held = fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    if (held)
        holder_read(fd, holder, size);
    else
        held = holder_is_elsewhere(fd, holder, size);
    close(fd);
    return held;
}

static bool holder_write(int fd, const char *path, const char *command, struct error *err)
{
    char host[256] = "", text[LOCKFILE_HOLDER_SIZE];
    gethostname(host, sizeof host - 1);
    int length = snprintf(text, sizeof text - 1, "pid %ld on %s: %s", (long)getpid(), host, command);
    if (length >= (int)sizeof text - 1)
        length = (int)sizeof text - 2;
    text[length] = '\n';
    if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)length + 1, 0) != (ssize_t)length + 1)
        return error_set(err, "cannot write the lock file '%s': %s", path, strerror(errno));
    return true;
}

enum attempt { ATTEMPT_LOCKED, ATTEMPT_HELD, ATTEMPT_FAILED };

static enum attempt lock_try(const char *path, bool over, int *fd, char holder[LOCKFILE_HOLDER_SIZE], struct error *err)
{
    for (;;) {
        *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, 0666);
        if (*fd < 0) {
            error_set(err, "cannot open the lock file '%s' for writing: %s", path, strerror(errno));
            return ATTEMPT_FAILED;
        }
        struct flock lock = whole_file();
        if (fcntl(*fd, F_OFD_SETLK, &lock) < 0) {
            bool held = errno == EAGAIN || errno == EACCES;
            if (held)
                holder_read(*fd, holder, LOCKFILE_HOLDER_SIZE);
            else
                error_set(err, "cannot lock '%s': %s", path, strerror(errno));
            close(*fd);
            return held ? ATTEMPT_HELD : ATTEMPT_FAILED;
        }
        struct stat named, opened;
        if (stat(path, &named) == 0 && fstat(*fd, &opened) == 0 && named.st_ino == opened.st_ino &&
            named.st_dev == opened.st_dev) {
            if (over || !holder_is_elsewhere(*fd, holder, LOCKFILE_HOLDER_SIZE))
                return ATTEMPT_LOCKED;
            close(*fd);
            return ATTEMPT_HELD;
        }
        close(*fd);
    }
}

int lockfile_take(const char *path, const char *command, double wait_seconds, bool over,
                  void (*note)(void *context, const char *text), void *context, struct error *err)
{
    char holder[LOCKFILE_HOLDER_SIZE];
    struct timespec pause = {.tv_nsec = (long)(POLL_SECONDS * 1e9)};
    for (double waited = 0;; waited += POLL_SECONDS) {
        int fd;
        enum attempt attempt = lock_try(path, over, &fd, holder, err);
        if (attempt == ATTEMPT_FAILED)
            return -1;
        if (attempt == ATTEMPT_LOCKED) {
            if (holder_write(fd, path, command, err)) {
                held_add(fd);
                return fd;
            }
            lockfile_drop(path, fd);
            return -1;
        }
        if (waited >= wait_seconds) {
            error_set(err, "'%s' is held by %s: wait for it to end, or stop it", path, holder);
            return -1;
        }
        if (waited <= 0 && note) {
            char text[LOCKFILE_HOLDER_SIZE + 32];
            snprintf(text, sizeof text, "waiting for %s", holder);
            note(context, text);
        }
        if (nanosleep(&pause, NULL) < 0) {
            error_set(err, "stopped while waiting for '%s', which is held by %s", path, holder);
            return -1;
        }
    }
}

void lockfile_renew_all(void)
{
    struct stat status;
    for (const struct held *h = held_first; h; h = h->next)
        if (fstat(h->fd, &status) == 0 && labs(time(NULL) - status.st_mtime) >= LOCKFILE_RENEW_SECONDS)
            futimens(h->fd, NULL);
}

void lockfile_pause(double seconds)
{
    double end = seconds_now() + seconds, left = seconds;
    while (left > 0) {
        struct timespec nap = {.tv_sec = 1};
        if (left < 1)
            nap = (struct timespec){.tv_nsec = (long)(left * 1e9)};
        lockfile_renew_all();
        if (nanosleep(&nap, NULL) < 0)
            return;
        left = end - seconds_now();
    }
}

void lockfile_drop(const char *path, int fd)
{
    if (fd < 0)
        return;
    held_remove(fd);
    unlink(path);
    close(fd);
}
