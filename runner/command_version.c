/* runner version: which program this is and what it was built from. */
#include <stdio.h>

#include "core/cpu.h"
#include "runner/command.h"
#include "runner/json.h"
#include "runner/version.h"

static int version_run(const struct command *command, const struct arguments *arguments)
{
    (void)command;
    if (arguments->json) {
        json_t *root = json_object();
        json_put(root, "version", json_from_text(version_text()));
        json_put(root, "git_commit", json_from_text(version_commit()));
        json_put(root, "compiler", json_from_text(__VERSION__));
        json_put(root, "kernels", json_from_text(cpu_level()));
        json_put(root, "blas", json_from_text(blas_core_name()));
        json_print(root, stdout);
        json_decref(root);
        return EXIT_DONE;
    }
    printf("runner    %s\ncommit    %s\ncompiler  %s\nkernels   %s\nblas      %s\n", version_text(), version_commit(),
           __VERSION__, cpu_level(), blas_core_name());
    return EXIT_DONE;
}

extern const struct command command_version;
const struct command command_version = {
    .name = "version",
    .summary = "Show version, commit, compiler, and the kernels in use.",
    .help = "Example:\n  runner version --json",
    .json = true,
    .run = version_run,
};
