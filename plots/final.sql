-- The value of one metric on one split at the last step of every run that finished, in the order of the experiment's
-- file. A run that has none (not finished, diverged, failed) has one row whose step is null.
with planned as (
    select v.position, v.baseline, r.variant, r.seed, r.state, r.steps
    from variants v join runs r on r.experiment = v.experiment and r.variant = v.variant
    where v.experiment = :experiment
),
curve as (
    select variant, seed, step, value
    from curves
    where experiment = :experiment and split = :split and metric = :metric
)
select p.variant, p.seed, p.state, p.baseline, c.step, c.step as x, c.value
from planned p left join curve c
    on c.variant = p.variant and c.seed = p.seed and c.step = p.steps and p.state = 'finished'
order by p.position, p.seed;
