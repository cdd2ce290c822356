"""What somebody asked a sample bill to be, checked, with everything that follows from it alone."""

from __future__ import annotations

import hashlib
import re
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from weighbridge.billing.samples.aws import AWS
from weighbridge.billing.samples.azure import AZURE
from weighbridge.billing.samples.catalogue import Cloud
from weighbridge.errors import Refused

PERIOD = re.compile(r"^(19[7-9]\d|20\d\d)-(0[1-9]|1[0-2])$")
HOUR_MS = 3_600_000
COMMITTED_FROM_ROWS = 100  # smaller bills have no commitments and no enterprise discount
DAILY_FROM_ROWS, HOURLY_FROM_ROWS = 10_000, 150_000  # how finely commitments are billed: one row a slot


@dataclass(frozen=True)
class Order:
    """One sample delivery: the same order always gives the same data files, byte for byte."""

    format: str
    rows: int
    period: str
    seed: int
    out: Path
    parts: int = 2
    again: bool = False
    files: str = "parquet"
    delivered_at: datetime | None = None
    net: bool = False

    def __post_init__(self) -> None:
        if self.format not in ("cur2", "focus"):
            raise Refused(f"--format is '{self.format}'; it can be 'cur2' or 'focus'")
        if self.files not in ("parquet", "csv"):
            raise Refused(f"--files is '{self.files}'; it can be 'parquet' or 'csv'")
        if not PERIOD.match(self.period):
            raise Refused(f"--period is '{self.period}'; a billing period is a month like 2026-11")
        if self.rows < 1:
            raise Refused(f"--rows is {self.rows}; a bill has at least 1 row")
        if not 1 <= self.parts <= min(self.rows, 99_999):
            raise Refused(f"--parts is {self.parts}; {self.rows} rows can be cut into 1 to {self.rows} parts")
        if self.seed < 0:
            raise Refused(f"--seed is {self.seed}; it can be 0 or more")
        if self.net and self.format != "cur2":
            raise Refused("--net is for cur2: the costs of a FOCUS bill are net already")
        if self.delivered_at is not None and self.delivered_at.tzinfo is None:
            raise Refused(
                f"--delivered-at is {self.delivered_at}; it needs a zone, like 2026-12-03T04:30:00Z"
            )

    @property
    def cloud(self) -> Cloud:
        """Whose bill it is: FOCUS as CSV is an Azure export, everything else comes from AWS."""
        return AZURE if (self.format, self.files) == ("focus", "csv") else AWS

    @property
    def start(self) -> datetime:
        """Begin of the billing period, UTC, inclusive."""
        year, month = map(int, self.period.split("-"))
        return datetime(year, month, 1, tzinfo=UTC)

    @property
    def end(self) -> datetime:
        """End of the billing period, UTC, exclusive."""
        return (self.start + timedelta(days=32)).replace(day=1)

    @property
    def hours(self) -> int:
        """Hours of the billing period."""
        return int((self.end - self.start).total_seconds()) // 3600

    @property
    def slot_hours(self) -> int:
        """How many hours one row of a commitment's fee spans: an hour, a day, or on tiny bills the month."""
        if self.rows >= HOURLY_FROM_ROWS:
            return 1
        return 24 if self.rows >= DAILY_FROM_ROWS else self.hours

    @property
    def slots(self) -> int:
        """How many such spans the billing period has."""
        return self.hours // self.slot_hours

    @property
    def committed(self) -> bool:
        """Whether the bill is large enough for commitments and an enterprise discount."""
        return self.rows >= COMMITTED_FROM_ROWS

    @property
    def delivered(self) -> datetime:
        """When it is delivered: as ordered, else the third day after the month, a second one the sixth."""
        if self.delivered_at is not None:
            return self.delivered_at.astimezone(UTC)
        return self.end + timedelta(days=5 if self.again else 2, hours=4, minutes=30)

    @property
    def run(self) -> str:
        """A UUID for this delivery, drawn from the order instead of chance."""
        said = (self.format, self.files, self.rows, self.period, self.seed, self.parts, self.again, self.net)
        digest = hashlib.sha256(repr((*said, self.delivered.isoformat())).encode()).digest()
        return str(uuid.UUID(bytes=digest[:16], version=4))

    def entropy(self, *purpose: int) -> list[int]:
        """Seed of one of this bill's random streams. A second delivery shares the first one's."""
        return [self.seed, self.rows, int(self.period.replace("-", "")), *purpose]
