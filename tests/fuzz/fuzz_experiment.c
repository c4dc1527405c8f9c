/* libFuzzer target: any text as an experiment file: parsed, expanded, checked. What is taken can be trained and is
 * frozen without loss; what is refused has a reason. */
#include <string.h>

#include "core/memory.h"
#include "runner/experiment.h"
#include "tests/fuzz/fuzz_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { CHECKED = 4 }; /* variants of a file that are looked at closely */

static void check_variant(const struct variant *variant)
{
    struct config back;
    struct error err;
    char first[65], second[65];
    assert(variant->label && *variant->label);
    assert(!config_check(&variant->config, NULL, NULL));
    char *json = config_json(&variant->config, true);
    assert(config_from_json(json, &back, &err));
    run_key_make(&variant->config, 1, "a", "b", first);
    run_key_make(&back, 1, "a", "b", second);
    assert(strcmp(first, second) == 0);
    memory_free(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct problems problems;
    problems_init(&problems);
    struct experiment *experiment = experiment_load(fuzz_file("", "fuzz.yaml", bytes, size), NULL, &problems);
    assert(!experiment == (problems.errors > 0));
    if (experiment) {
        size_t baselines = 0;
        assert(experiment->variant_count > 0 && experiment->seed_count > 0);
        for (size_t i = 0; i < experiment->variant_count; i++) {
            if (i < CHECKED)
                check_variant(&experiment->variants[i]);
            baselines += experiment->variants[i].baseline;
        }
        assert(baselines <= 1); /* a grid need not have the control in it */
    }
    experiment_free(experiment);
    problems_release(&problems);
    return 0;
}
