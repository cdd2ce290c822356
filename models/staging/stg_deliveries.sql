-- The ledger under plain names. One row per delivery and billing period.
select
    delivery,
    source,
    billing_period,
    format,
    manifest,
    manifest_digest,
    delivered_at,
    delivered_at_from,
    parts,
    unlisted_files,
    rows as charge_rows,
    totals,
    columns_digest,
    policy_digest,
    outcome,
    reason,
    commits as commit_versions,
    versions as table_versions,
    run,
    lease,
    recorded_at
from {{ source('lake', 'deliveries') }}
