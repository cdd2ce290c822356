"""What is proven becomes what is served: checks, charges, daily_costs, marts and ledger, in this order."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from weighbridge.billing.checking import check_rows
from weighbridge.billing.deliveries import BrokenDelivery
from weighbridge.billing.lake import Lake
from weighbridge.billing.ledger import PUBLISHED, REFUSED, SUPERSEDED, LedgerRow
from weighbridge.billing.night_context import HeldLease, Night, Outcome, highest_lease
from weighbridge.billing.order import Known, still_broken
from weighbridge.billing.proving import Proven, prove_published
from weighbridge.errors import Refused
from weighbridge.tables import CHARGES, DAILY_COSTS


def finish_forward(night: Night) -> None:
    """What an earlier run published in charges and did not finish: its days, marts and ledger row follow now."""
    with night.lease(highest_lease(night.lake)) as lease:
        rows = unfinished(night.lake)
        if not rows:
            return
        night.progress.say(f"finishing {len(rows)} (source, period) of an earlier run that died")
        outcome = Outcome([prove_published(night.lake, row) for row in rows])
        failures = publish(night, outcome, lease)
        record_in_ledger(night, [], night.lake.ledger(), outcome, failures, lease)
        if failures:
            raise Refused("the marts of an earlier run still fail: " + "; ".join(failures))


def unfinished(lake: Lake) -> list[LedgerRow]:
    """Rows that commits of charges carry and the ledger does not have yet; the newest per (source, period)."""
    ledger = lake.ledger()
    recorded = max((row.commits.get(CHARGES.name, 0) for row in ledger), default=0)
    rows: dict[tuple[str, str | None], LedgerRow] = {}
    for commit in lake.commits_after(CHARGES.name, recorded):
        if "ledger" not in commit.metadata:
            continue
        row = LedgerRow.from_json(commit.metadata["ledger"])
        row = dataclasses.replace(row, commits={CHARGES.name: commit.version})
        rows[row.source, row.billing_period] = row
    return list(rows.values())


def publish(night: Night, outcome: Outcome, lease: HeldLease) -> list[str]:
    """Commits checks, charges, daily_costs and marts; returns what failed in the marts, which are as before."""
    record_checks(night, outcome, lease)
    for number, proven in enumerate(outcome.proven):
        metadata = commit_metadata(night, proven, lease)
        commits = dict(proven.row.commits)
        if proven.kind != "finished":
            lease.check()
            night.progress.phase("commit charges", proven.place)
            commits[CHARGES.name] = night.lake.publish_charges(
                *proven.place, proven.files, metadata, lease.counter
            )
        lease.check()
        night.progress.phase("commit daily_costs", proven.place)
        commits[DAILY_COSTS.name] = night.lake.replace_period(
            DAILY_COSTS, proven.daily, *proven.place, metadata, lease.counter
        )
        row = dataclasses.replace(proven.row, commits=commits)
        outcome.proven[number] = dataclasses.replace(proven, row=row)
    if not outcome.proven:
        return []
    lease.check()
    night.progress.phase("commit marts")
    metadata = {"run": night.run, "deliveries": [proven.row.delivery for proven in outcome.proven]}
    places = [proven.place for proven in outcome.proven]
    return night.build_marts(places, json.dumps(metadata, sort_keys=True), lease.counter)


def record_checks(night: Night, outcome: Outcome, lease: HeldLease) -> None:
    """One commit with the result of every check, also of deliveries that failed one."""
    if not outcome.checked:
        return
    lease.check()
    night.progress.phase("commit checks")
    at = night.now()
    rows = [
        row for delivery, checks in outcome.checked for row in check_rows(night.run, delivery, checks, at)
    ]
    deliveries = sorted({delivery.delivery for delivery, _ in outcome.checked})
    metadata = {"run": night.run, "lease": lease.counter, "kind": "checks", "deliveries": deliveries}
    night.lake.record_checks(night.run, deliveries, rows, metadata, lease.counter)


def commit_metadata(night: Night, proven: Proven, lease: HeldLease) -> dict[str, Any]:
    """What each commit says of itself: the run, the delivery, and the ledger's row, to finish after a death."""
    return {
        "run": night.run,
        "lease": lease.counter,
        "kind": proven.kind,
        "source": proven.row.source,
        "period": proven.row.billing_period,
        "delivery": proven.row.delivery,
        "ledger": proven.row.to_json(),
    }


def record_in_ledger(
    night: Night,
    broken: Sequence[BrokenDelivery],
    known: Sequence[LedgerRow],
    outcome: Outcome,
    mart_failures: Sequence[str],
    lease: HeldLease,
) -> None:
    """One commit with every outcome of the night. Where the marts failed, what was published waits for them."""
    rows: list[LedgerRow] = [*outcome.superseded, *outcome.settled]
    if not mart_failures:
        rows += [proven.row for proven in outcome.proven]
        rows += superseded_by(outcome.proven, known)
    for one in still_broken(broken, [as_known(row) for row in known]):
        outcome.refused.append(broken_row(one))
    rows += outcome.refused
    unchanged = {(r.delivery, r.billing_period, r.outcome, r.reason) for r in known if r.outcome != PUBLISHED}
    news = [r for r in rows if (r.delivery, r.billing_period, r.outcome, r.reason) not in unchanged]
    if not news:
        return
    lease.check()
    night.progress.phase("commit ledger")
    versions = night.lake.versions()
    at = night.now()
    stamped = [
        dataclasses.replace(
            row,
            run=night.run,
            lease=lease.counter,
            recorded_at=at,
            versions=versions if row.outcome == PUBLISHED else row.versions,
        )
        for row in news
    ]
    night.lake.record(stamped, {"run": night.run, "lease": lease.counter, "kind": "ledger"}, lease.counter)


def superseded_by(proven: Sequence[Proven], known: Sequence[LedgerRow]) -> list[LedgerRow]:
    """Rows that were the published ones of what is now replaced."""
    now = {one.place: one.row.delivery for one in proven}
    return [
        dataclasses.replace(row, outcome=SUPERSEDED, reason=f"{now[row.source, row.billing_period]} is newer")
        for row in known
        if row.outcome == PUBLISHED
        and row.billing_period is not None
        and now.get((row.source, row.billing_period), row.delivery) != row.delivery
    ]


def broken_row(one: BrokenDelivery) -> LedgerRow:
    """The ledger's row of a manifest that cannot be followed."""
    return LedgerRow(
        delivery=one.id,
        source=one.source,
        billing_period=one.period,
        manifest=one.manifest,
        manifest_digest=one.manifest_digest,
        delivered_at=one.delivered_at,
        delivered_at_from="modified",
        outcome=REFUSED,
        reason=one.reason,
    )


def as_known(row: LedgerRow) -> Known:
    """The ledger's row as the order of deliveries sees it."""
    if row.delivered_at is None:
        raise Refused(f"the ledger's row {row.delivery} has no age; it was written by no version of ours")
    return Known(row.delivery, row.source, row.billing_period, row.delivered_at, row.outcome)
