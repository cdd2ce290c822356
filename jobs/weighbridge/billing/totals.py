"""Every layer's exact totals of one (source, period), and which layer is behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyspark.sql.functions as F

from weighbridge.billing.lake import Lake
from weighbridge.billing.ledger import PUBLISHED, LedgerRow
from weighbridge.billing.reconcile import Totals, add, plain, totals_of
from weighbridge.errors import Refused
from weighbridge.tables import CHARGES, DAILY_COSTS, MARTS

# Marts that hold every cent of the bill; the ledger is the measure of them all.
MARTS_OF_MONEY = tuple(mart for mart in MARTS if mart != "tag_coverage")


@dataclass(frozen=True)
class Layers:
    """Exact sums by layer, in the order in which money passes through them."""

    source: str
    period: str
    row: LedgerRow | None
    sums: Mapping[str, Totals]

    @property
    def behind(self) -> list[str]:
        """Layers that differ from charges, the first that is published."""
        measure = self.sums["charges"]
        return [name for name, sums in self.sums.items() if not _same(sums, measure)]

    def to_data(self) -> dict[str, Any]:
        """The layers for `--json`; money is decimal text."""
        residuals = {(t.currency, t.measure): t for t in (self.row.totals if self.row else ())}
        return {
            "source": self.source,
            "period": self.period,
            "delivery": self.row.delivery if self.row else None,
            "behind": self.behind,
            "layers": {name: _by_currency(sums) for name, sums in self.sums.items()},
            "residual": _by_currency(
                {key: None if t.residual is None else Decimal(t.residual) for key, t in residuals.items()}
            ),
            "delivered": _by_currency(
                {key: None if t.total is None else Decimal(t.total) for key, t in residuals.items()}
            ),
        }


def layers(lake: Lake, source: str, period: str) -> Layers:
    """The sums of every layer as they are now. Refused where nothing is known of (source, period)."""
    rows = [r for r in lake.ledger() if (r.source, r.billing_period) == (source, period)]
    current = next((row for row in rows if row.outcome == PUBLISHED), None)
    charges = lake.read(CHARGES.name).where(
        (F.col("x_source") == source) & (F.col("x_billing_period") == period)
    )
    missing = F.col("x_attribution_state") == "missing"
    attributed, unattributed = totals_of(charges.where(~missing)), totals_of(charges.where(missing))
    sums: dict[str, Totals] = {
        "ledger": {(t.currency, t.measure): t.stored for t in (current.totals if current else ())},
        "charges": totals_of(charges),
        "attributed + unattributed": add(attributed, unattributed),
    }
    for name in (DAILY_COSTS.name, *MARTS_OF_MONEY):
        if lake.version(name) is None:
            sums[name] = {}
            continue
        table = lake.read(name)
        sums[name] = totals_of(table.where((F.col("source") == source) & (F.col("billing_period") == period)))
    if not rows and not sums["charges"]:
        raise Refused(
            f"nothing is known of {source} {period}; 'weighbridge query --list' shows what can be asked"
        )
    return Layers(source, period, current, sums)


def as_text(found: Layers) -> str:
    """A table for a person: a line per layer, currency and measure, and what is behind."""
    lines = [f"{found.source} {found.period}, delivery {found.row.delivery if found.row else 'none'}"]
    for name, sums in found.sums.items():
        for (currency, measure), amount in sorted(sums.items()):
            lines.append(f"  {name:<26} {currency} {measure:<16} {plain(amount):>40}")
    for total in found.row.totals if found.row else ():
        lines.append(
            f"  {'delivered, to its last digit':<26} {total.currency} {total.measure:<16} {total.total or 'no value':>40}"
        )
    lines.append(f"behind: {', '.join(found.behind)}" if found.behind else "every layer holds the same money")
    return "\n".join(lines)


def _same(one: Totals, other: Totals) -> bool:
    return {k: v for k, v in one.items() if v is not None} == {
        k: v for k, v in other.items() if v is not None
    }


def _by_currency(sums: Totals) -> dict[str, dict[str, str | None]]:
    found: dict[str, dict[str, str | None]] = {}
    for (currency, measure), amount in sorted(sums.items()):
        name = measure.removesuffix("_cost")
        found.setdefault(currency, {})[name] = None if amount is None else plain(amount)
    return found
