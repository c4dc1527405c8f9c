/* Files: read whole with a limit, written whole or not at all, safe names. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/file.h"
#include "runner/hash.h"

static char folder[64], path[96];

static void file_begin(void)
{
    snprintf(folder, sizeof folder, "/tmp/test-file-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/data", folder);
}

static void file_end(void)
{
    unlink(path);
    rmdir(path);
    cr_expect_eq(rmdir(folder), 0, "something is left behind in %s", folder);
}

TestSuite(file, .init = file_begin, .fini = file_end);

static void expect_refused(const char *what)
{
    struct error err = {""};
    char *bytes, wanted[256];
    size_t size;
    snprintf(wanted, sizeof wanted, "cannot read '%s': %s", path, what);
    cr_expect_not(file_read(path, 1000, &bytes, &size, &err));
    cr_expect_str_eq(err.text, wanted);
}

Test(file, what_is_written_is_read_with_a_zero_after_it)
{
    struct error err = {""};
    char *bytes = NULL;
    size_t size = 0;
    cr_assert(file_write(path, "a\0b", 3, &err), "%s", err.text);
    cr_assert(file_write(path, "c\0d!", 4, &err), "%s", err.text);
    cr_assert(file_read(path, 4, &bytes, &size, &err), "%s", err.text);
    cr_expect(size == 4 && memcmp(bytes, "c\0d!", 5) == 0);
    memory_free(bytes);
}

Test(file, one_byte_more_than_the_limit_is_refused)
{
    cr_assert(file_write(path, "12345", 5, NULL));
    struct error err = {""};
    char *bytes;
    size_t size;
    cr_expect_not(file_read(path, 4, &bytes, &size, &err));
    cr_expect_not_null(strstr(err.text, "it is larger than 4 bytes"), "%s", err.text);
}

Test(file, what_is_no_file_is_named_for_what_it_is)
{
    expect_refused("No such file or directory");
    cr_assert_eq(mkfifo(path, 0600), 0);
    expect_refused("it is a FIFO, not a file");
    unlink(path);
    cr_assert_eq(mkdir(path, 0700), 0);
    expect_refused("it is a folder, not a file");
    rmdir(path);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    cr_assert_eq(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    expect_refused("it is a socket, not a file");
    close(fd);
}

Test(file, no_permission_is_refused)
{
    if (geteuid() == 0) /* who may read everything sees no permission */
        cr_skip_test("needs a user who is not root");
    cr_assert(file_write(path, "x", 1, NULL));
    chmod(path, 0);
    expect_refused("Permission denied");
}

Test(file, an_abandoned_writer_leaves_the_old_file)
{
    struct file_writer writer;
    cr_assert(file_write(path, "old", 3, NULL));
    cr_assert(file_writer_open(&writer, path, NULL));
    fputs("new", writer.stream);
    file_writer_abandon(&writer);
    char *bytes = NULL;
    size_t size = 0;
    cr_assert(file_read(path, 100, &bytes, &size, NULL));
    cr_expect_str_eq(bytes, "old");
    memory_free(bytes);
}

Test(file, a_full_disk_is_told_and_leaves_the_old_file)
{
    struct error err = {""};
    char *block = memory_alloc(1, 100000), *bytes = NULL;
    size_t size = 0;
    cr_assert(file_write(path, "old", 3, NULL));
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit = {50000, RLIM_INFINITY}, before;
    getrlimit(RLIMIT_FSIZE, &before);
    setrlimit(RLIMIT_FSIZE, &limit);
    bool written = file_write(path, block, 100000, &err);
    setrlimit(RLIMIT_FSIZE, &before);
    cr_expect_not(written);
    cr_expect_not_null(strstr(err.text, "cannot write"), "%s", err.text);
    cr_expect_not_null(strstr(err.text, "File too large"), "%s", err.text);
    cr_assert(file_read(path, 100, &bytes, &size, NULL));
    cr_expect_str_eq(bytes, "old");
    memory_free(bytes);
    memory_free(block);
}

Test(file, a_device_is_not_replaced_by_a_file)
{
    struct error err = {""};
    cr_expect_not(file_write("/dev/full", "x", 1, &err));
    cr_expect_str_eq(err.text, "cannot write '/dev/full': a device of that name is there");
}

Test(file, folders_are_made_with_those_above_and_what_is_in_the_way_is_named)
{
    char deep[200], file[160];
    struct error err = {""};
    snprintf(deep, sizeof deep, "%s/a//b/c/", path);
    cr_assert(folder_make(deep, &err), "%s", err.text);
    cr_assert(folder_make(deep, &err), "twice: %s", err.text);
    snprintf(file, sizeof file, "%s/a/b/c/f", path);
    cr_assert(file_write(file, "", 0, &err), "%s", err.text);
    snprintf(deep, sizeof deep, "%s/g", file);
    cr_expect_not(folder_make(deep, &err));
    cr_expect_not_null(strstr(err.text, "a file of that name is there"), "%s", err.text);
    unlink(file);
    static const char *const inner[] = {"/a/b/c", "/a/b", "/a"};
    for (size_t i = 0; i < 3; i++) {
        snprintf(file, sizeof file, "%s%s", path, inner[i]);
        cr_expect_eq(rmdir(file), 0);
    }
}

Test(file, only_folders_that_were_missing_are_unmade_and_only_empty_ones)
{
    char deep[128], middle[128], other[128];
    struct error err;
    snprintf(middle, sizeof middle, "%s/a", folder);
    snprintf(deep, sizeof deep, "%s/a/b//c", folder);
    snprintf(other, sizeof other, "%s/a/d", folder);
    cr_expect_eq(folder_missing(folder), 0);
    cr_expect_eq(folder_missing("."), 0);
    size_t missing = folder_missing(deep);
    cr_assert(folder_make(deep, &err));
    cr_expect_eq(folder_missing(deep), 0);
    folder_unmake(deep, 0);
    cr_expect_eq(access(deep, F_OK), 0, "it was there before");
    cr_assert_eq(mkdir(other, 0700), 0);
    folder_unmake(deep, missing);
    cr_expect_eq(access(deep, F_OK), -1);
    cr_expect_eq(access(other, F_OK), 0, "somebody else's");
    rmdir(other);
    folder_unmake(middle, 1);
    cr_expect_eq(access(middle, F_OK), -1);
}

Test(file, only_old_temporary_files_are_stale)
{
    struct file_writer killed;
    cr_assert(file_writer_open(&killed, path, NULL));
    char *temporary = memory_copy_text(killed.temporary);
    folder_remove_stale(folder, 60);
    cr_expect_eq(access(temporary, F_OK), 0);
    /* A clock ahead of ours: a server's, or this file system's by a tick. */
    struct timespec ahead[2] = {{.tv_sec = time(NULL) + 5}, {.tv_sec = time(NULL) + 5}};
    cr_assert_eq(utimensat(AT_FDCWD, temporary, ahead, 0), 0);
    folder_remove_stale(folder, 0);
    cr_expect_neq(access(temporary, F_OK), 0);
    file_writer_abandon(&killed);
    memory_free(temporary);
}

static void expect_name(const char *text, size_t limit, const char *wanted)
{
    char *name = file_name_make(text, limit);
    cr_expect_str_eq(name, wanted, "'%s' became '%s'", text, name);
    memory_free(name);
}

Test(file, names_from_any_text_are_safe_short_and_different)
{
    expect_name("day2-norms_v1.5", 60, "day2-norms_v1.5");
    expect_name("", 60, "e3b0c442");
    expect_name("..", 60, "5ec1f7e7");
    expect_name("a/../b", 60, "a-..-b-900ea8b7");
    char letters[201], *name;
    memset(letters, 'x', 200);
    letters[200] = 0;
    name = file_name_make(letters, 40);
    cr_expect_eq(strlen(name), 40);
    memory_free(name);
    char *one = file_name_make("a b", 40), *other = file_name_make("a?b", 40);
    cr_expect_str_neq(one, other);
    memory_free(one);
    memory_free(other);
}

Test(file, paths_are_joined_and_cut)
{
    static const char *const rows[][3] = {{"a/b", "c", "a/b/c"}, {"a/", "c", "a/c"}, {"", "c", "c"}, {"a", "/c", "/c"}};
    for (size_t i = 0; i < 4; i++) {
        char *joined = path_join(rows[i][0], rows[i][1]);
        cr_expect_str_eq(joined, rows[i][2]);
        memory_free(joined);
    }
    static const char *const cuts[][2] = {{"a/b/c", "a/b"}, {"c", "."}, {"/c", "/"}};
    for (size_t i = 0; i < 3; i++) {
        char *cut = path_folder(cuts[i][0]);
        cr_expect_str_eq(cut, cuts[i][1]);
        memory_free(cut);
    }
}

Test(hash, equals_the_published_values)
{
    char hex[HASH_TEXT_SIZE]; /* FIPS 180-2, appendix B.1; the empty message is common knowledge */
    hash_bytes("abc", 3, hex);
    cr_expect_str_eq(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    hash_bytes("", 0, hex);
    cr_expect_str_eq(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}
