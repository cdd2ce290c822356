"""The night: what was delivered is read, proven, published in order, and written into the ledger."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, Protocol

from weighbridge.billing.archive import archive, archived
from weighbridge.billing.deliveries import BrokenDelivery, Delivery, Found, find_deliveries
from weighbridge.billing.lake import Lake
from weighbridge.billing.ledger import DISMISSED, PUBLISHED, REFUSED, SUPERSEDED, LedgerRow
from weighbridge.billing.order import Known, decide, replaced, still_broken
from weighbridge.billing.proving import Proven, prove_again, prove_delivery, prove_published, refused_row
from weighbridge.billing.runs import DeliveryNote, RunRecord
from weighbridge.errors import Refused
from weighbridge.policies import Policy, Source
from weighbridge.ports import FileStore, Progress
from weighbridge.tables import CHARGES, DAILY_COSTS

# AWS may rewrite a month for two weeks after its end; until then a changed policy attributes it anew.
OPEN_AFTER_END = timedelta(days=14)


class HeldLease(Protocol):
    """The right to write, while it lasts."""

    @property
    def counter(self) -> int:
        """Grows by each holder; Delta's txnVersion."""

    @property
    def check(self) -> Callable[[], None]:
        """Raises when the lease is no longer ours."""


@dataclass(frozen=True)
class Night:
    """Everything one night needs; nothing of it is read from the environment or the clock."""

    run: str
    day: date
    lake: Lake
    policy: Policy
    landing: Callable[[Source], FileStore]
    lease: Callable[[int], AbstractContextManager[HeldLease]]
    build_marts: Callable[[Sequence[tuple[str, str]], str, int], list[str]]
    archive: FileStore | None
    now: Callable[[], datetime]
    progress: Progress


@dataclass
class Outcome:
    """What the night has done so far."""

    proven: list[Proven] = field(default_factory=list)
    superseded: list[LedgerRow] = field(default_factory=list)
    refused: list[LedgerRow] = field(default_factory=list)
    settled: list[LedgerRow] = field(default_factory=list)


def run_night(night: Night, again: tuple[str, str] | None = None) -> RunRecord:
    """One night: unfinished business first, then what is new (or `again`: one period from the archive)."""
    started = night.now()
    finished = finish_forward(night)
    with night.lease(highest_lease(night.lake)) as lease:
        found, landings = look(night)
        known = night.lake.ledger()
        outcome = Outcome()
        if again is None:
            take_news(night, found, landings, known, outcome, lease)
            take_policy(night, known, outcome, lease)
        else:
            take_again(night, known, again, outcome, lease)
        mart_failures = publish(night, outcome, lease)
        record_in_ledger(night, found.broken, known, outcome, mart_failures, lease)
    return run_record(night, started, finished, outcome, mart_failures)


def finish_forward(night: Night) -> list[Proven]:
    """What an earlier run published in charges and did not finish: its days, marts and ledger row follow now."""
    with night.lease(highest_lease(night.lake)) as lease:
        rows = unfinished(night.lake)
        if not rows:
            return []
        night.progress.say(f"finishing {len(rows)} (source, period) of an earlier run that died")
        outcome = Outcome([prove_published(night.lake, row) for row in rows])
        failures = publish(night, outcome, lease)
        record_in_ledger(night, [], night.lake.ledger(), outcome, failures, lease)
        if failures:
            raise Refused("the marts of an earlier run still fail: " + "; ".join(failures))
        return outcome.proven


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


def highest_lease(lake: Lake) -> int:
    """The highest lease counter that the ledger knows; a new one is above it."""
    return max((row.lease or 0 for row in lake.ledger()), default=0)


def look(night: Night) -> tuple[Found, dict[str, FileStore]]:
    """Every delivery in every landing place, and the places by source."""
    landings = {source.name: night.landing(source) for source in night.policy.sources}
    found = Found()
    for name, store in landings.items():
        night.progress.phase("look", (name,))
        here = find_deliveries(store, name)
        found.deliveries.extend(here.deliveries)
        found.broken.extend(here.broken)
    return found, landings


def take_news(
    night: Night,
    found: Found,
    landings: dict[str, FileStore],
    known: Iterable[LedgerRow],
    outcome: Outcome,
    lease: HeldLease,
) -> None:
    """Proves the newest good delivery of each (source, period); a refused one stops only its own."""
    ledger = [as_known(row) for row in known]
    rows = {row.delivery: row for row in known}
    tried: set[str] = set()
    while (plan := decide(found.deliveries, ledger, tried)).take:
        for delivery in plan.take:
            tried.add(delivery.id)
            try:
                proven = take(night, delivery, landings[delivery.source], lease)
            except Refused as error:
                night.progress.say(f"refused {delivery.source} {delivery.period}: {error}")
                outcome.refused.append(refused_row(delivery, str(error), night.policy.digest))
                continue
            outcome.proven.append(proven)
            ledger.append(as_known(proven.row))
    for delivery, newer in plan.superseded:
        row = refused_row(delivery, f"{newer} is newer", None)
        outcome.superseded.append(dataclasses.replace(row, outcome=SUPERSEDED))
    outcome.refused += [refused_row(delivery, reason, None) for delivery, reason in plan.refused]
    for old in replaced(ledger):
        if old.delivery in rows:
            outcome.settled.append(
                dataclasses.replace(
                    rows[old.delivery], outcome=SUPERSEDED, reason="replaced by a newer delivery"
                )
            )


def take(night: Night, delivery: Delivery, landing: FileStore, lease: HeldLease) -> Proven:
    """One delivery, proven and kept in the archive."""
    source = night.policy.source(delivery.source)
    proven = prove_delivery(
        night.lake, delivery, landing, source, night.policy, str(lease.counter), night.progress
    )
    if night.archive is not None:
        night.progress.phase("archive", proven.place)
        archive(dataclasses.replace(delivery, period=proven.row.billing_period), landing, night.archive)
    return proven


def take_policy(night: Night, known: Iterable[LedgerRow], outcome: Outcome, lease: HeldLease) -> None:
    """Attributes open periods anew where the policy has changed since."""
    taken = {proven.place for proven in outcome.proven}
    for row in known:
        if row.outcome != PUBLISHED or row.policy_digest == night.policy.digest or not row.rows:
            continue
        if (row.source, row.billing_period) in taken or not is_open(row.billing_period or "", night.day):
            continue
        outcome.proven.append(prove_again(night.lake, row, night.policy, str(lease.counter), night.progress))


def take_again(
    night: Night, known: Iterable[LedgerRow], place: tuple[str, str], outcome: Outcome, lease: HeldLease
) -> None:
    """Reads the current delivery of one period once more, from the archive."""
    night.policy.source(place[0])
    current = [r for r in known if (r.source, r.billing_period) == place and r.outcome == PUBLISHED]
    if not current or night.archive is None:
        raise Refused(f"{place[0]} {place[1]} has no published delivery in the archive to read again")
    delivery, store = archived(night.archive, *place, current[0].manifest_digest)
    outcome.proven.append(take(night, delivery, store, lease))


def is_open(period: str, day: date) -> bool:
    """True while a month may still be rewritten: until two weeks after its end."""
    year, month = int(period[:4]), int(period[5:7])
    after = date(year + month // 12, month % 12 + 1, 1)
    return day < after + OPEN_AFTER_END


def publish(night: Night, outcome: Outcome, lease: HeldLease) -> list[str]:
    """Commits charges, then daily_costs, then the marts; returns what failed in the marts, which are as before."""
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
    return night.build_marts(places, _json(metadata), lease.counter)


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


def run_record(
    night: Night, started: datetime, finished: Sequence[Proven], outcome: Outcome, failures: Sequence[str]
) -> RunRecord:
    """What the night did, for the scheduler and for people."""
    refused = [DeliveryNote(r.source, r.billing_period, r.delivery, r.reason or "") for r in outcome.refused]
    done = [*finished, *(() if failures else outcome.proven)]
    if failures:
        reason = "the marts were brought back to their version before: " + "; ".join(failures)
        refused += [
            DeliveryNote(proven.row.source, proven.row.billing_period, proven.row.delivery, reason)
            for proven in outcome.proven
        ]
    return RunRecord(
        run=night.run,
        outcome="refused" if refused else "published" if done else "nothing_new",
        started_at=started,
        finished_at=night.now(),
        published=tuple(
            DeliveryNote(proven.row.source, proven.row.billing_period, proven.row.delivery) for proven in done
        ),
        refused=tuple(refused),
        versions=night.lake.versions(),
    )


def _json(value: Any) -> str:
    import json

    return json.dumps(value, sort_keys=True)


def dismiss_delivery(night: Night, delivery: str, reason: str) -> LedgerRow:
    """The ledger's row of a refused delivery, settled by a person. Refused for any other delivery."""
    with night.lease(highest_lease(night.lake)) as lease:
        rows = [row for row in night.lake.ledger() if row.delivery == delivery]
        if not rows:
            raise Refused(f"the ledger knows no delivery {delivery}")
        if rows[0].outcome != REFUSED:
            raise Refused(f"delivery {delivery} is {rows[0].outcome}; only a refused one can be dismissed")
        at = night.now()
        settled = [
            dataclasses.replace(row.becoming(DISMISSED, reason, night.run, at), lease=lease.counter)
            for row in rows
        ]
        metadata = {"run": night.run, "lease": lease.counter, "kind": "dismiss"}
        night.lake.record(settled, metadata, lease.counter)
        return settled[0]


def reattribute_period(night: Night, period: str, source: str | None, reason: str) -> RunRecord:
    """Published deliveries of a period, attributed by today's policy; the reason stands in the ledger."""
    started = night.now()
    finished = finish_forward(night)
    with night.lease(highest_lease(night.lake)) as lease:
        known = night.lake.ledger()
        meant = [
            row
            for row in known
            if row.outcome == PUBLISHED and row.billing_period == period and source in (None, row.source)
        ]
        if not meant:
            raise Refused(f"nothing of {source or 'any source'} is published for {period}")
        outcome = Outcome()
        for row in meant:
            proven = prove_again(night.lake, row, night.policy, str(lease.counter), night.progress)
            row_with_reason = dataclasses.replace(proven.row, reason=f"attributed again: {reason}")
            outcome.proven.append(dataclasses.replace(proven, row=row_with_reason))
        failures = publish(night, outcome, lease)
        record_in_ledger(night, [], known, outcome, failures, lease)
    return run_record(night, started, finished, outcome, failures)
