-- The value at the last step of every run that finished, with the levels of the two knobs that vary; no rows when an
-- experiment does not vary exactly two.
with setting as (
    select distinct r.variant, j.key as knob,
           case j.type when 'true' then 'true' when 'false' then 'false' else j.value end as level
    from runs r, json_each(r.config) j
    where r.experiment = :experiment
),
varying as (
    select knob, row_number() over (order by count(distinct level), knob) as number, count(*) over () as total
    from setting
    group by knob
    having count(distinct level) > 1
),
planned as (
    select v.position, v.baseline, r.variant, r.seed, r.state, r.steps
    from variants v join runs r on r.experiment = v.experiment and r.variant = v.variant
    where v.experiment = :experiment
),
curve as (
    select variant, seed, step, value
    from curves
    where experiment = :experiment and split = :split and metric = :metric
)
select p.variant, p.seed, p.state, p.baseline, c.step, c.step as x, c.value,
       down.knob, one.level, across.knob, other.level
from planned p
    join varying down on down.number = 1 and down.total = 2
    join setting one on one.variant = p.variant and one.knob = down.knob
    join varying across on across.number = 2
    join setting other on other.variant = p.variant and other.knob = across.knob
    left join curve c on c.variant = p.variant and c.seed = p.seed and c.step = p.steps and p.state = 'finished'
order by p.position, p.seed;
