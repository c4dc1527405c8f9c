-- What each run of a variant ended on minus what the baseline's run of the same seed ended on, in the order of the
-- experiment's file. A run that has no partner, or did not finish, has one row whose step is null.
with planned as (
    select v.position, r.variant, r.seed, r.state, r.steps, v.baseline
    from variants v join runs r on r.experiment = v.experiment and r.variant = v.variant
    where v.experiment = :experiment
),
curve as (
    select variant, seed, step, value
    from curves
    where experiment = :experiment and split = :split and metric = :metric
),
ending as (
    select p.variant, p.seed, p.baseline, c.step, c.value
    from planned p join curve c
        on c.variant = p.variant and c.seed = p.seed and c.step = p.steps and p.state = 'finished'
)
select p.variant, p.seed, p.state, 0 as baseline, a.step, a.step as x, a.value - b.value as value
from planned p
    left join ending b on b.baseline and b.seed = p.seed
    left join ending a on a.variant = p.variant and a.seed = p.seed and b.seed is not null
where not p.baseline
order by p.position, p.seed;
