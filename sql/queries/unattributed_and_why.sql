-- Which money has no owner, and why?
--
-- :period month           month of the bill, YYYY-MM
-- :source text = any      only this source
select
    unattributed_reason,
    service_name,
    source,
    billing_currency,
    sum(billed_cost) as billed_cost,
    sum(effective_cost) as effective_cost,
    sum(charge_rows) as charge_rows
from tag_coverage
where
    billing_period = :period
    and attribution_state = 'missing'
    and (:source is null or source = :source)
group by unattributed_reason, service_name, source, billing_currency
order by billing_currency, effective_cost desc nulls last, unattributed_reason, service_name, source
