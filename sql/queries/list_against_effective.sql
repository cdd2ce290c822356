-- What would the list price have been, and what was saved against it? Only lines that state both are compared.
--
-- :period month           month of the bill, YYYY-MM
-- :source text = any      only this source
with stated as (
    -- one row per bill line; the costs are cast down so that their difference keeps 18 decimals
    select
        x_business_line as business_line,
        billing_currency,
        list_cost is not null and effective_cost is not null as is_compared,
        cast(list_cost as decimal(37, 18)) as list_cost,
        cast(effective_cost as decimal(37, 18)) as effective_cost
    from charges
    where
        x_billing_period = :period
        and (:source is null or x_source = :source)
)

select
    business_line,
    billing_currency,
    sum(list_cost) filter (where is_compared) as list_cost,
    sum(effective_cost) filter (where is_compared) as effective_cost,
    sum(list_cost - effective_cost) as saved_cost,
    sum(effective_cost) filter (where not is_compared) as without_list_price_effective_cost,
    count(*) as charge_rows
from stated
group by business_line, billing_currency
order by billing_currency, saved_cost desc nulls last, business_line
