-- Who spends most in a bill, and which part of it is that?
--
-- :period month           month of the bill, YYYY-MM
-- :source text = any      only this source
-- :rows   number = 20     how many lines to show
with spent as (
    -- one row per business line and currency
    select
        business_line,
        billing_currency,
        sum(billed_cost) as billed_cost,
        sum(effective_cost) as effective_cost
    from cost_by_business_line
    where
        billing_period = :period
        and (:source is null or source = :source)
    group by business_line, billing_currency
),

wholes as (
    -- the same, beside the whole in that currency
    select
        *,
        sum(effective_cost) over (partition by billing_currency) as whole_effective_cost
    from spent
)

select
    business_line,
    billing_currency,
    billed_cost,
    effective_cost,
    -- two DECIMAL(38,18) would divide to six decimals only: both are cast down first
    cast(effective_cost as decimal(28, 10))
    / nullif(cast(whole_effective_cost as decimal(28, 10)), 0) as effective_share
from wholes
order by billing_currency, effective_cost desc nulls last, business_line
limit :rows
