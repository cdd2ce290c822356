-- Each mart holds the money of daily_costs to the last digit: per source, billing period and currency.
with daily_costs as (
    -- one row per source, billing period and currency
    {{ sums('stg_daily_costs') }}
),

expected as (
    -- the same, once for every mart
    select
        * except (mart),
        explode(
            array('monthly_cost', 'cost_by_business_line', 'cost_by_model_version', 'cost_by_region', 'tag_coverage')
        ) as mart
    from daily_costs
),

found as (
    -- one row per mart, source, billing period and currency
    {{ sums('monthly_cost') }}
    union all
    {{ sums('cost_by_business_line') }}
    union all
    {{ sums('cost_by_model_version') }}
    union all
    {{ sums('cost_by_region') }}
    union all
    {{ sums('tag_coverage') }}
)

select
    coalesce(expected.mart, found.mart) as mart,
    coalesce(expected.source, found.source) as source,
    coalesce(expected.billing_period, found.billing_period) as billing_period,
    coalesce(expected.billing_currency, found.billing_currency) as billing_currency,
    expected.billed_cost as billed_in_daily_costs,
    found.billed_cost as billed_in_the_mart,
    expected.effective_cost as effective_in_daily_costs,
    found.effective_cost as effective_in_the_mart,
    expected.list_cost as list_in_daily_costs,
    found.list_cost as list_in_the_mart,
    expected.contracted_cost as contracted_in_daily_costs,
    found.contracted_cost as contracted_in_the_mart,
    expected.charge_rows as rows_in_daily_costs,
    found.charge_rows as rows_in_the_mart
from expected
full outer join found
    on
        expected.mart = found.mart
        and expected.source = found.source
        and expected.billing_period = found.billing_period
        and expected.billing_currency = found.billing_currency
where
    expected.mart is null
    or found.mart is null
    or not expected.billed_cost <=> found.billed_cost
    or not expected.effective_cost <=> found.effective_cost
    or not expected.list_cost <=> found.list_cost
    or not expected.contracted_cost <=> found.contracted_cost
    or not expected.charge_rows <=> found.charge_rows
