-- What grew or shrank most from one month's bill to another's?
--
-- :period month           month of the newer bill, YYYY-MM
-- :before month = any     month of the older bill, YYYY-MM; any: the month before
-- :source text = any      only this source
-- :rows   number = 20     how many lines to show
with months as (
    -- one row: the two months compared
    select
        :period as this_month,
        coalesce(:before, date_format(add_months(to_date(:period || '-01'), -1), 'yyyy-MM')) as month_before
),

compared as (
    -- one row per bill line group of the two months
    select
        cost.business_line,
        cost.model_version,
        cost.billing_currency,
        cost.billing_period = months.this_month as is_this_month,
        cost.effective_cost
    from cost_by_model_version as cost
    inner join months
        on cost.billing_period = months.this_month or cost.billing_period = months.month_before
    where :source is null or cost.source = :source
)

select
    business_line,
    model_version,
    billing_currency,
    sum(effective_cost) filter (where not is_this_month) as before_effective_cost,
    sum(effective_cost) filter (where is_this_month) as effective_cost,
    -- summed with its sign: subtracting two DECIMAL(38,18) would lose the last digit
    sum(if(is_this_month, effective_cost, -effective_cost)) as growth_effective_cost
from compared
group by business_line, model_version, billing_currency
order by billing_currency, abs(growth_effective_cost) desc nulls last, business_line, model_version
limit :rows
