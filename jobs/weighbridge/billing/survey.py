"""What a bill holds, summed in one pass over its rows: periods, exact totals, tag keys."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from weighbridge.billing import money
from weighbridge.billing.attribute import KEY_SEPARATOR
from weighbridge.billing.reconcile import exact_sum
from weighbridge.tables import MEASURES


@dataclass(frozen=True)
class Total:
    """An exact sum: what is stored, and what storing rounded away."""

    stored: Decimal
    residual: Decimal

    @property
    def exact(self) -> Decimal:
        """Both together, without zeros at the end of the decimals."""
        text = format(exact_sum([self.stored, self.residual]), "f")
        return Decimal(text.rstrip("0").rstrip(".") if "." in text else text)


@dataclass(frozen=True)
class PeriodSurvey:
    """What a bill holds for one billing period: rows, first and last day of charges, totals, tags.

    `totals`: currency -> measure -> Total, None where no row has a value. `tag_keys`: key -> rows that have it.
    `net`: effective cost is read after discounts.
    """

    rows: int
    first_day: date
    last_day: date
    totals: dict[str, dict[str, Total | None]]
    tag_keys: dict[str, int]
    untagged_rows: int
    net: bool = False


@dataclass(frozen=True)
class Survey:
    """What a bill holds, by billing period (YYYY-MM). `tag_sets`: how many distinct tag texts it has."""

    rows: int
    rows_by_part: dict[int, int]
    periods: dict[str, PeriodSurvey]
    tag_sets: int = 0

    @property
    def net_periods(self) -> list[str]:
        """Billing periods whose effective cost is read after discounts."""
        return [period for period, found in self.periods.items() if found.net]


# A group is a row of sums with: x_part, x_billing_period, billing_currency, keys, rows, net_rows, tag_sets,
# first_day, last_day, and per measure stored_… and residual_…, for effective also net_stored_… and net_residual_….
Group = Mapping[str, Any]


def survey_of(groups: Sequence[Group]) -> Survey:
    """The survey that these groups add up to."""
    rows_by_part: dict[int, int] = defaultdict(int)
    by_period: dict[str, list[Group]] = defaultdict(list)
    for group in groups:
        rows_by_part[group["x_part"]] += group["rows"]
        by_period[group["x_billing_period"]].append(group)
    periods = {period: _period(by_period[period]) for period in sorted(by_period)}
    tag_sets = sum(group["tag_sets"] for group in groups)
    return Survey(sum(rows_by_part.values()), dict(sorted(rows_by_part.items())), periods, tag_sets)


def _period(groups: Sequence[Group]) -> PeriodSurvey:
    keys: dict[str, int] = defaultdict(int)
    for group in groups:
        for key in group["keys"].split(KEY_SEPARATOR) if group["keys"] else ():
            keys[key] += group["rows"]
    net = any(group["net_rows"] for group in groups)
    totals: dict[str, dict[str, Total | None]] = {}
    for currency in sorted({group["billing_currency"] for group in groups}):
        mine = [group for group in groups if group["billing_currency"] == currency]
        totals[currency] = {
            measure: _total(mine, f"net_{measure}" if net and measure == "effective_cost" else measure)
            for measure in MEASURES
        }
    return PeriodSurvey(
        rows=sum(group["rows"] for group in groups),
        first_day=min(group["first_day"] for group in groups),
        last_day=max(group["last_day"] for group in groups),
        totals=totals,
        tag_keys=dict(sorted(keys.items())),
        untagged_rows=sum(group["rows"] for group in groups if not group["keys"]),
        net=net,
    )


def _total(groups: Sequence[Group], measure: str) -> Total | None:
    stored = [g[f"stored_{measure}"] for g in groups if g[f"stored_{measure}"] is not None]
    if not stored:
        return None
    units = sum(int(g[f"residual_{measure}"] or 0) for g in groups)
    return Total(exact_sum(stored), money.residual_amount(units))
