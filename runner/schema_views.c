/* The public interface of results.db: each view with its columns, what they mean, and the query behind it.
 *
 * The column names of a view are those of its rows here, in this order; the test of schema.h holds them against the
 * database. Joins of curves are `cross join` so that SQLite keeps their order: the big tables are always searched by
 * run. */
#include "runner/schema.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/knob.h"
#include "runner/metric_sql.h"
#include "runner/run_sql.h"
#include "runner/text_stream.h"

#define COLUMNS(rows) rows, sizeof(rows) / sizeof(rows)[0]

static const struct schema_column runs_columns[] = {
    {"run_key", "SHA-256 of the run's effective knobs, seed, corpus and tokenizer: its identity"},
    {"experiment", "name of the experiment; NAME@1 is the earlier set of an experiment that was changed since"},
    {"variant", "label of the variant"},
    {"seed", "the run's seed"},
    {"state", "queued, running, finished, diverged, failed or interrupted"},
    {"reason", "why it diverged, failed (with the last line of its log) or was interrupted; null otherwise"},
    {"step", "optimiser updates made so far"},
    {"steps", "optimiser updates planned"},
    {"tokens", "tokens trained on so far"},
    {"parameters", "trained numbers of the model, a tied head counted once"},
    {"flops_per_token", "floating point operations of training on one token, forward and backward"},
    {"train_loss", "loss of the last logged step's batch, in nats a token; Infinity when it was not finite"},
    {"train_seconds", "time spent training so far, over all its processes"},
    {"started_at", "when the run first started, UTC, ISO 8601"},
    {"ended_at", "when it ended, UTC, ISO 8601; null while it has not"},
    {"host", "machine that trained it last"},
    {"cpu", "its processor, with the compiled set of kernels that served it; others that trained earlier steps follow"},
    {"blas", "library, kernels and threads of the matrix products"},
    {"precision", "number format of the matrix products"},
    {"git_commit", "commit that the program was built from"},
    {"version", "version of the program"},
    {"config", "every knob of the run as JSON"},
};
static const char runs_body[] =
    "select r.key, e.name, v.label, m.seed, r.state, nullif(" REASON ", ''),\n"
    "  " STEPS_DONE ", r.steps, " TOKENS_DONE ",\n"
    "  r.parameters, r.flops_per_token, s.loss, coalesce(s.seconds, 0.0), r.started_at, r.ended_at,\n"
    "  r.host, r.cpu || ' (' || r.kernels || ')' || iif(r.earlier_cpus = '', '', '; ' || rtrim(replace(r.earlier_cpus, "
    "char(10), '; '), '; ')),\n"
    "  r.blas, r.precision, r.git_commit, r.version, r.config\n"
    "from experiment e\n"
    "  join variant v on v.experiment = e.id\n"
    "  join member m on m.variant = v.id\n"
    "  join run r on r.id = m.run\n"
    "  left join step s on s.run = r.id and s.step = (select max(step) from step where run = r.id)";

/* Docs of columns name loss and bits_per_byte in their own words, and the metrics after them by the table:
 * UNNAMED(" and ", perplexity) is " and perplexity", UNNAMED(" and ", loss) is "". */
#define NAMED_loss , ""
#define NAMED_bits_per_byte , ""
#define SECOND(a, b, ...) b
#define SECOND_OF(...) SECOND(__VA_ARGS__)
#define UNNAMED(before, name) SECOND_OF(NAMED_##name, before #name, )
#define COMMA_UNNAMED(name, ...) UNNAMED(", ", name)
#define AND_UNNAMED(name, ...) UNNAMED(" and ", name)
#define OF_LOWER_IS_BETTER(name) ""
#define OF_HIGHER_IS_BETTER(name) ", of " name " higher"
#define OF_BETTER(name, count, value, better, ...) OF_##better(#name)
/* clang-format off */
#define CURVES_METRIC_DOC                                                                                              \
    "train: loss, grad_norm, learning_rate; evaluations: loss, bits_per_byte" METRICS(COMMA_UNNAMED)
#define COMPARED_METRIC_DOC                                                                                            \
    "loss, and for evaluations bits_per_byte" METRICS(AND_UNNAMED) ": lower is better" METRICS(OF_BETTER)
/* clang-format on */

static const struct schema_column curves_columns[] = {
    {"experiment", "name of the experiment"},
    {"variant", "label of the variant"},
    {"seed", "the run's seed"},
    {"step", "train: number of the update, from 0, the value is from before it; evaluations: updates made so far"},
    {"tokens", "tokens trained on up to here"},
    {"train_seconds", "time spent training up to here"},
    {"split", "train, validation, or a kind of text (code, prose)"},
    {"metric", CURVES_METRIC_DOC},
    {"value", "the number; Infinity when it is not finite, so that min, avg and order by do not lie"},
    {"kind", "finite, nan, inf or -inf"},
};
#define KIND(column) "case " column " when 0 then 'finite' when 1 then 'nan' when 2 then 'inf' else '-inf' end"
#define CURVES_FROM                                                                                                    \
    "from experiment e\n"                                                                                              \
    "  cross join variant v on v.experiment = e.id\n"                                                                  \
    "  cross join member m on m.variant = v.id\n"
/* The cast gives the constant the affinity of the column of evaluations: SQLite then searches each part directly
 * instead of building all rows and columns first, which halves the time of a curve. */
#define TRAIN(metric, kind)                                                                                            \
    "select e.name, v.label, m.seed, s.step, s.tokens, s.seconds, cast('train' as text), '" metric "', s." metric      \
    ", " kind "\n" CURVES_FROM "  cross join step s on s.run = m.run"
#define EVALUATION(metric, ...)                                                                                        \
    "\nunion all\nselect e.name, v.label, m.seed, s.step, s.tokens, s.seconds, s.split, '" #metric "', s." #metric     \
    ",\n  " KIND("s." #metric "_kind") "\n" CURVES_FROM "  cross join evaluation s on s.run = m.run where s." #metric  \
                                       " is not null"
/* clang-format off */
static const char curves_body[] =
    TRAIN("loss", KIND("s.loss_kind")) "\nunion all\n"
    TRAIN("grad_norm", KIND("s.grad_norm_kind")) "\nunion all\n"
    TRAIN("learning_rate", "'finite'")
    METRICS(EVALUATION);
/* clang-format on */

static const struct schema_column losses_columns[] = {
    {"experiment", "name of the experiment"},
    {"variant", "label of the variant"},
    {"split", "train, validation, or a kind of text"},
    {"metric", COMPARED_METRIC_DOC},
    {"n", "finished seeds with a finite value: those the mean is over"},
    {"n_planned", "seeds planned"},
    {"n_diverged", "seeds that diverged, or ended on a value that is not finite"},
    {"mean", "mean over the n seeds at the last step (train: of the last logged batch)"},
    {"sd", "sample standard deviation; null below two seeds"},
    {"spread", "max - min; null below two seeds"},
    {"min", "lowest of the n values"},
    {"max", "highest of the n values"},
};
static const char losses_body[] =
    "select e.name, v.label, l.split, l.metric, l.n, l.n_planned, l.n_diverged, l.mean, l.sd, l.spread, l.min, l.max\n"
    "from experiment e join variant v on v.experiment = e.id join loss_summary l on l.variant = v.id";

static const struct schema_column comparisons_columns[] = {
    {"experiment", "name of the experiment"},
    {"variant", "label of the variant"},
    {"baseline", "label of the variant it is compared with"},
    {"split", "train, validation, or a kind of text"},
    {"metric", COMPARED_METRIC_DOC},
    {"n", "seeds that both finished: the pairs"},
    {"delta", "mean of variant - baseline over the pairs; below 0 is better where lower is"},
    {"ci_low", "lower end of the t interval of delta at 1 - alpha; null below two pairs"},
    {"ci_high", "upper end"},
    {"p", "p value of the paired t test, two-sided"},
    {"p_holm", "the same, Holm-adjusted over the variants of this split and metric"},
    {"mde", "smallest true difference that so many pairs find with 80 % power: (t(1 - alpha/2) + t(0.8)) sd / sqrt(n)"},
    {"verdict", "better or worse (p_holm < alpha and |delta| >= margin), same (interval within the margin), "
                "not separated (with the seeds that would decide it), n/a below two pairs"},
};
static const char comparisons_body[] =
    "select e.name, v.label, b.label, c.split, c.metric, c.n, c.delta, c.ci_low, c.ci_high, c.p, c.p_holm, c.mde,\n"
    "  c.verdict\n"
    "from experiment e join variant v on v.experiment = e.id join comparison_summary c on c.variant = v.id\n"
    "  join variant b on b.experiment = e.id and b.baseline";

static const struct schema_column knobs_columns[] = {
    {"name", "as in the experiment file, with its group: model.norm"},
    {"kind", "integer, number, boolean or choice"},
    {"choices", "the choices, or the range in words"},
    {"default", "the value when a file does not give one; quote the column's name: \"default\""},
    {"doc", "what it does"},
};
static const char knobs_body[] = "select name, kind, choices, standard, doc from knob order by position";

static const struct schema_column experiments_columns[] = {
    {"experiment", "name of the experiment; NAME@1 is the earlier set of an experiment that was changed since"},
    {"description", "its description; empty when the file gives none"},
    {"question", "the file's first comment: the question it answers"},
    {"metric", "what its comparisons are made on"},
    {"split", "and on which split"},
    {"margin", "differences smaller than this do not matter"},
    {"alpha", "1 - alpha is the confidence of its intervals"},
    {"frozen_at", "when its settings were last frozen, UTC, ISO 8601"},
};
static const char experiments_body[] =
    "select name, description, question, metric, split, margin, alpha, frozen_at from experiment";

static const struct schema_column variants_columns[] = {
    {"experiment", "name of the experiment"},
    {"variant", "label of the variant"},
    {"position", "its place in the experiment file, from 0"},
    {"baseline", "1 for the variant the others are compared with, else 0"},
};
static const char variants_body[] =
    "select e.name, v.label, v.position, v.baseline from experiment e join variant v on v.experiment = e.id";

static const struct schema_view fixed_views[] = {
    {"runs", "One row for each (experiment, variant, seed): how far it is, what it cost, where it ran.",
     COLUMNS(runs_columns)},
    {"curves", "Every logged number of every run.", COLUMNS(curves_columns)},
    {"losses", "The loss table: final values over the seeds of each variant.", COLUMNS(losses_columns)},
    {"comparisons", "Each variant against the baseline, paired by seed.", COLUMNS(comparisons_columns)},
    {"experiments", "Every experiment: its question and how its variants are compared.", COLUMNS(experiments_columns)},
    {"variants", "The variants of each experiment and their order in its file.", COLUMNS(variants_columns)},
    {"knobs", "Every knob of an experiment file.", COLUMNS(knobs_columns)},
};
static const char *const bodies[] = {runs_body,        curves_body,   losses_body, comparisons_body,
                                     experiments_body, variants_body, knobs_body};
enum { FIXED_VIEWS = sizeof bodies / sizeof bodies[0] };

/* run_config has run_key and a column for each knob. */
enum { CONFIG_COLUMNS = 256 };
static struct schema_column config_columns[CONFIG_COLUMNS] = {{"run_key", "the run, as in runs"}};
static struct schema_view config_view = {
    "run_config", "Every knob of every run, one column each, named like the knob: quote them (\"model.norm\").",
    config_columns, 1};

const struct schema_view *schema_view(size_t index)
{
    if (index < FIXED_VIEWS)
        return &fixed_views[index];
    if (index > FIXED_VIEWS)
        return NULL;
    for (size_t i = 0; i < knob_count && i + 1 < CONFIG_COLUMNS; i++)
        config_columns[i + 1] = (struct schema_column){knobs[i].name, knobs[i].doc};
    config_view.column_count = knob_count + 1;
    return &config_view;
}

/* A run without the setting has the knob's default, which never changes: also one frozen before the knob was there. */
static void config_column_put(const struct knob *knob, FILE *out)
{
    char standard[KNOB_TEXT_SIZE];
    const char *before = knob->kind == KNOB_CHOICE ? "'" : knob->kind == KNOB_NUMBER ? "cast(" : "";
    const char *after = knob->kind == KNOB_CHOICE ? "'" : knob->kind == KNOB_NUMBER ? " as real)" : "";
    fprintf(out, ",\n  coalesce((select value from setting where run = r.id and knob = '%s'), %s%s%s)", knob->name,
            before, knob_format(knob, knob->standard, standard), after);
}

char *schema_view_sql(const struct schema_view *view)
{
    struct text_stream text;
    text_stream_open(&text);
    FILE *out = text.out;
    fprintf(out, "create view %s(", view->name);
    for (size_t i = 0; i < view->column_count; i++)
        fprintf(out, "%s\"%s\"", i ? ", " : "", view->columns[i].name);
    fputs(") as\n", out);
    if (view == &config_view) {
        fputs("select r.key", out);
        for (size_t i = 0; i < knob_count; i++)
            config_column_put(&knobs[i], out);
        fputs("\nfrom run r where exists (select 1 from member where run = r.id)", out);
    } else {
        fputs(bodies[view - fixed_views], out);
    }
    return text_stream_take(&text);
}
