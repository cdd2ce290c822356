-- What each business line spent. Grain and units: cost_by_business_line.yml.
with monthly_cost as (
    -- one row per both months and everything finance asks by
    select * from {{ ref('monthly_cost') }}
)

select
    source,
    billing_period,
    usage_month,
    business_line,
    charge_category,
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
    business_line,
    charge_category,
    billing_currency
