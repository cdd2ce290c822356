"""Which sources have not delivered for longer than they may."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from weighbridge.billing.ledger import DISMISSED, REFUSED, LedgerRow
from weighbridge.policies import Source


def late_sources(sources: Iterable[Source], ledger: Sequence[LedgerRow], now: datetime) -> tuple[str, ...]:
    """One sentence for each source whose newest good delivery is older than `late_after_hours` allows."""
    said = []
    for source in sources:
        if not source.late_after_hours:
            continue
        newest = max(
            (
                row.delivered_at
                for row in ledger
                if row.source == source.name and row.delivered_at and row.outcome not in (REFUSED, DISMISSED)
            ),
            default=None,
        )
        if newest is None:
            said.append(
                f"{source.name} has delivered nothing yet that could be taken; is its landing place right?"
            )
        elif now - newest > timedelta(hours=source.late_after_hours):
            said.append(
                f"{source.name} last delivered {newest:%Y-%m-%d %H:%M} UTC, {(now - newest) // timedelta(hours=1)} "
                f"hours ago; it may take {source.late_after_hours} (late_after_hours in policy/sources.yaml)"
            )
    return tuple(said)
