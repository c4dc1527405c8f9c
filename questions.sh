#!/bin/sh
# results/README.md: what lies in the folder, ten questions as SQL with their answers, every view and column.
#
#   ./questions.sh RUNNER DB     needs sqlite3 and a database with the experiment quick (runner run experiments/quick.yaml)
set -eu
[ $# = 2 ] || { echo "usage: ./questions.sh RUNNER DB" >&2; exit 2; }
runner=$1 db=$2
[ "$(sqlite3 -readonly "$db" "select count(*) from experiments where experiment = 'quick'")" = 1 ] || {
    echo "questions.sh: '$db' has no experiment 'quick': runner run experiments/quick.yaml" >&2
    exit 1
}

number=0
ask() { # question; the query is on standard input
    number=$((number + 1))
    query=$(cat)
    printf '### %d. %s\n\n```sql\n%s\n```\n\n' "$number" "$1" "$query"
    sqlite3 -readonly -markdown "$db" "$query"
    echo
}

cat <<'TEXT'
# Results

`results.db` holds every loss of every run; `checkpoints/` the weights, `plots/` and `reports/` what was drawn and
written. All but this file and the write-ups is made by `runner run` and not kept in git. Written by `make questions`.

Read the database with any SQLite client, also while runs train:

```
sqlite3 -readonly results/results.db
```

## Ten questions

Asked of `experiments/quick.yaml`. A value that is not finite is stored as Infinity, so that `min`, `avg` and
`order by` do not call a diverged run the best.

TEXT

ask 'Which variant is better, and do the seeds separate it from the baseline?' <<'SQL'
select l.variant, printf('%.4f', l.mean) as mean, l.n || ' of ' || l.n_planned as seeds,
       iif(c.delta is null, '', printf('%+.4f', c.delta)) as delta,
       iif(c.ci_low is null, '', printf('[%.4f, %.4f]', c.ci_low, c.ci_high)) as interval,
       coalesce(c.verdict, 'baseline') as verdict
from losses l left join comparisons c using (experiment, variant, split, metric)
where l.experiment = 'quick' and l.split = 'validation' and l.metric = 'bits_per_byte'
order by l.mean;
SQL
ask 'How far do seeds scatter, against how far variants are apart?' <<'SQL'
select printf('%.4f', max(spread)) as widest_seeds, printf('%.4f', max(mean) - min(mean)) as variants_apart
from losses
where experiment = 'quick' and split = 'validation' and metric = 'bits_per_byte';
SQL
ask 'Does the order hold on code and on prose?' <<'SQL'
select variant,
       printf('%.4f', max(mean) filter (where split = 'code')) as code,
       printf('%.4f', max(mean) filter (where split = 'prose')) as prose
from losses
where experiment = 'quick' and metric = 'bits_per_byte'
group by variant order by code;
SQL
ask 'How did the validation loss fall?' <<'SQL'
select step, variant, printf('%.4f', avg(value)) as mean, count(*) as seeds
from curves
where experiment = 'quick' and split = 'validation' and metric = 'bits_per_byte' and step in (0, 50, 150)
group by step, variant order by step, mean;
SQL
ask 'When does training loss first fall below 5 nats, as a mean of ten steps?' <<'SQL'
with smooth as (
    select variant, seed, step, avg(value) over (partition by variant, seed order by step rows 9 preceding) as loss
    from curves
    where experiment = 'quick' and split = 'train' and metric = 'loss'
)
select variant, seed, min(step) as first_step from smooth where loss < 5 and step >= 9 group by variant, seed;
SQL
ask 'What does a variant cost?' <<'SQL'
select variant, max(parameters) as parameters, sum(tokens) as tokens,
       printf('%.2f', sum(tokens * flops_per_token) / 1e12) as tera_flops,
       printf('%.0f', avg(train_seconds)) as seconds_a_run
from runs where experiment = 'quick' group by variant;
SQL
ask 'Which is ahead after the same time?' <<'SQL'
with reached as (
    select variant, seed, value, row_number() over (partition by variant, seed order by step desc) as newest
    from curves
    where experiment = 'quick' and split = 'validation' and metric = 'bits_per_byte' and train_seconds <= 30
)
select variant, printf('%.4f', avg(value)) as at_30_seconds from reached where newest = 1 group by variant order by 2;
SQL
ask 'Where did the gradient jump?' <<'SQL'
with norms as (
    select variant, seed, step, value, avg(value) over (partition by variant, seed order by step
                                                         rows between 10 preceding and 1 preceding) as before
    from curves
    where experiment = 'quick' and split = 'train' and metric = 'grad_norm'
)
select variant, seed, step, printf('%.2f', value) as grad_norm, printf('%.2f', before) as mean_before
from norms where step > 10 and value > 2.5 * before order by value / before desc limit 5;
SQL
ask 'Which knobs differ, and to what loss?' <<'SQL'
select r.variant, c."model.residual", c."model.norm", c."training.learning_rate" as learning_rate,
       printf('%.4f', l.mean) as loss
from runs r join run_config c using (run_key)
    join losses l on l.experiment = r.experiment and l.variant = r.variant
where r.experiment = 'quick' and l.split = 'validation' and l.metric = 'loss'
group by r.variant order by l.mean;
SQL
ask 'Where and with what was it trained, and did anything go wrong?' <<'SQL'
select state, count(*) as runs, group_concat(distinct version) as version, group_concat(distinct precision) as precision,
       group_concat(distinct reason) as reasons
from runs where experiment = 'quick' group by state;
SQL

printf '## Views\n\nThe views are the interface: tables may change, views do not.\n\n'
"$runner" schema --format md
