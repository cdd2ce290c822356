-- What was spent where. Grain and units: cost_by_region.yml.
with monthly_cost as (
    -- one row per both months and everything finance asks by
    select * from {{ ref('monthly_cost') }}
)

select
    source,
    billing_period,
    usage_month,
    provider_name,
    region_id,
    business_line,
    billing_currency,
    sum(billed_cost) as billed_cost,
    sum(effective_cost) as effective_cost,
    sum(list_cost) as list_cost,
    sum(contracted_cost) as contracted_cost,
    sum(charge_rows) as charge_rows
from monthly_cost
group by
    source,
    billing_period,
    usage_month,
    provider_name,
    region_id,
    business_line,
    billing_currency
