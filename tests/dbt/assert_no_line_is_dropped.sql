-- Every bill line counted in daily_costs is in monthly_cost, at its own place, and none is invented.
with daily_costs as (
    -- one row per place in the mart
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
        sum(charge_rows) as charge_rows
    from {{ ref('stg_daily_costs') }}
    where {{ in_periods() }}
    group by all
),

mart as (
    -- one row per place in the mart
    select * from {{ ref('monthly_cost') }}
    where {{ in_periods() }}
)

select
    coalesce(mart.source, daily_costs.source) as source,
    coalesce(mart.billing_period, daily_costs.billing_period) as billing_period,
    coalesce(mart.business_line, daily_costs.business_line) as business_line,
    daily_costs.charge_rows as rows_in_daily_costs,
    mart.charge_rows as rows_in_the_mart
from daily_costs
full outer join mart
    on
        daily_costs.source = mart.source
        and daily_costs.billing_period = mart.billing_period
        and daily_costs.usage_month = mart.usage_month
        and daily_costs.business_line = mart.business_line
        and daily_costs.model_version <=> mart.model_version
        and daily_costs.environment <=> mart.environment
        and daily_costs.tenant <=> mart.tenant
        and daily_costs.region_id <=> mart.region_id
        and daily_costs.provider_name <=> mart.provider_name
        and daily_costs.charge_category = mart.charge_category
        and daily_costs.billing_currency = mart.billing_currency
where not (daily_costs.charge_rows <=> mart.charge_rows)
