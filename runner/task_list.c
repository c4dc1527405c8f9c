/* The list of an array's tasks as a file of JSON lines. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/file.h"
#include "runner/json.h"
#include "runner/task_line.h"
#include "runner/worker.h"

enum { LIST_LIMIT = 1 << 30 };

static void line_write(json_t *line, struct file_writer *writer)
{
    char *text = json_format(line, JSON_LINE, false);
    fprintf(writer->stream, "%s\n", text);
    memory_free(text);
    json_decref(line);
}

static bool task_write(const struct sweep *sweep, const struct run *run, const struct task_settings *settings,
                       struct file_writer *writer, struct error *err)
{
    const struct variant *variant = &sweep->experiment->variants[run->variant];
    struct job *job = memory_alloc(1, sizeof *job);
    char *dataset = realpath(sweep->datasets[run->dataset].path, NULL);
    char *shards = realpath(settings->shards, NULL), *logs = realpath(settings->logs, NULL);
    bool ok = dataset && shards && logs && strlen(dataset) < sizeof job->dataset_path &&
              strlen(shards) < sizeof job->checkpoint_folder;
    if (ok) {
        memcpy(job->key, run->key, sizeof job->key);
        job->config = variant->config;
        job->seed = run->seed;
        job->checkpoint_every = settings->checkpoint_every;
        memcpy(job->dataset_path, dataset, strlen(dataset) + 1);
        memcpy(job->checkpoint_folder, shards, strlen(shards) + 1);
        char *text = job_json(job);
        json_t *line = json_object();
        json_put(line, "job", json_loads(text, 0, NULL));
        json_put(line, "label", json_from_text(variant->label));
        json_put(line, "parameters", json_integer(run->parameters));
        json_put(line, "flops_per_token", json_real(run->flops_per_token));
        json_put(line, "hang_after", json_integer(settings->hang_after));
        json_put(line, "logs", json_from_text(logs));
        line_write(line, writer);
        memory_free(text);
    } else {
        error_set(err, "task list: a path is missing or too long: '%.200s', '%.200s' or '%.200s'",
                  sweep->datasets[run->dataset].path, settings->shards, settings->logs);
    }
    free(dataset);
    free(shards);
    free(logs);
    memory_free(job);
    return ok;
}

void task_token_make(char token[TASK_TOKEN_SIZE])
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t nanoseconds = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    snprintf(token, TASK_TOKEN_SIZE, "%" PRIx64 "-%lx", nanoseconds, (unsigned long)getpid());
}

bool task_list_write(const char *path, const struct sweep *sweep, const size_t *runs, size_t count,
                     const struct task_round *round, const struct task_settings *settings, struct error *err)
{
    struct file_writer writer;
    if (!file_writer_open(&writer, path, err))
        return false;
    json_t *head = json_object();
    json_put(head, "experiment", json_from_text(sweep->experiment->name));
    json_put(head, "tasks", json_integer((json_int_t)count));
    json_put(head, "chunk", json_integer((json_int_t)round->chunk));
    json_put(head, "at_once", json_integer((json_int_t)round->at_once));
    json_put(head, "token", json_from_text(round->token));
    line_write(head, &writer);
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++)
        ok = task_write(sweep, &sweep->runs[runs[i]], settings, &writer, err);
    ok = ok && file_writer_commit(&writer, err);
    file_writer_abandon(&writer);
    return ok;
}

/* The next line, ended by 0; NULL past the last. */
static char *line_next(char **rest)
{
    char *line = *rest && **rest ? strsep(rest, "\n") : NULL;
    return line && *line ? line : NULL;
}

static bool head_read(char *line, struct task_list *list)
{
    json_t *head = line ? json_loads(line, 0, NULL) : NULL;
    const char *name = json_string_value(json_object_get(head, "experiment"));
    json_int_t count = json_integer_value(json_object_get(head, "tasks"));
    json_int_t chunk = json_integer_value(json_object_get(head, "chunk"));
    json_int_t at_once = json_integer_value(json_object_get(head, "at_once"));
    json_t *token = json_object_get(head, "token");
    const char *text = token ? json_string_value(token) : "";
    bool ok = name && count > 0 && count < LIST_LIMIT / 100 && chunk > 0 && at_once >= 0 && text &&
              strlen(text) < TASK_TOKEN_SIZE && !text[strspn(text, "0123456789abcdef-")];
    if (ok) {
        list->experiment = memory_copy_text(name);
        list->count = (size_t)count;
        list->round.chunk = (size_t)chunk;
        list->round.at_once = (size_t)at_once;
        snprintf(list->round.token, sizeof list->round.token, "%s", text);
    }
    json_decref(head);
    return ok;
}

/* Lines begin with {"job":{"key":"<64 digits>": no need to take all of it apart. */
static bool key_read(const char *line, char key[65])
{
    static const char before[] = "{\"job\":{\"key\":\"";
    if (!line || strncmp(line, before, sizeof before - 1) != 0 ||
        strspn(line + sizeof before - 1, "0123456789abcdef") != 64)
        return false;
    memcpy(key, line + sizeof before - 1, 64);
    key[64] = 0;
    return true;
}

static bool not_a_list(const char *path, struct error *err)
{
    return error_set(err, "'%s' is not a list of tasks: expected what `runner run --launcher slurm` wrote", path);
}

bool task_list_token(const char *path, char token[TASK_TOKEN_SIZE], struct error *err)
{
    struct task_list list = {0};
    char *line = NULL;
    size_t room = 0;
    FILE *file = fopen(path, "re");
    if (!file)
        return error_set(err, "cannot read '%s': %s", path, strerror(errno));
    bool ok = getline(&line, &room, file) > 0 && head_read(line, &list);
    fclose(file);
    free(line);
    memcpy(token, list.round.token, TASK_TOKEN_SIZE);
    task_list_release(&list);
    return ok || not_a_list(path, err);
}

bool task_list_read(const char *path, struct task_list *list, struct error *err)
{
    char *bytes, *rest;
    size_t size;
    *list = (struct task_list){0};
    if (!file_read(path, LIST_LIMIT, &bytes, &size, err))
        return false;
    rest = bytes;
    bool ok = head_read(line_next(&rest), list);
    list->keys = ok ? memory_alloc(list->count, sizeof *list->keys) : NULL;
    for (size_t i = 0; ok && i < list->count; i++)
        ok = key_read(line_next(&rest), list->keys[i]);
    memory_free(bytes);
    if (ok)
        return true;
    task_list_release(list);
    return not_a_list(path, err);
}

void task_list_release(struct task_list *list)
{
    memory_free(list->experiment);
    memory_free(list->keys);
    *list = (struct task_list){0};
}

char *task_path(const char *shards, const char *key, const char *name)
{
    char *folder = path_join(shards, key), *path = path_join(folder, name);
    memory_free(folder);
    return path;
}

static bool line_take(const char *line, struct task_line *task, struct error *err)
{
    json_t *root = json_loads(line, 0, NULL), *job = json_object_get(root, "job");
    const char *label = json_string_value(json_object_get(root, "label"));
    const char *logs = json_string_value(json_object_get(root, "logs"));
    char *text = job ? json_dumps(job, JSON_COMPACT) : NULL;
    bool ok = text && label && logs ? job_from_json(text, &task->job, err) : error_set(err, "its line is incomplete");
    if (ok) {
        task->label = memory_copy_text(label);
        task->logs = memory_copy_text(logs);
        task->parameters = json_integer_value(json_object_get(root, "parameters"));
        task->hang_after = json_integer_value(json_object_get(root, "hang_after"));
        task->flops_per_token = json_number_value(json_object_get(root, "flops_per_token"));
    }
    free(text);
    json_decref(root);
    return ok;
}

bool task_line_read(const char *path, size_t index, struct task_line *task, struct error *err)
{
    char *bytes, *rest, *line;
    size_t size;
    memset(task, 0, sizeof *task);
    if (!file_read(path, LIST_LIMIT, &bytes, &size, err))
        return false;
    rest = bytes;
    line = line_next(&rest);
    for (size_t i = 0; line && i <= index; i++)
        line = line_next(&rest);
    bool ok = line ? line_take(line, task, err) : error_set(err, "the list has no such line");
    memory_free(bytes);
    return ok || error_wrap(err, "task %zu of '%s'", index, path);
}

void task_line_release(struct task_line *task)
{
    memory_free(task->label);
    memory_free(task->logs);
}
