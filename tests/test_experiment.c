/* Experiment files: what they mean, and what each mistake is answered with. */
#include "tests/experiment_case.h"

#include <criterion/parameterized.h>

/* ---- refused ---- */

struct refused {
    const char *text, *message;
};

static const struct refused refused[] = {
    /* numbers */
    {"training: {learning_rate: 1e-3x}",
     "f.yaml:1:27: training.learning_rate is '1e-3x': expected a finite number of at least 0"},
    {"training: {learning_rate: 1e}", "f.yaml:1:27: training.learning_rate is '1e'"},
    {"training: {learning_rate: 1e999}", "f.yaml:1:27: training.learning_rate is '1e999'"},
    {"training: {learning_rate: 1e-999}", "f.yaml:1:27: training.learning_rate is '1e-999'"},
    {"training: {learning_rate: nan}", "f.yaml:1:27: training.learning_rate is 'nan'"},
    {"training: {learning_rate: .inf}", "f.yaml:1:27: training.learning_rate is '.inf'"},
    {"training: {learning_rate: -1e-3}", "f.yaml:1:27: training.learning_rate is '-1e-3'"},
    {"training: {learning_rate: \"1e-3\"}", "is '\"1e-3\"': expected a finite number of at least 0 without quotes"},
    {"training: {learning_rate: [1e-3, 3e-4]}", "f.yaml:1:27: training.learning_rate is a list"},
    {"training: {steps: 40.5}", "f.yaml:1:19: training.steps is '40.5': expected a whole number from 1 to 1000000000"},
    {"training: {steps: 99999999999999999999}", "f.yaml:1:19: training.steps is '99999999999999999999'"},
    {"training: {steps: 0}", "f.yaml:1:19: training.steps is '0'"},
    {"training: {steps: 0x10}", "f.yaml:1:19: training.steps is '0x10'"},
    {"model: {context_length: 0}", "f.yaml:1:25: model.context_length is '0'"},
    {"model: {dropout: 1.0}", "f.yaml:1:18: model.dropout is '1.0': expected a number of at least 0 and below 1"},
    /* words */
    {"model: {scaled_init: nope}", "f.yaml:1:22: model.scaled_init is 'nope': expected true or false"},
    {"model: {scaled_init: \"no\"}",
     "f.yaml:1:22: model.scaled_init is '\"no\"': expected true or false without quotes"},
    {"model: {scaled_init: yes}", "model.scaled_init is 'yes': expected true or false"},
    {"model: {norm: rmsnrom}", "(did you mean rmsnorm?)"},
    {"model: {rope_layout: adjacnet}",
     "f.yaml:1:22: model.rope_layout is 'adjacnet': expected adjacent or split (did you mean adjacent?)"},
    {"model: {residual: {a: 1}}", "f.yaml:1:19: model.residual is a mapping: expected pre or post"},
    {"model: {residual: {}}", "f.yaml:1:19: model.residual is a mapping: expected pre or post"},
    /* twice */
    {"name: a\nseeds: [1]\nname: b", "f.yaml:3:1: key 'name' is given twice: first at line 1, again at line 3"},
    {"training: {learning_rate: 1e-3}\ntraining.learning_rate: 1e-3",
     "f.yaml:2:1: training.learning_rate is given twice: first at line 1, again at line 2"},
    {"sweep: {parameters: {model.norm: [rmsnorm]}}\nsweep: {}", "f.yaml:2:1: key 'sweep' is given twice"},
    {"sweep: {parameters: {model.norm: [rmsnorm], model: {norm: [layernorm]}}}",
     "f.yaml:1:53: model.norm is given twice: first at line 1, again at line 1"},
    {"sweep: {parameters: {model.norm: [rmsnorm]}, include: [{model.norm: rmsnorm, model: {norm: layernorm}}]}",
     "model.norm is given twice"},
    /* misspelt and misplaced */
    {"training: {warmpu: 3}", "f.yaml:1:12: unknown key 'training.warmpu': did you mean training.warmup_steps?"},
    {"warmup_steps: 3", "f.yaml:1:1: unknown key 'warmup_steps': did you mean training.warmup_steps?"},
    {"model: {warmup_steps: 3}", "f.yaml:1:9: unknown key 'model.warmup_steps': did you mean training.warmup_steps?"},
    {"training: {seed: 3}", "f.yaml:1:12: unknown key 'training.seed': seeds stand at the top of the file"},
    {"sweep: {parameters: {seed: [1, 2]}}", "f.yaml:1:22: unknown key 'seed': seeds stand at the top of the file"},
    {"modle: {norm: rmsnorm}", "f.yaml:1:1: unknown key 'modle': did you mean model?"},
    {"modle.norm: rmsnorm", "f.yaml:1:1: unknown key 'modle.norm': did you mean model.norm?"},
    {"tokenizer: {kind: byte}", "f.yaml:1:1: unknown key 'tokenizer': did you mean data.tokenizer?"},
    {"zebra: {kind: byte}", "f.yaml:1:1: unknown key 'zebra': expected one of data, model, training"},
    {"name: {a: b}", "f.yaml:1:7: name is a mapping: expected text"},
    {"modle: 3", "f.yaml:1:1: unknown key 'modle': did you mean model?"},
    {"method: grid", "f.yaml:1:1: unknown key 'method': did you mean sweep.method?"},
    {"metric: loss", "f.yaml:1:1: unknown key 'metric': did you mean compare.metric?"},
    {"sede: 3", "f.yaml:1:1: unknown key 'sede': did you mean"},
    {"zebra: 3", "f.yaml:1:1: unknown key 'zebra': expected one of name, description, extends"},
    {"training: {zebra: 3}", "unknown key 'training.zebra': expected one of steps, batch_size"},
    {"data: {tokenizer: {kind: bpe, vocab: 300}}",
     "unknown key 'data.tokenizer.vocab': did you mean data.tokenizer.vocab_size?"},
    {"launchr: {time: 10}", "f.yaml:1:1: unknown key 'launchr': did you mean launcher?"},
    {"launchr.time: 10", "f.yaml:1:1: unknown key 'launchr.time': did you mean launcher.time?"},
    {"launcher: {array: 0-3}", "f.yaml:1:12: launcher: 'array' is set by runner itself"},
    {"launcher: {Time: 3}", "launcher: 'Time=3' is no setting of a job: expected key=value"},
    {"launcher: {time: [1, 2]}", "launcher.time is a list: expected text or a number"},
    {"sweep: {parameters: {model.nrom: [rmsnorm]}}", "f.yaml:1:22: unknown key 'model.nrom': did you mean model.norm?"},
    {"sweep: {parameters: {norm: [rmsnorm]}}", "f.yaml:1:22: unknown key 'norm': did you mean model.norm?"},
    {"sweep: {parameters: {seed: [1, 2]}}", "f.yaml:1:22: unknown key 'seed'"},
    {"sweep: {paramters: {model.norm: [rmsnorm]}}", "f.yaml:1:9: unknown key 'paramters': did you mean parameters?"},
    {"sweep: {parameters: {model.norm: [rmsnorm]}}\nsweeps: []", "sweep at line 1 and sweeps at line 2"},
    {"baseline: {model.nrom: rmsnorm}", "f.yaml:1:12: unknown key 'model.nrom': did you mean model.norm?"},
    {"baseline: 3", "f.yaml:1:11: baseline is text: expected a mapping"},
    {"compare: {metrc: loss}", "f.yaml:1:11: unknown key 'metrc': did you mean metric?"},
    {"compare: {metric: los}", "f.yaml:1:19: compare.metric is 'los': expected loss, bits_per_byte"},
    {"compare: {metric: los}", "perplexity"},
    {"compare: {metric: los}", " (did you mean loss?)"},
    {"compare: {margin: -1}", "f.yaml:1:19: compare.margin is '-1': expected a finite number of at least 0"},
    {"compare: {alpha: 0.7}", "f.yaml:1:18: compare.alpha is '0.7': expected a number above 0 and at most 0.5"},
    {"compare: {split: train}", "f.yaml:1:18: compare.split is 'train'"},
    {"model: 5", "f.yaml:1:1: 'model' is text '5': expected a mapping of its settings"},
    {"- a\n- b", "f.yaml:1:1: the file is a list: expected a mapping"},
    {"# nothing", "f.yaml:1:1: the file is empty"},
    /* names */
    {"name: a/b", "f.yaml:1:7: name is 'a/b': expected 1 to 100 letters, digits, '.', '_' or '-'"},
    {"name: ''", "f.yaml:1:7: name is ''"},
    {"name: ..", "f.yaml:1:7: name is '..'"},
    {"name: [a]", "f.yaml:1:7: name is a list: expected text"},
    /* seeds */
    {"seeds: []", "f.yaml:1:8: seeds is an empty list: expected at least one seed"},
    {"seeds: 3", "f.yaml:1:8: seeds is '3': expected a list such as [1337, 1338] or {count: 3, start: 1337}"},
    {"seeds: [1.5]", "f.yaml:1:9: seed is '1.5': expected a whole number from 0"},
    {"seeds: [-1]", "f.yaml:1:9: seed is '-1'"},
    {"seeds: ['1']", "f.yaml:1:9: seed is '\"1\"'"},
    {"seeds: [9223372036854775808]", "seed is '9223372036854775808'"},
    {"seeds: {start: 4}", "f.yaml:1:8: seeds has no count"},
    {"seeds: {count: 0}", "f.yaml:1:16: seeds.count is '0'"},
    {"seeds: {count: 2, first: 4}", "f.yaml:1:19: unknown key 'first'"},
    {"seeds: {count: 2, start: 9223372036854775807}", "seeds go past"},
    {"seeds: [1]\nseed: 2", "f.yaml:2:7: seed at line 2 and seeds at line 1"},
    {"seed: x", "f.yaml:1:7: seed is 'x'"},
    /* data */
    {"data: {corpus: []}", "f.yaml:1:16: data.corpus is an empty list"},
    {"data: {corpus: ''}", "f.yaml:1:16: data.corpus has nothing where a path should be"},
    {"data: {corpus: [builtin, a.txt]}", "f.yaml:1:17: data.corpus has 'builtin' in a list"},
    {"data: {corpus: {a: b}}",
     "f.yaml:1:16: data.corpus is a mapping: expected builtin, a file, folder or glob, or a list of them"},
    {"data: {validation_fraction: 1}", "f.yaml:1:29: data.validation_fraction is '1'"},
    {"data: {tokenizer: {vocab_size: 100}}", "f.yaml:1:32: vocab_size 100 is below 259"},
    /* sweeps */
    {"sweep: {parameters: {model.norm: []}}", "f.yaml:1:22: axis model.norm is an empty list"},
    {"sweep: {parameters: {model.norm: rmsnorm}}", "f.yaml:1:34: axis model.norm is text: expected a list of values"},
    {"sweep: {parameters: {model.norm: [rmsnrom]}}", "f.yaml:1:35: model.norm is 'rmsnrom'"},
    {"sweep: {parameters: {model.dropout: [0, ~]}}", "f.yaml:1:41: axis model.dropout has nothing among its values"},
    {"sweep: {method: random, parameters: {model.norm: [rmsnorm]}}",
     "f.yaml:1:17: method is 'random': expected grid, ablation, zip or list"},
    {"sweep: {method: gird, parameters: {model.norm: [rmsnorm]}}", "(did you mean grid?)"},
    {"sweep: {method: grid}", "f.yaml:1:1: method grid has no `parameters`"},
    {"sweep: {method: list, parameters: {model.norm: [rmsnorm]}}", "method list has `parameters`: expected `variants`"},
    {"sweep: {variants: {a: {}}}", "method grid has `variants`: expected `parameters`"},
    {"sweep: {method: list, variants: {}}", "variants is empty"},
    {"sweep: {method: list, variants: {a: {model.nrom: x}}}",
     "f.yaml:1:38: unknown key 'model.nrom': did you mean model.norm?"},
    {"sweep: {method: list, variants: {a: {model.norm: rmsnorm}, \"a\\nb\": {}}}", "has control characters"},
    {"sweep: 3", "f.yaml:1:8: sweep is text: expected a mapping"},
    {"sweeps: []", "f.yaml:1:9: sweeps is an empty list"},
    {"sweeps: [{method: grid}]", "f.yaml:1:10: method grid has no `parameters`"},
    {"sweep: {method: zip, parameters: {model.norm: [layernorm, rmsnorm], model.dropout: [0]}}",
     "f.yaml:1:69: zip: model.dropout has 1 values and model.norm has 2: expected equal numbers"},
    {"sweep: {parameters: {model.norm: [rmsnorm]}, exclude: [{}]}", "f.yaml:1:56: an entry of exclude is empty"},
    {"sweep: {parameters: {model.norm: [rmsnorm]}, exclude: [{model.norm: rmsnorm}]}", "exclude takes every point out"},
    {"sweep: {parameters: {model.norm: [rmsnorm]}, include: {model.norm: rmsnorm}}",
     "f.yaml:1:55: include is a mapping: expected a list"},
    {"sweep: {method: list, variants: {a: {model.norm: rmsnorm}}, include: [{label: a, model.dropout: 0.1}]}",
     "label 'a' names two different variants"},
    /* impossible points */
    {"model: {d_model: 36, n_heads: 8}", "f.yaml:1:31: d_model 36 does not divide into n_heads 8"},
    {"sweep: {parameters: {model.d_model: [32, 36], model.n_heads: [4, 8]}}",
     "point 'd_model=36, n_heads=8' cannot be trained: d_model 36 does not divide into n_heads 8"},
    {"model: {n_heads: 8}\nsweep: {parameters: {model.d_model: [32, 36]}}",
     "f.yaml:2:42: point 'd_model=36' cannot be trained: d_model 36 does not divide"},
    {"model: {d_model: 12}\nsweep: {parameters: {model.position: [learned, rope]}}",
     "f.yaml:2:48: point 'rope' cannot be trained: position rope needs an even head_dim, and head_dim is 3"},
    {"training: {steps: 10}", "f.yaml:1:19: warmup_steps 20 is more than steps 10"},
    {"training:\n  learning_rate: 1e-6", "f.yaml:2:18: min_learning_rate 3e-05 is above learning_rate 1e-06"},
    {"training: {warmup_steps: 300}", "f.yaml:1:26: warmup_steps 300 is more than steps 200"},
    {"sweep: {parameters: {model.dropout: [0, 1.0]}}", "f.yaml:1:41: model.dropout is '1.0'"},
    {"model: {kv_heads: 3}", "f.yaml:1:19: kv_heads 3 is not a divisor of n_heads 4"},
    /* extends */
    {"extends: nowhere.yaml", "f.yaml:1:10: extends: "},
    {"extends: f.yaml", "is already being extended: expected no cycle"},
    {"extends: [a, b]", "f.yaml:1:10: extends is a list: expected the path of one file"},
};
enum { REFUSED = sizeof refused / sizeof refused[0] };

ParameterizedTestParameters(experiment, mistakes_have_their_place)
{
    static size_t indices[REFUSED];
    index_array(indices, REFUSED);
    return cr_make_param_array(size_t, indices, REFUSED);
}

ParameterizedTest(size_t *index, experiment, mistakes_have_their_place, .init = folder_open, .fini = folder_close)
{
    char *said;
    struct experiment *experiment = load_with(refused[*index].text, NULL, &said);
    cr_expect_null(experiment, "accepted: %s", refused[*index].text);
    cr_expect_not_null(strstr(said, refused[*index].message), "%s\nsaid: %swant: %s", refused[*index].text, said,
                       refused[*index].message);
    experiment_free(experiment);
    free(said);
}

Test(experiment, all_mistakes_of_a_file_are_told_at_once, .init = folder_open, .fini = folder_close)
{
    char *said;
    cr_assert_null(load_with("model: {norm: x, nrom: y}\ntraining: {steps: -1}\nseeds: []\nname: a b\n"
                             "sweep: {parameters: {model.dropout: []}}\ncompare: {alpha: 3}",
                             NULL, &said));
    size_t lines = 0;
    for (const char *p = said; *p; p++)
        lines += *p == '\n';
    cr_expect_eq(lines, 7, "%s", said);
    free(said);
}

/* All that is said of a file, to the letter. */
struct said {
    const char *text, *said;
};

#define HEADS_36                                                                                                       \
    "d_model 36 does not divide into n_heads 8 (remainder 4): choose a divisor of d_model or set head_dim\n"
#define WARMUP_500 "warmup_steps 500 is more than steps 200: expected at most steps\n"
#define MODLE "unknown key 'modle': did you mean model?\n"
#define SWEP "unknown key 'swep': did you mean sweep?\n"
#define OR_EXCLUDE "; or take the point out with exclude:\n"
#define POINT_36                                                                                                       \
    "point 'd_model=36' cannot be trained: d_model 36 does not divide into n_heads 8 (remainder 4): choose a divisor " \
    "of d_model or set head_dim" OR_EXCLUDE

static const struct said said_of[] = {
    /* impossible combinations beside other mistakes */
    {"model: {d_model: 36, n_heads: 8}\ntraining: {steps: 200, warmup_steps: 500}\nmodle:",
     "f.yaml:1:31: " HEADS_36 "f.yaml:2:38: " WARMUP_500 "f.yaml:3:1: " MODLE},
    {"model: {n_heads: 8}\nsweep: {parameters: {model.d_model: [32, 36]}}\ncompare: {metrik: loss}",
     "f.yaml:2:42: " POINT_36 "f.yaml:3:11: unknown key 'metrik': did you mean metric?\n"},
    {"seeds: 3\nmodel: {d_model: 36, n_heads: 8}", "f.yaml:1:8: seeds is '3': expected a list such as [1337, 1338] or "
                                                   "{count: 3, start: 1337}\nf.yaml:2:31: " HEADS_36},
    {"seeds: {count: 2000}\nmodel: {d_model: 36, n_heads: 8}",
     "f.yaml:1:1: this sweep has 2,000 runs: over 1,000 need --yes\nf.yaml:2:31: " HEADS_36},
    {"baseline: {training.warmup_steps: 500}\nmodel: {n_heads: 8}\nsweep: {parameters: {model.d_model: [32, 36]}}",
     "f.yaml:1:35: " WARMUP_500 "f.yaml:3:42: " POINT_36},
    {"model: {n_heads: 8}\nsweeps: [{parameters: {model.d_model: [36]}}, {parameters: {model.norm: [x]}}]",
     "f.yaml:2:40: " POINT_36 "f.yaml:2:74: model.norm is 'x': expected layernorm or rmsnorm\n"},
    {"sweep: {method: zip, parameters: {model.norm: [layernorm, rmsnorm], model.dropout: [0]}, xclude: []}",
     "f.yaml:1:69: zip: model.dropout has 1 values and model.norm has 2: expected equal numbers\n"
     "f.yaml:1:90: unknown key 'xclude': did you mean exclude?\n"},
    /* what could not be read is no ground for another complaint */
    {"training: {steps: \"200\", warmup_steps: 500}",
     "f.yaml:1:19: training.steps is '\"200\"': expected a whole number from 1 to 1000000000 without quotes\n"},
    {"training: {steps: 10, warmpu_steps: 5}",
     "f.yaml:1:23: unknown key 'training.warmpu_steps': did you mean training.warmup_steps?\n"},
    {"warmup_steps: 5\ntraining: {steps: 10}", "f.yaml:1:1: unknown key 'warmup_steps': did you mean "
                                               "training.warmup_steps?\n"},
    {"training: {steps: 10}\ntraining.steps: 50",
     "f.yaml:2:1: training.steps is given twice: first at line 1, again at line 2\n"},
    {"variants: {a: {model.n_heads: 6}}\nmodel: {d_model: 36, n_heads: 8}",
     "f.yaml:1:1: unknown key 'variants': did you mean sweep.variants?\n"},
    {"modle: {n_heads: 6}\nmodel: {d_model: 36}", "f.yaml:1:1: unknown key 'modle': did you mean model?\n"},
    {"model: {d_model: 36, n_heads: 8}\nsweep: {parameters: {model.n_heads: [6, x]}}",
     "f.yaml:2:41: model.n_heads is 'x': expected a whole number from 1 to 4096\n"},
    {"model: {d_model: 36, n_heads: 8}\nsweep: {parameters: {model.n_haeds: [6]}}",
     "f.yaml:2:22: unknown key 'model.n_haeds': did you mean model.n_heads?\n"},
    {"model: {d_model: 36, n_heads: 8, norm: x}\nbaseline: {model.n_heads: 6}\n"
     "sweep: {method: ablation, parameters: {model.dropout: [x]}}",
     "f.yaml:1:40: model.norm is 'x': expected layernorm or rmsnorm\n"
     "f.yaml:3:56: model.dropout is 'x': expected a number of at least 0 and below 1\n"},
    {"model: {n_heads: 8, norm: x}\nsweep: {parameters: {model.d_model: [32, 36]}, exclude: [{model.d_model: 36, "
     "model.norm: rmsnorm}]}",
     "f.yaml:1:27: model.norm is 'x': expected layernorm or rmsnorm\n"},
    {"model: {d_model: 36, n_heads: x}\nbaseline: {model.n_heads: 8}",
     "f.yaml:1:31: model.n_heads is 'x': expected a whole number from 1 to 4096\nf.yaml:2:27: " HEADS_36},
    /* a misspelt section is one mistake */
    {"swep: {method: grid, parameters: {model.norm: [layernorm, rmsnorm], model.dropout: [0, 0.1]}}",
     "f.yaml:1:1: " SWEP},
    {"swep: {parameters: {model.n_heads: [6]}}\nmodel: {d_model: 36, n_heads: 8}", "f.yaml:1:1: " SWEP},
    {"basline: {model.norm: rmsnorm}", "f.yaml:1:1: unknown key 'basline': did you mean baseline?\n"},
    {"launchr: {partition: gpu, time: 10}", "f.yaml:1:1: unknown key 'launchr': did you mean launcher?\n"},
    {"evalution: {interval: 10, blocks: 3}", "f.yaml:1:1: unknown key 'evalution': did you mean evaluation?\n"},
    {"parameters: {model.n_heads: [6]}\nmodel: {d_model: 36, n_heads: 8}",
     "f.yaml:1:1: unknown key 'parameters': did you mean sweep.parameters?\n"},
    /* a base that cannot be read hides nothing of the file, and what it may hold is not missed */
    {"extends: nowhere.yaml\nmodel: {nrom: rmsnorm}\ntraining: {steps: 200, warmup_steps: 500}",
     "f.yaml:1:10: extends: cannot read 'nowhere.yaml': No such file or directory\n"
     "f.yaml:2:9: unknown key 'model.nrom': did you mean model.norm?\nf.yaml:3:38: " WARMUP_500},
    {"extends: nowhere.yaml\nmodel: {n_heads: 6}\nseeds: {start: 3}\nsweep: {method: zip}\ntraining: {steps: 10}",
     "f.yaml:1:10: extends: cannot read 'nowhere.yaml': No such file or directory\n"},
    {"extends: []\nmodel: {nrom: rmsnorm, n_heads: 6}",
     "f.yaml:1:10: extends is a list: expected the path of one file\n"
     "f.yaml:2:9: unknown key 'model.nrom': did you mean model.norm?\n"},
};
enum { SAID = sizeof said_of / sizeof said_of[0] };

ParameterizedTestParameters(experiment, mistakes_are_told_together_and_each_once)
{
    static size_t indices[SAID];
    index_array(indices, SAID);
    return cr_make_param_array(size_t, indices, SAID);
}

ParameterizedTest(size_t *index, experiment, mistakes_are_told_together_and_each_once, .init = folder_open,
                  .fini = folder_close)
{
    char *said;
    cr_expect_null(load_with(said_of[*index].text, NULL, &said));
    cr_expect_str_eq(said, said_of[*index].said, "%s\nsaid: %swant: %s", said_of[*index].text, said,
                     said_of[*index].said);
    free(said);
}

static char *said_of_no_good(const char *text)
{
    struct problems problems;
    char *path = path_join(folder, "no good.yaml");
    problems_init(&problems);
    file_put("no good.yaml", text);
    cr_expect_null(experiment_load(path, NULL, &problems));
    char *said = problems_text(&problems);
    problems_release(&problems);
    memory_free(path);
    return said;
}

Test(experiment, what_is_wrong_with_a_file_as_a_whole_has_its_first_place, .init = folder_open, .fini = folder_close)
{
    char *large = memory_alloc((1 << 20) + 2, 1);
    memset(large, '#', (1 << 20) + 1);
    struct {
        const char *text, *said;
    } rows[] = {
        {large, "no good.yaml:1:1: cannot read 'no good.yaml': it is larger than 1048576 bytes\n"},
        {"model: {norm: rmsnorm}",
         "no good.yaml:1:1: the file's name gives the experiment's name 'no good': expected 1 to 100 letters, digits, "
         "'.', '_' or '-'; add a line name: ...\n"},
        {"extends: nowhere.yaml", /* where the name may stand */
         "no good.yaml:1:10: extends: cannot read 'nowhere.yaml': No such file or directory\n"},
    };
    for (size_t i = 0; i < 3; i++) {
        char *said = said_of_no_good(rows[i].text);
        cr_expect_str_eq(said, rows[i].said);
        free(said);
    }
    memory_free(large);
}

/* ---- accepted: labels in order, the baseline with a star ---- */

struct accepted {
    const char *text, *labels, *note;
};

static const struct accepted accepted[] = {
    {"name: plain", "baseline*", ""},
    {"model: {norm: rmsnorm}\nsweep: ~\n", "baseline*", ""},
    {"sweep: {parameters: {model.residual: [pre, post], model.norm: [layernorm, rmsnorm]}}",
     "pre, layernorm*|pre, rmsnorm|post, layernorm|post, rmsnorm", ""},
    {"sweep: {parameters: {model: {residual: [pre, post]}, training.steps: [200, 300]}}",
     "pre, steps=200*|pre, steps=300|post, steps=200|post, steps=300", ""},
    {"sweep: {method: ablation, parameters: {model.norm: [rmsnorm], model.dropout: [0.1, 2e-1]}}",
     "baseline*|rmsnorm|dropout=0.1|dropout=0.2", ""},
    {"sweep: {method: ablation, parameters: {model.norm: [layernorm, rmsnorm]}}", "baseline*|rmsnorm",
     "'layernorm' is the same run as 'baseline': it is trained once"},
    {"sweep: {method: ablation, parameters: {model.norm: [layernorm]}}\nbaseline: {model.norm: rmsnorm}",
     "baseline*|layernorm", ""},
    {"sweep: {method: zip, parameters: {model.n_layers: [2, 4], model.d_model: [128, 64]}}",
     "n_layers=2, d_model=128*|n_layers=4, d_model=64", ""},
    {"sweep: {method: list, variants: {plain: {}, it's $x: {model.norm: rmsnorm}}}", "plain*|it's $x", ""},
    {"sweep: {parameters: {model.scaled_init: [false, true], model.tied_embeddings: [true, false]}}",
     "no scaled_init, tied_embeddings*|no scaled_init, no tied_embeddings|scaled_init, tied_embeddings|scaled_init, no "
     "tied_embeddings",
     ""},
    {"sweep: {parameters: {model.norm: [layernorm, rmsnorm]}, include: [{label: modern, model.position: rope}, "
     "{model.dropout: 0.1}]}",
     "layernorm*|rmsnorm|modern|dropout=0.1", ""},
    {"sweep: {parameters: {model.residual: [pre, post], model.norm: [layernorm, rmsnorm]}, exclude: [{model.residual: "
     "post, model.norm: rmsnorm}]}",
     "pre, layernorm*|pre, rmsnorm|post, layernorm", ""},
    {"sweep: {parameters: {model.norm: [layernorm]}, exclude: [{model.norm: rmsnorm}]}", "layernorm*",
     "this exclude matches no point"},
    {"sweep: {parameters: {model.d_model: [32, 36], model.n_heads: [4, 8]}, exclude: [{model.d_model: 36, "
     "model.n_heads: 8}]}",
     "d_model=32, n_heads=4|d_model=32, n_heads=8|d_model=36, n_heads=4", "there is no baseline to compare with"},
    {"sweeps: [{parameters: {model.norm: [layernorm, rmsnorm]}}, {method: ablation, parameters: {model.dropout: "
     "[0.1]}}]",
     "layernorm*|rmsnorm|dropout=0.1", "'baseline' is the same run as 'layernorm'"},
    {"sweep: {parameters: {training.learning_rate: [0.001, 1e-3, 1.0e-3, .001, 1E-3]}}", "learning_rate=0.001",
     "is the same run as 'learning_rate=0.001'"},
    {"sweep: {parameters: {training.learning_rate: [0.0010001, 0.0010002]}}",
     "learning_rate=0.0010001|learning_rate=0.0010002", ""},
    {"sweep: {parameters: {training.learning_rate: [0.001]}}\nbaseline: {}", "baseline*|learning_rate=0.001",
     "no point of the sweep is the baseline: it is added as a variant"},
    {"sweep: {parameters: {model.norm: [layernorm, rmsnorm]}}\nbaseline: {model.norm: rmsnorm}", "layernorm|rmsnorm*",
     ""},
    {"sweep: {parameters: {model.position: [learned, rope], model.rope_base: [10000, 500000]}}",
     "learned, rope_base=10000*|rope, rope_base=10000|rope, rope_base=500000",
     "'learned, rope_base=500000' is the same run as 'learned, rope_base=10000'"},
    {"model: {rope_base: 5e5}", "baseline*", "model.rope_base changes nothing in 'baseline'"},
    {"model: {kv_heads: 4, head_dim: 32, ff_hidden: 512, norm_epsilon: 1e-5}", "baseline*", ""},
    {"sweep: {parameters: {data.corpus: [builtin, a.txt, [b.txt, c.txt]]}}",
     "corpus=builtin*|corpus=a.txt|corpus=b.txt+c.txt", ""},
    {"sweep: {parameters: {data.tokenizer.kind: [bpe, char, byte]}}", "bpe*|char|byte", ""},
    {"seeds: [1, 1, 2]", "baseline*", "seed 1 is listed again: it runs once"},
    {"data: {validation: v.txt, validation_fraction: 0.2}", "baseline*", "data.validation_fraction changes nothing"},
    {"sweep: {method: list, variants: {a: {}, b: {model.kv_heads: 4}}}", "a*", "'b' is the same run as 'a'"},
    {"sweep: {parameters: {model.norm: [layernorm, rmsnorm]}, include: [{label: mine, model.norm: rmsnorm}]}",
     "layernorm*|mine", "'mine' is the same run as 'rmsnorm'"},
    {"baseline: {model.norm: rmsnorm}\nname: own", "baseline*|own", "added as a variant"},
};
enum { ACCEPTED = sizeof accepted / sizeof accepted[0] };

ParameterizedTestParameters(experiment, a_sweep_has_these_variants)
{
    static size_t indices[ACCEPTED];
    index_array(indices, ACCEPTED);
    return cr_make_param_array(size_t, indices, ACCEPTED);
}

ParameterizedTest(size_t *index, experiment, a_sweep_has_these_variants, .init = folder_open, .fini = folder_close)
{
    const struct accepted *row = &accepted[*index];
    char *said;
    struct experiment *experiment = load_with(row->text, NULL, &said);
    cr_assert_not_null(experiment, "%s\n%s", row->text, said);
    char *labels = labels_of(experiment);
    cr_expect_str_eq(labels, row->labels, "%s\n%s", row->text, said);
    cr_expect_not_null(strstr(said, row->note), "%s\nsaid: %swant: %s", row->text, said, row->note);
    free(labels);
    free(said);
    experiment_free(experiment);
}

/* ---- values ---- */

static char *config_of(const char *text)
{
    char *said;
    struct experiment *experiment = load_with(text, NULL, &said);
    cr_assert_not_null(experiment, "%s", said);
    char *json = config_json(&experiment->variants[0].config, false);
    experiment_free(experiment);
    free(said);
    return json;
}

Test(experiment, spellings_of_one_value_are_one_value, .init = folder_open, .fini = folder_close)
{
    static const char *const same[] = {"training: {learning_rate: 1e-3}", "training: {learning_rate: 1.0e-3}",
                                       "training: {learning_rate: .001}", "training: {learning_rate: 1E-3}",
                                       "training.learning_rate: +0.001"};
    for (size_t i = 0; i < 5; i++) {
        char *json = config_of(same[i]);
        cr_expect_str_eq(json, "{\"training.learning_rate\":0.001}", "%s", same[i]);
        memory_free(json);
    }
}

Test(experiment, zero_is_a_value_and_nothing_is_the_default, .init = folder_open, .fini = folder_close)
{
    struct {
        const char *text, *json;
    } rows[] = {
        {"training: {warmup_steps: 0}", "{\"training.warmup_steps\":0}"},
        {"training: {weight_decay: 0}", "{\"training.weight_decay\":0}"},
        {"model: {dropout: 0}", "{}"},
        {"training: {learning_rate: }", "{}"},
        {"training: {learning_rate: null}", "{}"},
        {"training: {learning_rate: ~}", "{}"},
        {"training:\n", "{}"},
        {"training: {steps: 040}", "{\"training.steps\":40}"},
        {"model.norm: rmsnorm", "{\"model.norm\":\"rmsnorm\"}"},
        {"model: {norm: \"rmsnorm\"}", "{\"model.norm\":\"rmsnorm\"}"},
        {"data.tokenizer: {kind: byte}", "{\"data.tokenizer.kind\":\"byte\"}"},
        {"data: {tokenizer.kind: byte}", "{\"data.tokenizer.kind\":\"byte\"}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *json = config_of(rows[i].text);
        cr_expect_str_eq(json, rows[i].json, "%s", rows[i].text);
        memory_free(json);
    }
}

Test(experiment, words_in_text_fields_stay_text, .init = folder_open, .fini = folder_close)
{
    char *said;
    struct experiment *experiment = load_with("# Why?\n# Because.\n\n# other\nname: no\ndescription: on", NULL, &said);
    cr_assert_not_null(experiment, "%s", said);
    cr_expect_str_eq(experiment->name, "no");
    cr_expect_str_eq(experiment->description, "on");
    cr_expect_str_eq(experiment->question, "Why?\nBecause.");
    cr_expect_str_eq(experiment->text, "# Why?\n# Because.\n\n# other\nname: no\ndescription: on");
    cr_expect_eq(experiment->seeds[0], 1337);
    experiment_free(experiment);
    free(said);
    experiment = load_with("seed: 010", NULL, &said);
    cr_expect_str_eq(experiment->name, "f", "the file's name");
    cr_expect_eq(experiment->seeds[0], 10);
    experiment_free(experiment);
    free(said);
    experiment = load_with("seeds: [0, 9223372036854775807]", NULL, &said);
    cr_expect_eq(experiment->seeds[0], 0);
    cr_expect_eq(experiment->seeds[1], INT64_MAX);
    experiment_free(experiment);
    free(said);
}

Test(experiment, the_compare_block_has_defaults_and_takes_values, .init = folder_open, .fini = folder_close)
{
    char *said;
    struct experiment *experiment = load_with("compare.margin: 0.5\ncompare: {metric: loss, split: code}", NULL, &said);
    cr_assert_not_null(experiment, "%s", said);
    cr_expect_str_eq(experiment->compare.metric, "loss");
    cr_expect_str_eq(experiment->compare.split, "code");
    cr_expect_eq(experiment->compare.margin, 0.5);
    cr_expect_eq(experiment->compare.alpha, 0.05);
    experiment_free(experiment);
    free(said);
}

Test(experiment, overrides_are_what_a_variant_changes_and_matters, .init = folder_open, .fini = folder_close)
{
    char *said;
    struct experiment *experiment =
        load_with("sweep: {method: list, variants: {base: {}, v: {training.steps: 300, model.rope_base: 5, model.norm: "
                  "rmsnorm, model.dropout: 0}}}",
                  NULL, &said);
    cr_assert_not_null(experiment, "%s", said);
    const struct variant *variant = &experiment->variants[1];
    cr_assert_eq(variant->override_count, 2, "rope_base is ignored, dropout is as in the baseline");
    cr_expect_str_eq(variant->overrides[0].name, "training.steps");
    cr_expect_str_eq(variant->overrides[0].value, "300");
    cr_expect_str_eq(variant->overrides[1].name, "model.norm");
    cr_expect_eq(experiment->variants[0].override_count, 0);
    experiment_free(experiment);
    free(said);
}

/* ---- extends ---- */

Test(experiment, extends_merges_deeply_and_this_file_wins, .init = folder_open, .fini = folder_close)
{
    char *said, *sub = path_join(folder, "base");
    cr_assert_eq(mkdir(sub, 0700), 0);
    file_put("base/deep.yaml",
             "model: {d_model: 64, n_layers: 3, norm: rmsnorm}\ntraining.steps: 90\nseeds: {count: 3, "
             "start: 5}\nsweep: {parameters: {model.residual: [pre, post]}}\ndata: {corpus: t.txt}");
    file_put("base/mid.yaml", "extends: deep.yaml\nmodel.n_layers: 5\nmodel: {norm: ~}");
    struct experiment *experiment = load_with("extends: base/mid.yaml\nmodel: {d_model: 32}\nseeds: {count: 2}\n"
                                              "sweep: {parameters: {model: {dropout: [0, 0.1]}}}",
                                              NULL, &said);
    cr_assert_not_null(experiment, "%s", said);
    char *labels = labels_of(experiment);
    cr_expect_str_eq(labels, "pre, dropout=0*|pre, dropout=0.1|post, dropout=0|post, dropout=0.1");
    const struct config *config = &experiment->variants[0].config;
    cr_expect_eq(config->model.d_model, 32);
    cr_expect_eq(config->model.n_layers, 5);
    cr_expect_eq(config->model.norm, NORM_LAYERNORM);
    cr_expect_eq(config->training.steps, 90);
    cr_expect_eq(experiment->seed_count, 2);
    cr_expect_eq(experiment->seeds[1], 6);
    cr_expect_str_eq(experiment->variants[0].data.corpus.folder, sub, "paths of a base are relative to it");
    cr_expect_str_eq(experiment->name, "f");
    experiment_free(experiment);
    free(labels);
    free(said);
    memory_free(sub);
}

Test(experiment, a_cycle_of_extends_is_refused, .init = folder_open, .fini = folder_close)
{
    char *said;
    file_put("a.yaml", "extends: b.yaml");
    file_put("b.yaml", "extends: ./a.yaml");
    cr_expect_null(load_with("extends: a.yaml", NULL, &said));
    cr_expect_not_null(strstr(said, "b.yaml:1:10: extends: "), "%s", said);
    free(said);
}

Test(experiment, a_mistake_in_a_base_names_the_base, .init = folder_open, .fini = folder_close)
{
    char *said;
    file_put("a.yaml", "model:\n  nrom: x");
    cr_expect_null(load_with("extends: a.yaml", NULL, &said));
    cr_expect_str_eq(said, "a.yaml:2:3: unknown key 'model.nrom': did you mean model.norm?\n");
    free(said);
}

/* ---- the experiments that come with the program ---- */

Test(experiment, every_experiment_loads_without_a_word_and_asks_a_question)
{
    struct {
        const char *path;
        size_t runs;
        const char *baseline;
    } rows[] = {
        {"experiments/day2-norms.yaml", 12, "pre, layernorm"},
        {"experiments/day2-parts.yaml", 24, "baseline"},
        {"experiments/positions.yaml", 12, "baseline"},
        {"experiments/dropout.yaml", 12, "baseline"},
        {"experiments/scaled-init.yaml", 24, "n_layers=2, no scaled_init"},
        {"experiments/tied-init.yaml", 6, "baseline"},
        {"experiments/quick.yaml", 8, "pre, layernorm"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct problems problems;
        problems_init(&problems);
        struct experiment *experiment = experiment_load(rows[i].path, NULL, &problems);
        cr_assert_not_null(experiment, "%s", problems.count ? problems.items[0].text : rows[i].path);
        cr_expect_eq(problems.count, 0, "%s", problems.count ? problems.items[0].text : "");
        cr_expect_eq(experiment->variant_count * experiment->seed_count, rows[i].runs, "%s", rows[i].path);
        cr_expect_not_null(strchr(experiment->question, '?'), "%s", rows[i].path);
        size_t baselines = 0;
        for (size_t v = 0; v < experiment->variant_count; v++)
            if (experiment->variants[v].baseline) {
                baselines++;
                cr_expect_str_eq(experiment->variants[v].label, rows[i].baseline);
            }
        cr_expect_eq(baselines, 1, "%s", rows[i].path);
        experiment_free(experiment);
        problems_release(&problems);
    }
}

Test(experiment, settings_of_the_job_are_passed_through_and_no_part_of_a_run, .init = folder_open, .fini = folder_close)
{
    char *said;
    struct experiment *with = load_with("launcher: {time: 1:00:00, mem: 010, exclusive: '', qos: no}\n", NULL, &said);
    cr_assert(with, "%s", said);
    cr_assert_eq(with->launcher_count, 4);
    static const char *const want[] = {"time=1:00:00", "mem=010", "exclusive", "qos=no"};
    for (size_t i = 0; i < 4; i++)
        cr_assert_str_eq(with->launcher[i], want[i]);
    cr_assert_eq(with->variants[0].override_count, 0);
    experiment_free(with);
    free(said);
}
