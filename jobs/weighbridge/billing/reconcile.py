"""The same money in every layer, to the last digit, or a refusal with the two numbers that differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Context, Decimal
from typing import Any

import pyspark.sql.functions as F
from pyspark.sql import DataFrame

from weighbridge.errors import TotalsDiffer
from weighbridge.tables import MEASURES

# Enough digits that no sum of a bill is ever rounded.
_WIDE = Context(prec=200)

# (currency, measure) -> exact sum, or None where no row has a value.
Totals = Mapping[tuple[str, str], Decimal | None]


def totals_of(rows: DataFrame) -> dict[tuple[str, str], Decimal | None]:
    """Exact sums of the four costs per currency; works on charges, daily_costs and every mart."""
    sums = rows.groupBy("billing_currency").agg(*[F.sum(measure).alias(measure) for measure in MEASURES])
    return {
        (row["billing_currency"], measure): row[measure] for row in sums.collect() for measure in MEASURES
    }


def totals_in(groups: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], Decimal | None]:
    """The same sums from rows that are sums already: `billing_currency` and the four costs in each."""
    summed: Totals = {}
    for group in groups:
        mine = {(group["billing_currency"], measure): group[measure] for measure in MEASURES}
        summed = add(summed, mine)
    return dict(summed)


def require_equal(what: str, first: str, one: Totals, second: str, other: Totals) -> None:
    """Passes when both hold the same sums; else TotalsDiffer with layer, currency, measure and both numbers."""
    for key in sorted({*one, *other}):
        left, right = one.get(key), other.get(key)
        if left != right:
            currency, measure = key
            raise TotalsDiffer(
                f"{what}: {measure} in {currency} is {plain(left)} in {first} but {plain(right)} in {second}; "
                "nothing was published, what was served stays"
            )


def add(one: Totals, other: Totals) -> dict[tuple[str, str], Decimal | None]:
    """Both together, key by key; null and null stay null."""
    summed: dict[tuple[str, str], Decimal | None] = {}
    for key in {*one, *other}:
        amounts = [amount for amount in (one.get(key), other.get(key)) if amount is not None]
        summed[key] = exact_sum(amounts) if amounts else None
    return summed


def exact_sum(amounts: list[Decimal]) -> Decimal:
    """The sum without any context's rounding."""
    scale = max(-int(amount.as_tuple().exponent) for amount in amounts)
    units = sum(int(amount.scaleb(scale, context=_WIDE)) for amount in amounts)
    return Decimal(units).scaleb(-scale, context=_WIDE)


def plain(amount: Decimal | None) -> str:
    """The number as text without E notation; 'no value' for null."""
    return "no value" if amount is None else format(amount, "f")
