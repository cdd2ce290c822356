{# The sums of a mart, or of daily_costs, per source, billing period and currency, for the periods of this run. #}
{% macro sums(model) -%}
    select
        '{{ model }}' as mart,
        source,
        billing_period,
        billing_currency,
        sum(billed_cost) as billed_cost,
        sum(effective_cost) as effective_cost,
        sum(list_cost) as list_cost,
        sum(contracted_cost) as contracted_cost,
        sum(charge_rows) as charge_rows
    from {{ ref(model) }}
    where {{ in_periods() }}
    group by source, billing_period, billing_currency
{%- endmacro %}
