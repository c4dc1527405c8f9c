/* Progress is told what each run of a sweep will cost. */
#include "runner/sweep_progress.h"

#include "core/memory.h"
#include "runner/clock.h"

struct progress *sweep_progress_create(const struct sweep *sweep, const size_t *queue, size_t count, size_t workers,
                                       enum progress_mode mode, int64_t **blocks_out)
{
    struct progress_run *runs = memory_alloc(count, sizeof *runs);
    int64_t *blocks = memory_alloc(count, DATASET_SPLITS * sizeof *blocks);
    for (size_t i = 0; i < count; i++) {
        const struct run *run = &sweep->runs[queue[i]];
        const struct variant *variant = &sweep->experiment->variants[run->variant];
        const struct dataset *dataset = &sweep->datasets[run->dataset];
        runs[i] = (struct progress_run){.label = variant->label,
                                        .seed = run->seed,
                                        .config = &variant->config,
                                        .flops_per_token = run->flops_per_token,
                                        .split_blocks = blocks + i * DATASET_SPLITS,
                                        .split_count = dataset->split_count};
        for (size_t split = 0; split < dataset->split_count; split++)
            blocks[i * DATASET_SPLITS + split] =
                token_stream_blocks(&dataset->splits[split].stream, variant->config.model.context_length);
    }
    size_t total = 0;
    for (size_t i = 0; i < sweep->run_count; i++)
        total += !sweep->runs[i].duplicate && !sweep->runs[i].elsewhere;
    struct progress *progress = progress_create(runs, count, total, workers, mode, stderr, seconds_now());
    memory_free(runs);
    *blocks_out = blocks;
    return progress;
}
