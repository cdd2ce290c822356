"""What one night is given, and what it has done so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Protocol

from weighbridge.billing.checking import Check
from weighbridge.billing.lake import Lake
from weighbridge.billing.ledger import LedgerRow
from weighbridge.billing.proving import Proven
from weighbridge.policies import Policy, Source
from weighbridge.ports import FileStore, Progress
from weighbridge.quality import History


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
    keep_page: Callable[[str], str]
    now: Callable[[], datetime]
    progress: Progress


@dataclass
class Outcome:
    """What the night has done so far."""

    proven: list[Proven] = field(default_factory=list)
    superseded: list[LedgerRow] = field(default_factory=list)
    refused: list[LedgerRow] = field(default_factory=list)
    settled: list[LedgerRow] = field(default_factory=list)
    checked: list[tuple[LedgerRow, tuple[Check, ...]]] = field(default_factory=list)
    histories: dict[str, History] | None = None


def highest_lease(lake: Lake) -> int:
    """The highest lease counter that the ledger knows; a new one is above it."""
    return max((row.lease or 0 for row in lake.ledger()), default=0)
