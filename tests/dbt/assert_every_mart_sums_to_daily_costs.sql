-- Each mart holds the money of daily_costs to the last digit: per source, billing period and currency, no more, no less.
{%- set marts = [
    'monthly_cost', 'cost_by_business_line', 'cost_by_model_version', 'cost_by_region', 'tag_coverage'
] -%}
{%- set measures = ['billed_cost', 'effective_cost', 'list_cost', 'contracted_cost', 'charge_rows'] %}

with daily_costs as (
    -- one row per source, billing period and currency
    select
        source,
        billing_period,
        billing_currency
        {%- for measure in measures %},
        sum({{ measure }}) as {{ measure }}
        {%- endfor %}
    from {{ ref('stg_daily_costs') }}
    where {{ in_periods() }}
    group by source, billing_period, billing_currency
),

expected as (
    -- the same, once for every mart
    select
        explode(array({% for mart in marts %}'{{ mart }}'{% if not loop.last %}, {% endif %}{% endfor %})) as mart,
        *
    from daily_costs
),

found as (
    -- one row per mart, source, billing period and currency
    {%- for mart in marts %}
    select
        '{{ mart }}' as mart,
        source,
        billing_period,
        billing_currency
        {%- for measure in measures %},
        sum({{ measure }}) as {{ measure }}
        {%- endfor %}
    from {{ ref(mart) }}
    where {{ in_periods() }}
    group by source, billing_period, billing_currency
    {%- if not loop.last %}
    union all
    {%- endif %}
    {%- endfor %}
)

select
    coalesce(expected.mart, found.mart) as mart,
    coalesce(expected.source, found.source) as source,
    coalesce(expected.billing_period, found.billing_period) as billing_period,
    coalesce(expected.billing_currency, found.billing_currency) as billing_currency
    {%- for measure in measures %},
    expected.{{ measure }} as {{ measure }}_in_daily_costs,
    found.{{ measure }} as {{ measure }}_in_the_mart
    {%- endfor %}
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
    {%- for measure in measures %}
    or not (expected.{{ measure }} <=> found.{{ measure }})
    {%- endfor %}
