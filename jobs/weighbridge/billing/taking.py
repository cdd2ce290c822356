"""What a night takes: new deliveries, what a changed policy touches, or one period from the archive."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from datetime import date, timedelta

from weighbridge.billing.archive import archive, archived
from weighbridge.billing.checking import Unfit, history_of
from weighbridge.billing.deliveries import Delivery, Found, find_deliveries
from weighbridge.billing.ledger import PUBLISHED, SUPERSEDED, LedgerRow
from weighbridge.billing.night_context import HeldLease, Night, Outcome
from weighbridge.billing.order import decide, replaced
from weighbridge.billing.proving import Attempt, Proven, prove_again, prove_delivery, refused_row
from weighbridge.billing.publishing import as_known
from weighbridge.errors import Refused
from weighbridge.ports import FileStore
from weighbridge.quality import History
from weighbridge.tables import DAILY_COSTS

# AWS may rewrite a month for two weeks after its end; until then a changed policy attributes it anew.
OPEN_AFTER_END = timedelta(days=14)


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
                proven = take(night, delivery, landings[delivery.source], outcome, lease)
            except Refused as error:
                night.progress.say(f"refused {delivery.source} {delivery.period}: {error}")
                row = refused_row(delivery, str(error), night.policy.digest)
                outcome.refused.append(row)
                if isinstance(error, Unfit):
                    outcome.checked.append(
                        (dataclasses.replace(row, billing_period=error.period), error.checks)
                    )
                continue
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


def take(night: Night, delivery: Delivery, landing: FileStore, outcome: Outcome, lease: HeldLease) -> Proven:
    """One delivery, proven, kept in the archive, and added to the outcome."""
    source = night.policy.source(delivery.source)
    attempt = Attempt(
        night.lake, night.policy, history(night, outcome, source.name), str(lease.counter), night.progress
    )
    proven = prove_delivery(attempt, delivery, landing, source)
    if night.archive is not None:
        night.progress.phase("archive", proven.place)
        archive(dataclasses.replace(delivery, period=proven.row.billing_period), landing, night.archive)
    keep(outcome, proven)
    return proven


def again(night: Night, row: LedgerRow, outcome: Outcome, lease: HeldLease) -> Proven:
    """What is published of one delivery, attributed by today's policy; not yet part of the outcome."""
    known = history(night, outcome, row.source)
    return prove_again(Attempt(night.lake, night.policy, known, str(lease.counter), night.progress), row)


def keep(outcome: Outcome, proven: Proven) -> None:
    """Adds what is proven, and its checks, to the outcome."""
    outcome.proven.append(proven)
    if proven.checks:
        outcome.checked.append((proven.row, proven.checks))


def history(night: Night, outcome: Outcome, source: str) -> History:
    """What a source has published before this night; read once a night."""
    if outcome.histories is None:
        outcome.histories = history_of(night.lake.read(DAILY_COSTS.name))
    return outcome.histories.get(source, History())


def take_policy(night: Night, known: Iterable[LedgerRow], outcome: Outcome, lease: HeldLease) -> None:
    """Attributes open periods anew where the policy has changed since."""
    taken = {proven.place for proven in outcome.proven}
    for row in known:
        if row.outcome != PUBLISHED or row.policy_digest == night.policy.digest or not row.rows:
            continue
        if (row.source, row.billing_period) in taken or not is_open(row.billing_period or "", night.day):
            continue
        keep(outcome, again(night, row, outcome, lease))


def take_again(
    night: Night, known: Iterable[LedgerRow], place: tuple[str, str], outcome: Outcome, lease: HeldLease
) -> None:
    """Reads the current delivery of one period once more, from the archive."""
    night.policy.source(place[0])
    current = [r for r in known if (r.source, r.billing_period) == place and r.outcome == PUBLISHED]
    if not current or night.archive is None:
        raise Refused(f"{place[0]} {place[1]} has no published delivery in the archive to read again")
    delivery, store = archived(night.archive, *place, current[0].manifest_digest)
    take(night, delivery, store, outcome, lease)


def is_open(period: str, day: date) -> bool:
    """True while a month may still be rewritten: until two weeks after its end."""
    year, month = int(period[:4]), int(period[5:7])
    after = date(year + month // 12, month % 12 + 1, 1)
    return day < after + OPEN_AFTER_END
