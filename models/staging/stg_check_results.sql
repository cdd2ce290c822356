-- Results of the checks as they are. One row per expectation checked on a delivery.
select
    run,
    delivery,
    source,
    billing_period,
    suite,
    check_name,
    column_name,
    severity,
    success,
    says,
    expected,
    observed,
    checked_at
from {{ source('lake', 'check_results') }}
