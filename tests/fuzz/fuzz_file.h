/* Bytes of a fuzzer as a file, in memory where there is such a file system, for readers that take paths. */
#ifndef TESTS_FUZZ_FILE_H
#define TESTS_FUZZ_FILE_H

#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char fuzz_folder[64], fuzz_path[256];

static inline void fuzz_file_remove(void)
{
    char command[sizeof fuzz_path];
    unlink(fuzz_path);
    snprintf(command, sizeof command, "%s", fuzz_path);
    for (size_t i = sizeof command; i-- > 1;) /* folders above it, up to our own */
        if (command[i] == '/') {
            command[i] = 0;
            rmdir(command);
        }
}

/* The path of <our folder>/<inner>/<name>; inner may be "". The same one each time. */
static inline const char *fuzz_file(const char *inner, const char *name, const void *bytes, size_t size)
{
    if (!*fuzz_folder) {
        snprintf(fuzz_folder, sizeof fuzz_folder, "%s/runner-fuzz-XXXXXX",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        if (!mkdtemp(fuzz_folder))
            abort();
        snprintf(fuzz_path, sizeof fuzz_path, "%s/%s", fuzz_folder, inner);
        mkdir(fuzz_path, 0700);
        snprintf(fuzz_path, sizeof fuzz_path, "%s/%s%s%s", fuzz_folder, inner, *inner ? "/" : "", name);
        atexit(fuzz_file_remove);
    }
    int fd = open(fuzz_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, bytes, size) != (ssize_t)size)
        abort();
    close(fd);
    return fuzz_path;
}

#endif
