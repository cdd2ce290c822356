-- What was spent, by the month of use and the month of the bill. Grain and units: monthly_cost.yml.
with daily_costs as (
    -- one row per usage day and everything a charge is told apart by
    select * from {{ ref('stg_daily_costs') }}
)

select
    source,
    billing_period,
    date_format(usage_day, 'yyyy-MM') as usage_month,
    business_line,
    model_version,
    environment,
    tenant,
    region_id,
    provider_name,
    charge_category,
    billing_currency,
    sum(billed_cost) as billed_cost,
    sum(effective_cost) as effective_cost,
    sum(list_cost) as list_cost,
    sum(contracted_cost) as contracted_cost,
    sum(charge_rows) as charge_rows
from daily_costs
group by
    source,
    billing_period,
    date_format(usage_day, 'yyyy-MM'),
    business_line,
    model_version,
    environment,
    tenant,
    region_id,
    provider_name,
    charge_category,
    billing_currency
