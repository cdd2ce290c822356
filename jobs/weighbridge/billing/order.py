"""Which deliveries count: decided from ages and the ledger alone, so that no order of arrival can matter."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from weighbridge.billing.deliveries import BrokenDelivery, Delivery
from weighbridge.billing.ledger import DISMISSED, PUBLISHED, REFUSED, SUPERSEDED

Place = tuple[str, str | None]


@dataclass(frozen=True)
class Known:
    """What the ledger says of one delivery and billing period."""

    delivery: str
    source: str
    period: str | None
    delivered_at: datetime
    outcome: str


@dataclass(frozen=True)
class Plan:
    """What to do now.

    `take`: the newest delivery of each (source, period), to be read, proven and published.
    `superseded`: with the id of the newer published one; to be recorded, nothing else changes.
    `refused`: with the reason (deliveries of one age); to be recorded, the old data stays.
    `waiting`: older ones behind a `take`. When it is published they are superseded; when it is refused, the
    next of them counts. Ask `decide` again after each.
    """

    take: tuple[Delivery, ...] = ()
    superseded: tuple[tuple[Delivery, str], ...] = ()
    refused: tuple[tuple[Delivery, str], ...] = ()
    waiting: tuple[Delivery, ...] = field(default=())


def decide(found: Iterable[Delivery], known: Iterable[Known], refused_now: Collection[str] = ()) -> Plan:
    """The plan for what was found, given the ledger. `refused_now`: ids that this night has already refused.

    The newest delivery that can be read wins, whichever arrived or was tried first: a refused one keeps out
    neither the data before it nor an older delivery that was never read. A refused one of an earlier night
    is tried again. The period of every delivery has to be told before (see `Delivery.period`).
    """
    ledger: dict[Place, list[Known]] = {}
    for row in known:
        ledger.setdefault((row.source, row.period), []).append(row)
    places: dict[Place, dict[str, Delivery]] = {}
    for one in found:
        places.setdefault((one.source, one.period), {})[one.id] = one
    take: list[Delivery] = []
    superseded: list[tuple[Delivery, str]] = []
    refused: list[tuple[Delivery, str]] = []
    waiting: list[Delivery] = []
    for place in sorted(places, key=lambda place: (place[0], place[1] or "")):
        rows = ledger.get(place, [])
        done = {row.delivery for row in rows if row.outcome != REFUSED}
        newest_first = sorted(
            (one for one in places[place].values() if one.id not in done),
            key=lambda one: (one.delivered_at, one.id),
            reverse=True,
        )
        current = published(rows)
        if current is not None:
            superseded += [
                (o, current.delivery) for o in newest_first if o.delivered_at < current.delivered_at
            ]
            newest_first = [o for o in newest_first if o.delivered_at >= current.delivered_at]
        candidates = [one for one in newest_first if one.id not in refused_now]
        tied = _tied(candidates, current)
        if tied:
            refused += tied
        elif candidates:
            take.append(candidates[0])
            waiting += candidates[1:]
    return Plan(tuple(take), tuple(superseded), tuple(refused), tuple(waiting))


def published(rows: Iterable[Known]) -> Known | None:
    """The newest published delivery among the ledger's rows of one (source, period)."""
    return max(
        (row for row in rows if row.outcome == PUBLISHED), key=lambda row: row.delivered_at, default=None
    )


def _tied(candidates: Sequence[Delivery], current: Known | None) -> list[tuple[Delivery, str]]:
    """The newest candidates with the reason, where more than one delivery has their age."""
    same = [one for one in candidates if one.delivered_at == candidates[0].delivered_at]
    ids = [one.id for one in same]
    if current is not None and same and current.delivered_at == same[0].delivered_at:
        ids.append(f"{current.delivery} (published)")
    if len(ids) < 2:
        return []
    return [
        (
            one,
            f"{one.source} {one.period}: {len(ids)} deliveries of the same age "
            f"{one.delivered_at.isoformat()}: {', '.join(sorted(ids))}; "
            "which is newer cannot be told: dismiss one with 'weighbridge dismiss DELIVERY --reason TEXT'",
        )
        for one in same
    ]


def replaced(known: Iterable[Known]) -> tuple[Known, ...]:
    """Refused rows that a newer published delivery of their (source, period) has replaced: now superseded."""
    rows = list(known)
    places: dict[Place, Known | None] = {}
    for place in {(row.source, row.period) for row in rows}:
        places[place] = published(row for row in rows if (row.source, row.period) == place)
    return tuple(
        row
        for row in rows
        if row.outcome == REFUSED
        and (current := places[row.source, row.period]) is not None
        and row.delivered_at < current.delivered_at
    )


def still_broken(broken: Iterable[BrokenDelivery], known: Iterable[Known]) -> list[BrokenDelivery]:
    """Broken manifests that neither a person dismissed nor a newer published delivery replaced."""
    rows = list(known)
    settled = {row.delivery for row in rows if row.outcome in (DISMISSED, SUPERSEDED)}
    left = []
    for one in broken:
        current = published(row for row in rows if (row.source, row.period) == (one.source, one.period))
        if one.id not in settled and (current is None or one.delivered_at >= current.delivered_at):
            left.append(one)
    return left
