/* An experiment file with the files it extends and the --set options, united to one flat mapping.
 *
 * Keys of the root: "name", "model.norm" (every setting by its full name, however it was written), "baseline.<setting>"
 * ("baseline" alone when it is empty), "compare.<field>", "launcher.<field>", "seeds", "sweep", "sweeps"; what is none
 * of these stays as it is. Inside sweep, the keys of `parameters` and of each variant are full names too. Order: the
 * base's keys, then what the file adds. */
#ifndef RUNNER_EXPERIMENT_TREE_H
#define RUNNER_EXPERIMENT_TREE_H

#include "runner/experiment.h"
#include "runner/yaml.h"

struct experiment_tree {
    struct yaml *root;
    bool complete; /* false: a file that it extends could not be read, and what is absent here may stand there */
    char **files;  /* names the places point to */
    size_t file_count;
    char *text, *question; /* of the file itself */
};

/* False with problems when the file itself could not be read. Release it either way. */
bool experiment_tree_read(const char *path, const struct experiment_options *options, struct experiment_tree *tree,
                          struct problems *problems);
void experiment_tree_release(struct experiment_tree *tree);

#endif
