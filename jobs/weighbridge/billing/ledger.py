"""The ledger's row: what a delivery was, what it held to the last digit, and what became of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

PUBLISHED = "published"
SUPERSEDED = "superseded"
REFUSED = "refused"
DISMISSED = "dismissed"
OUTCOMES = (PUBLISHED, SUPERSEDED, REFUSED, DISMISSED)


@dataclass(frozen=True)
class PartRow:
    """One listed file of a delivery, as it was read."""

    path: str
    bytes: int
    rows: int | None
    etag: str


@dataclass(frozen=True)
class TotalRow:
    """One measure in one currency: `stored` is in charges, `residual` was rounded away, both exact."""

    currency: str
    measure: str
    stored: Decimal | None
    residual: str | None
    total: str | None


@dataclass(frozen=True)
class LedgerRow:
    """One row of `deliveries`; the fields are its columns."""

    delivery: str
    source: str
    billing_period: str | None
    format: str | None = None
    manifest: str | None = None
    manifest_digest: str = ""
    delivered_at: datetime | None = None
    delivered_at_from: str | None = None
    parts: tuple[PartRow, ...] = ()
    unlisted_files: int = 0
    rows: int | None = None
    totals: tuple[TotalRow, ...] = ()
    columns_digest: str | None = None
    policy_digest: str | None = None
    outcome: str = REFUSED
    reason: str | None = None
    commits: Mapping[str, int] = field(default_factory=dict)
    versions: Mapping[str, int] = field(default_factory=dict)
    run: str = ""
    lease: int | None = None
    recorded_at: datetime = datetime(1970, 1, 1, tzinfo=UTC)

    def becoming(self, outcome: str, reason: str | None, run: str, at: datetime) -> LedgerRow:
        """The same delivery with another outcome, decided by `run`."""
        return replace(self, outcome=outcome, reason=reason, run=run, recorded_at=at)

    def to_json(self) -> str:
        """The row as one JSON text, for the metadata of the commits it comes from."""

        def plain(value: Any) -> Any:
            if isinstance(value, Decimal):
                return format(value, "f")
            if isinstance(value, datetime):
                return value.isoformat()
            raise TypeError(f"no JSON form for {type(value).__name__}")

        return json.dumps(asdict(self), default=plain, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> LedgerRow:
        """The row that `to_json` wrote."""
        return cls.from_columns(json.loads(text))

    @classmethod
    def from_columns(cls, columns: Mapping[str, Any]) -> LedgerRow:
        """A row from the ledger's columns (a Spark Row as a dict) or from parsed JSON."""
        found = dict(columns)
        for name in ("delivered_at", "recorded_at"):
            found[name] = _moment(found.get(name))
        found["parts"] = tuple(PartRow(**_dict(part)) for part in found.get("parts") or ())
        found["totals"] = tuple(
            TotalRow(**{**_dict(total), "stored": _amount(_dict(total)["stored"])})
            for total in found.get("totals") or ()
        )
        found["commits"] = dict(found.get("commits") or {})
        found["versions"] = dict(found.get("versions") or {})
        return cls(**found)

    def to_columns(self) -> dict[str, Any]:
        """The row as plain values in the order of `tables.DELIVERIES`, each part and total a dict."""
        return asdict(self)


def _dict(value: Any) -> dict[str, Any]:
    return dict(value.asDict() if hasattr(value, "asDict") else value)


def _amount(value: Any) -> Decimal | None:
    return None if value is None else Decimal(value)


def _moment(value: Any) -> datetime | None:
    if value is None:
        return None
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    # Spark hands timestamps out without a zone; the session's zone is UTC.
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
