-- Which lines of the bill is one number made of? Its largest lines, each with file and row, and the number itself.
--
-- :period        month         month of the bill, YYYY-MM
-- :business_line text          who pays; unattributed for nobody
-- :currency      text          currency of the number, such as USD
-- :source        text = any    only this source
-- :model_version text = any    only this model version
-- :region        text = any    only this region
-- :rows          number = 100  how many lines to show
with parts as (
    -- one row per listed file of a delivery
    select
        delivery,
        source,
        billing_period,
        posexplode(parts) as (before_it, part)
    from deliveries
),

lines as (
    -- one row per bill line, beside the sums over all of them
    select
        *,
        sum(billed_cost) over () as whole_billed_cost,
        sum(effective_cost) over () as whole_effective_cost,
        count(*) over () as whole_charge_rows
    from charges
    where
        x_billing_period = :period
        and x_business_line = :business_line
        and billing_currency = :currency
        and (:source is null or x_source = :source)
        and (:model_version is null or x_model_version = :model_version)
        and (:region is null or region_id = :region)
)

select
    lines.x_source as source,
    lines.x_delivery as delivery,
    lines.x_part as part,
    lines.x_row as bill_row,
    parts.part.path as bill_file,
    lines.charge_period_start,
    lines.charge_category,
    lines.service_name,
    lines.region_id,
    lines.resource_id,
    lines.charge_description,
    lines.x_model_version as model_version,
    lines.x_rule_id as rule_id,
    lines.x_attribution_state as attribution_state,
    lines.billing_currency,
    lines.billed_cost,
    lines.effective_cost,
    lines.whole_billed_cost,
    lines.whole_effective_cost,
    lines.whole_charge_rows
from lines
left join parts
    on
        lines.x_delivery = parts.delivery
        and lines.x_source = parts.source
        and lines.x_billing_period = parts.billing_period
        and lines.x_part = parts.before_it + 1
order by abs(lines.effective_cost) desc nulls last, lines.x_source, lines.x_delivery, lines.x_part, lines.x_row
limit :rows
