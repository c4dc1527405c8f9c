/* The folder of an export: made under another name, then moved in place. */
#include "runner/hf_export.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/file.h"
#include "runner/hf_tokenizer.h"

const char *const hf_export_files[] = {"config.json",    "generation_config.json", "model.safetensors",
                                       "tokenizer.json", "tokenizer_config.json",  NULL};

/* ---- files ---- */

/* Takes the tree over. */
static bool json_write(const char *folder, const char *name, json_t *root, struct error *err)
{
    char *text = json_format(root, JSON_PRETTY, false), *path = path_join(folder, name);
    size_t size = strlen(text);
    text[size] = '\n'; /* in place of the final 0 */
    bool good = file_write(path, text, size + 1, err);
    memory_free(text);
    memory_free(path);
    json_decref(root);
    return good;
}

static bool equal_tokenizers(const struct tokenizer *a, const struct tokenizer *b)
{
    if (tokenizer_merge_count(a) != tokenizer_merge_count(b))
        return false;
    for (size_t i = 0; i < tokenizer_merge_count(a); i++) {
        int32_t x[2], y[2];
        tokenizer_merge(a, i, &x[0], &x[1]);
        tokenizer_merge(b, i, &y[0], &y[1]);
        if (x[0] != y[0] || x[1] != y[1])
            return false;
    }
    return true;
}

/* Read back: tokens of equal bytes would make one of two, which no tokenizer learned here has. */
static bool tokenizer_verify(const char *folder, const struct tokenizer *tokenizer, struct error *err)
{
    char *path = path_join(folder, "tokenizer.json");
    struct tokenizer *back = hf_tokenizer_read(path, err);
    bool good = back != NULL;
    if (good && !equal_tokenizers(tokenizer, back))
        good = error_set(err, "the run's tokenizer cannot be written as tokenizer.json: it reads back as another one");
    tokenizer_free(back);
    memory_free(path);
    return good;
}

static bool files_write(const char *folder, const struct hf_architecture *architecture, const struct hf_export *model,
                        struct error *err)
{
    return json_write(folder, "config.json", hf_export_config_json(architecture, model), err) &&
           json_write(folder, "generation_config.json", hf_export_generation_json(model), err) &&
           hf_export_weights(folder, architecture, model, err) &&
           json_write(folder, "tokenizer.json", hf_tokenizer_json(model->tokenizer), err) &&
           tokenizer_verify(folder, model->tokenizer, err) &&
           json_write(folder, "tokenizer_config.json", hf_tokenizer_config_json(model->config->model.context_length),
                      err);
}

static void files_remove(const char *folder)
{
    for (size_t i = 0; hf_export_files[i]; i++) {
        char *path = path_join(folder, hf_export_files[i]);
        unlink(path);
        memory_free(path);
    }
    rmdir(folder);
}

/* ---- the folder ---- */

/* Without slashes at the end. Owner: caller, memory_free(). */
static char *path_of(const char *folder)
{
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/')
        length--;
    return memory_copy_bytes(folder, length);
}

static bool place_check(const char *path, struct error *err)
{
    struct stat status;
    if (lstat(path, &status) != 0)
        return errno == ENOENT || error_set(err, "cannot write to '%s': %s", path, strerror(errno));
    if (!S_ISDIR(status.st_mode))
        return error_set(err, "'%s' is there and is a %s: expected a new or an empty folder", path,
                         S_ISLNK(status.st_mode) ? "symbolic link" : file_kind_name(status.st_mode));
    DIR *folder = opendir(path);
    if (!folder)
        return error_set(err, "cannot read folder '%s': %s", path, strerror(errno));
    bool empty = true;
    for (struct dirent *entry; empty && (entry = readdir(folder));) {
        empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        if (!empty)
            error_set(err, "'%s' holds '%.100s': expected a new or an empty folder", path, entry->d_name);
    }
    closedir(folder);
    return empty;
}

/* A new folder beside the path. NULL and err. Owner: caller, memory_free(). */
static char *neighbour_make(const char *parent, struct error *err)
{
    for (unsigned counter = 0;; counter++) {
        char name[64];
        snprintf(name, sizeof name, ".tmp-export-%ld-%u", (long)getpid(), counter);
        char *path = path_join(parent, name);
        if (mkdir(path, 0777) == 0)
            return path;
        bool taken = errno == EEXIST;
        if (!taken)
            error_set(err, "cannot make folder '%s': %s", path, strerror(errno));
        memory_free(path);
        if (!taken)
            return NULL;
    }
}

static bool place_take(const char *temporary, const char *path, const char *parent, struct error *err)
{
    if (rename(temporary, path) != 0)
        return error_set(err, "cannot put the export in place as '%s': %s", path, strerror(errno));
    return folder_sync(parent, err);
}

bool hf_export_place(const char *folder, struct error *err)
{
    char *path = path_of(folder);
    bool good = place_check(path, err);
    memory_free(path);
    return good;
}

bool hf_export_write(const char *folder, const struct hf_architecture *architecture, const struct hf_export *model,
                     struct error *err)
{
    char *path = path_of(folder), *parent = path_folder(path), *temporary = NULL;
    bool good = place_check(path, err) && folder_make(parent, err) && (temporary = neighbour_make(parent, err)) &&
                files_write(temporary, architecture, model, err) && place_take(temporary, path, parent, err);
    if (temporary && !good)
        files_remove(temporary);
    memory_free(temporary);
    memory_free(parent);
    memory_free(path);
    return good;
}
