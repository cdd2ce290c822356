-- What does each model version cost in each region, and who pays for it?
--
-- :period        month         month of the bill, YYYY-MM
-- :source        text = any    only this source
-- :model_version text = any    only this model version
select
    model_version,
    region_id,
    business_line,
    billing_currency,
    sum(billed_cost) as billed_cost,
    sum(effective_cost) as effective_cost,
    sum(list_cost) as list_cost,
    sum(charge_rows) as charge_rows
from monthly_cost
where
    billing_period = :period
    and (:source is null or source = :source)
    and (:model_version is null or model_version = :model_version)
group by model_version, region_id, business_line, billing_currency
order by model_version nulls last, region_id nulls last, business_line, billing_currency
