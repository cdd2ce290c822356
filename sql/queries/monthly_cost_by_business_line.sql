-- What did each business line spend, month by month?
--
-- :business_line text = any    only this business line
-- :source        text = any    only this source
-- :since         month = any   first month of the bill, YYYY-MM
select
    billing_period,
    business_line,
    billing_currency,
    sum(billed_cost) as billed_cost,
    sum(effective_cost) as effective_cost,
    sum(charge_rows) as charge_rows
from cost_by_business_line
where
    (:business_line is null or business_line = :business_line)
    and (:source is null or source = :source)
    and (:since is null or billing_period >= :since)
group by billing_period, business_line, billing_currency
order by billing_period, billing_currency, effective_cost desc nulls last, business_line
