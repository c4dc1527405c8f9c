/* Data is prepared once for each text and tokenizer; then every run gets its key, size and cost. */
#include "runner/sweep.h"

#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "core/model.h"
#include "core/tensor.h"
#include "runner/file.h"
#include "runner/text_index.h"

/* Where notes about a text go: to the line that names it. */
struct noter {
    struct problems *problems;
    struct place place;
};

static void dataset_note(void *context, const char *text)
{
    struct noter *noter = context;
    problem_note(noter->problems, noter->place, "%s", text);
}

static bool data_source_equal(const struct data_source *a, const struct data_source *b)
{
    if (a->builtin != b->builtin || a->given != b->given || a->path_count != b->path_count)
        return false;
    if (a->path_count && strcmp(a->folder, b->folder) != 0)
        return false;
    for (size_t i = 0; i < a->path_count; i++)
        if (strcmp(a->paths[i], b->paths[i]) != 0)
            return false;
    return true;
}

/* The two read the same text with the same tokenizer in blocks of one length. */
static bool data_equal(const struct variant *a, const struct variant *b)
{
    for (size_t i = 0; i < knob_count; i++)
        if (strncmp(knobs[i].name, "data.", strlen("data.")) == 0 &&
            !knob_equal(&knobs[i], knob_get(&knobs[i], &a->config), knob_get(&knobs[i], &b->config)))
            return false;
    return a->config.model.context_length == b->config.model.context_length &&
           data_source_equal(&a->data.corpus, &b->data.corpus) &&
           data_source_equal(&a->data.validation, &b->data.validation);
}

struct resolver {
    struct sweep *sweep;
    const char *cache_folder;
    struct problems *problems;
    size_t *dataset_of; /* by variant; SIZE_MAX: could not be prepared */
};

/* Different lengths of context share one cache file: the later ones are dropped again. */
static size_t dataset_keep(struct sweep *sweep, struct dataset *dataset)
{
    for (size_t i = 0; i < sweep->dataset_count; i++)
        if (strcmp(sweep->datasets[i].path, dataset->path) == 0 &&
            sweep->datasets[i].split_count == dataset->split_count) {
            dataset_close(dataset);
            return i;
        }
    sweep->datasets =
        memory_grow(sweep->datasets, sweep->dataset_count * sizeof *dataset, sweep->dataset_count + 1, sizeof *dataset);
    sweep->datasets[sweep->dataset_count] = *dataset;
    return sweep->dataset_count++;
}

static size_t dataset_for(struct resolver *resolver, size_t index)
{
    const struct variant *variants = resolver->sweep->experiment->variants, *variant = &variants[index];
    for (size_t i = 0; i < index; i++)
        if (data_equal(&variants[i], variant))
            return resolver->dataset_of[i];
    struct noter noter = {resolver->problems, variant->data.corpus.place};
    struct dataset dataset = {0};
    struct error err = {{0}};
    if (dataset_prepare(&variant->data, &variant->config, resolver->cache_folder, dataset_note, &noter, &dataset, &err))
        return dataset_keep(resolver->sweep, &dataset);
    resolver->problems->environment |= dataset.cache_failed;
    problem_add(resolver->problems, dataset.cache_failed ? (struct place){"runner", 0, 0} : noter.place, "%s",
                err.text);
    return SIZE_MAX;
}

/* compare.split names what each text can be evaluated on. */
static void split_check(const struct resolver *resolver)
{
    const struct experiment *experiment = resolver->sweep->experiment;
    for (size_t i = 0; i < resolver->sweep->dataset_count; i++) {
        const struct dataset *dataset = &resolver->sweep->datasets[i];
        char accepted[512] = "";
        size_t used = 0;
        bool found = false;
        for (size_t s = 0; s < dataset->split_count && used < sizeof accepted; s++) {
            found |= strcmp(dataset->splits[s].name, experiment->compare.split) == 0;
            used += (size_t)snprintf(accepted + used, sizeof accepted - used, "%s%s", s ? ", " : "",
                                     dataset->splits[s].name);
        }
        if (!found) {
            problem_add(resolver->problems, experiment->split_place, "compare.split is '%s': expected one of %s",
                        experiment->compare.split, accepted);
            return;
        }
    }
}

static void runs_make(struct resolver *resolver)
{
    struct sweep *sweep = resolver->sweep;
    const struct experiment *experiment = sweep->experiment;
    struct text_index keys = {0};
    sweep->runs = memory_alloc(experiment->variant_count * experiment->seed_count, sizeof *sweep->runs);
    for (size_t v = 0; v < experiment->variant_count; v++) {
        const struct variant *variant = &experiment->variants[v];
        const struct dataset *dataset = &sweep->datasets[resolver->dataset_of[v]];
        int64_t vocab_size = tokenizer_vocab_size(dataset->tokenizer);
        struct tensor_table *table = tensor_table_create(&variant->config.model, vocab_size);
        for (size_t s = 0; s < experiment->seed_count; s++) {
            struct run *run = &sweep->runs[sweep->run_count];
            *run = (struct run){.variant = v, .seed = experiment->seeds[s], .dataset = resolver->dataset_of[v]};
            run_key_make(&variant->config, run->seed, dataset->corpus_hash, dataset->tokenizer_hash, run->key);
            run->parameters = (int64_t)table->total;
            run->flops_per_token = model_flops_per_token(&variant->config.model, vocab_size);
            run->config_json = config_json(&variant->config, true);
            run->duplicate = text_index_find(&keys, run->key) != SIZE_MAX;
            if (!run->duplicate)
                text_index_add(&keys, run->key, sweep->run_count);
            else if (s == 0)
                problem_note(resolver->problems, variant->data.corpus.place,
                             "'%s' turns out the same as '%s' once its text is read: it is trained once",
                             variant->label,
                             experiment->variants[sweep->runs[text_index_find(&keys, run->key)].variant].label);
            sweep->run_count++;
        }
        tensor_table_free(table);
    }
    text_index_release(&keys);
}

/* A file that is refused leaves nothing behind: what was made for it goes, and the folders it was made in. */
static void cache_undo(const struct resolver *resolver, size_t folders)
{
    for (size_t i = 0; i < resolver->sweep->dataset_count; i++)
        dataset_unmake(&resolver->sweep->datasets[i]);
    folder_unmake(resolver->cache_folder, folders);
}

struct sweep *sweep_resolve(struct experiment *experiment, const char *cache_folder, bool shared,
                            struct problems *problems)
{
    size_t errors = problems->errors, folders = folder_missing(cache_folder);
    struct sweep *sweep = memory_alloc(1, sizeof *sweep);
    sweep->experiment = experiment;
    struct resolver resolver = {sweep, cache_folder, problems,
                                memory_alloc(experiment->variant_count, sizeof *resolver.dataset_of)};
    for (size_t i = 0; i < experiment->variant_count; i++)
        resolver.dataset_of[i] = dataset_for(&resolver, i);
    if (problems->errors == errors)
        split_check(&resolver);
    if (problems->errors == errors)
        runs_make(&resolver);
    memory_free(resolver.dataset_of);
    if (problems->errors == errors)
        return sweep;
    if (!problems->environment && !shared)
        cache_undo(&resolver, folders);
    sweep_free(sweep);
    return NULL;
}

void sweep_free(struct sweep *sweep)
{
    if (!sweep)
        return;
    for (size_t i = 0; i < sweep->run_count; i++)
        memory_free(sweep->runs[i].config_json);
    memory_free(sweep->runs);
    for (size_t i = 0; i < sweep->dataset_count; i++)
        dataset_close(&sweep->datasets[i]);
    memory_free(sweep->datasets);
    experiment_free(sweep->experiment);
    memory_free(sweep->choice);
    memory_free(sweep);
}
