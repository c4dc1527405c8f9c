-- Every value of one metric on one split, a row each: the faint lines of the figure, in the order of the experiment's
-- file. A run without values has one row whose step is null.
with planned as (
    select v.position, v.baseline, r.variant, r.seed, r.state, r.flops_per_token
    from variants v join runs r on r.experiment = v.experiment and r.variant = v.variant
    where v.experiment = :experiment
),
curve as (
    select variant, seed, step, value, tokens, train_seconds
    from curves
    where experiment = :experiment and split = :split and metric = :metric
)
select p.variant, p.seed, p.state, p.baseline, c.step,
       case :x when 'tokens' then c.tokens
               when 'seconds' then c.train_seconds
               when 'flops' then c.tokens * p.flops_per_token
               else c.step end as x,
       c.value
from planned p left join curve c on c.variant = p.variant and c.seed = p.seed
order by p.position, p.seed, c.step;
