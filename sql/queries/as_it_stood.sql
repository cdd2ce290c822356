-- What did each bill come to, as it stood on a date? Ask with --as-of 2026-10-31, or with a delivery.
--
-- :period month = any     month of the bill, YYYY-MM
-- :source text = any      only this source
select
    source,
    billing_period,
    billing_currency,
    sum(billed_cost) as billed_cost,
    sum(effective_cost) as effective_cost,
    sum(list_cost) as list_cost,
    sum(contracted_cost) as contracted_cost,
    sum(charge_rows) as charge_rows
from monthly_cost
where
    (:period is null or billing_period = :period)
    and (:source is null or source = :source)
group by source, billing_period, billing_currency
order by source, billing_period, billing_currency
