-- How much of the money has an owner, how the owner was found, and why the rest has none. Grain: tag_coverage.yml.
with daily_costs as (
    -- one row per usage day and everything a charge is told apart by
    select * from {{ ref('stg_daily_costs') }}
),

covered as (
    -- one row per both months, service, currency and how the owner was found
    select
        source,
        billing_period,
        date_format(usage_day, 'yyyy-MM') as usage_month,
        service_name,
        attribution_state,
        unattributed_reason,
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
        service_name,
        attribution_state,
        unattributed_reason,
        billing_currency
),

wholes as (
    -- the same rows, beside the sums over both months, service and currency
    select
        *,
        sum(billed_cost) over whole as whole_billed_cost,
        sum(effective_cost) over whole as whole_effective_cost,
        sum(charge_rows) over whole as whole_charge_rows
    from covered
    window whole as (partition by source, billing_period, usage_month, service_name, billing_currency)
)

select
    source,
    billing_period,
    usage_month,
    service_name,
    attribution_state,
    unattributed_reason,
    billing_currency,
    billed_cost,
    effective_cost,
    list_cost,
    contracted_cost,
    charge_rows,
    {{ share('billed_cost', 'whole_billed_cost') }} as billed_share,
    {{ share('effective_cost', 'whole_effective_cost') }} as effective_share,
    cast(
        cast(charge_rows as decimal(18, 0)) / cast(whole_charge_rows as decimal(18, 0)) as decimal(11, 10)
    ) as charge_rows_share
from wholes
