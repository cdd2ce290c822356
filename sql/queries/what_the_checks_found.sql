-- What did the checks of a month's deliveries find?
--
-- :period month           month of the bill, YYYY-MM
-- :source text = any      only this source
select
    checked_at,
    source,
    delivery,
    severity,
    says,
    column_name,
    expected,
    observed
from check_results
where
    billing_period = :period
    and not success
    and (:source is null or source = :source)
order by checked_at desc, source, severity, says, column_name
