/* Queries whose plans are tested. */
#include "runner/query.h"

#include "runner/metric_sql.h"
#include "runner/run_sql.h"

static const char *const texts[QUERY_COUNT] = {
    /* run */
    [QUERY_LAST_STEP] = "select loss, loss_kind from step where run = ? order by step desc limit 1",
    /* run */
    [QUERY_LAST_EVALUATIONS] =
        "select split" METRIC_COLUMNS ", max(step) from evaluation where run = ? group by split order by split",
    /* experiment */
    [QUERY_MEMBERS] = "select v.id, v.baseline, m.seed, r.id, r.state from variant v "
                      "join member m on m.variant = v.id join run r on r.id = m.run "
                      "where v.experiment = ? order by v.position, v.id, m.seed",
    /* run key */
    [QUERY_EXPERIMENTS_OF_RUN] = "select distinct v.experiment from run r join member m on m.run = r.id "
                                 "join variant v on v.id = m.variant where r.key = ?",
    /* experiment */
    [QUERY_DELETE_LOSSES] = "delete from loss_summary where variant in (select id from variant where experiment = ?)",
    /* experiment */
    [QUERY_DELETE_COMPARISONS] =
        "delete from comparison_summary where variant in (select id from variant where experiment = ?)",
    /* run key */
    [QUERY_RUN_STATE] = "select state, reason, (select count(*) from step s where s.run = run.id and " STEP_MADE
                        ") from run where key = ?",
    /* split, metric, split, metric, experiment */
    [QUERY_TABLE] =
        "select v.id, v.label, v.baseline, v.changes, l.n, l.n_planned, l.n_diverged, l.mean, l.sd, l.spread, "
        "c.delta, c.ci_low, c.ci_high, c.p, c.p_holm, c.mde, c.verdict "
        "from variant v left join loss_summary l on l.variant = v.id and l.split = ? and l.metric = ? "
        "left join comparison_summary c on c.variant = v.id and c.split = ? and c.metric = ? "
        "where v.experiment = ? order by v.baseline desc, v.position, v.id",
    /* variant */
    [QUERY_TABLE_RUNS] =
        "select m.seed, r.state, " REASON ", r.parameters, t.hash, r.host, r.cpu || ' ' || r.kernels || ' ' || r.blas, "
        "r.precision, (select tokens from step where run = r.id order by step desc limit 1), "
        "r.earlier_cpus <> '' from member m join run r on r.id = m.run join tokenizer t on t.id = r.tokenizer "
        "where m.variant = ? order by m.seed",
    /* experiment */
    [QUERY_MEMBER_CONFIGS] = "select v.baseline, m.seed, r.id, r.state, r.config from variant v "
                             "join member m on m.variant = v.id join run r on r.id = m.run "
                             "where v.experiment = ? order by v.position, v.id, m.seed",
    /* experiment */
    [QUERY_REPORT_RUNS] =
        "select v.label, m.seed, r.state, r.key, r.steps, " STEPS_DONE ", s.seconds, " TOKENS_DONE
        ", r.flops_per_token, r.host, "
        "r.cpu || ' (' || r.kernels || ')', r.blas, r.precision, r.version, r.git_commit, r.corpus_hash, t.hash, "
        "r.started_at, r.ended_at, r.reason "
        "from variant v join member m on m.variant = v.id join run r on r.id = m.run "
        "join tokenizer t on t.id = r.tokenizer "
        "left join step s on s.run = r.id and s.step = (select max(step) from step where run = r.id) "
        "where v.experiment = ? order by v.position, v.id, m.seed",
    /* split, metric, experiment's name or null for all, the same again */
    [QUERY_DETECTABLE] = "select e.name, v.label, c.n, c.mde, e.alpha from experiment e "
                         "join variant v on v.experiment = e.id "
                         "join comparison_summary c on c.variant = v.id and c.split = ? and c.metric = ? "
                         "where (? is null or e.name = ?) and not e.archived and c.n >= 2 and c.mde is not null "
                         "order by e.id, v.position, v.id",
    /* experiment */
    [QUERY_FINISHED_RUNS] = "select v.id, r.id, r.tokenizer, r.steps from variant v join member m on m.variant = v.id "
                            "join run r on r.id = m.run where v.experiment = ? and r.state = 'finished'",
    /* experiment. Noise takes a loss over n bytes no lower than floor - 2 floor / sqrt(n): four deviations, were the
     * deviation of a byte's loss half the floor; that of uniform letters is next to none. */
    [QUERY_LEAKS] = "select distinct v.id from variant v join member m on m.variant = v.id join run r on r.id = m.run "
                    "join evaluation s on s.run = r.id and s.split = 'validation' "
                    "where v.experiment = ? and r.floor > 0 and s.bits_per_byte_kind = 0 and s.bits_per_byte < r.floor "
                    "and (1 - s.bits_per_byte / r.floor) * (1 - s.bits_per_byte / r.floor) * s.evaluated_bytes > 4",
    /* run; columns as moment.c counts them */
    [QUERY_CURVE_TRAIN] = "select step + 1, tokens, seconds, loss, loss_kind from step where run = ? order by step",
    /* run, split */
    [QUERY_CURVE_EVALUATION] =
        "select step, tokens, seconds" METRIC_COLUMNS " from evaluation where run = ? and split = ? order by step",
    /* experiment */
    [QUERY_MEASURES] = "select distinct l.split, l.metric from variant v join loss_summary l on l.variant = v.id "
                       "where v.experiment = ? order by l.split = 'train', l.split = 'validation' desc, l.split, "
                       "l.metric",
    /* none */
    [QUERY_STATUS_COUNTS] =
        "select e.id, e.name, r.state, count(distinct r.id) from experiment e "
        "join variant v on v.experiment = e.id join member m on m.variant = v.id join run r on r.id = m.run "
        "where not e.archived group by e.id, r.state order by e.id",
    /* experiment */
    [QUERY_STATUS_RUNS] =
        "select min(v.position), v.label, m.seed, r.key, r.state, r.steps, r.first_step, "
        "r.tokens_per_step * r.flops_per_token, (julianday('now') - 2440587.5) * 86400 - r.process_started, " STEPS_DONE
        ", s.loss, s.loss_kind, s.seconds "
        "from variant v join member m on m.variant = v.id join run r on r.id = m.run "
        "left join step s on s.run = r.id and s.step = (select max(step) from step where run = r.id) "
        "where v.experiment = ? and r.state in ('queued', 'running', 'interrupted') group by r.id order by 1, 3",
};

const char *query_text(enum query query)
{
    return texts[query];
}
