"""Which night stands for a date or a delivery: from the ledger, one consistent version of every table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from weighbridge.errors import Refused

DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True)
class Night:
    """One row of the ledger that says which versions its complete night left behind."""

    delivery: str
    recorded_at: datetime
    versions: Mapping[str, int]

    @property
    def day(self) -> date:
        """The day (UTC) from whose end on this night can stand for a date."""
        return self.recorded_at.astimezone(UTC).date()


def complete(nights: Sequence[Night]) -> list[Night]:
    """Nights that were completed, oldest first."""
    return sorted((night for night in nights if night.versions), key=lambda night: night.recorded_at)


def night_for(as_of: str, nights: Sequence[Night]) -> Night:
    """The night that a date (its end, UTC) or a delivery's id stands for. Refused where there is none."""
    finished = complete(nights)
    if DATE.fullmatch(as_of):
        return _newest_by(as_of, finished)
    found = [night for night in finished if night.delivery == as_of]
    if found:
        return found[-1]
    if any(night.delivery == as_of for night in nights):
        raise Refused(f"delivery {as_of} is in the ledger, but no night that published it was completed")
    raise Refused(f"--as-of {as_of} is neither a date (2026-10-31) nor a delivery of the ledger")


def _newest_by(text: str, finished: Sequence[Night]) -> Night:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise Refused(f"--as-of {text} is not a day of the calendar") from None
    end = datetime.combine(day + timedelta(days=1), time(), UTC)
    found = [night for night in finished if night.recorded_at < end]
    if found:
        return found[-1]
    if not finished:
        raise Refused(f"nothing was published by {text}: no night was ever completed on this lake")
    raise Refused(f"nothing was published by {text}; the oldest date to be had is {finished[0].day}")
