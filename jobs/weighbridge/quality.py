"""What a delivery is held against before it is published: Great Expectations suites, one function per table.

Critical: nothing of the delivery is published. Warning: it is published, shown and told. The suites read
daily_costs as it is staged and a one-pass profile of the charges, never the charges again.
"""

from __future__ import annotations

import calendar
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

from weighbridge.tables import (
    ATTRIBUTION_STATES,
    CHARGE_CATEGORIES,
    CHARGES,
    DAILY_COSTS,
    UNATTRIBUTED_REASONS,
)

CRITICAL = "critical"
WARNING = "warning"

# Columns of daily_costs in which a value that the source never had is worth a look. Model versions and
# business lines are not among them: new ones are the point of the one and the policy's matter in the other.
WATCHED = ("billing_currency", "region_id", "service_name", "sub_account_id", "environment", "consumed_unit")

# Clouds bill a day's usage within a day or two; the third day without any is worth a look.
USAGE_LAG = timedelta(days=3)

# How far the tagged share may fall against the month before, in rows of 10,000.
COVERAGE_FALL = 500

# Columns of charges without which a row is nothing; file and currency are what the profile is grouped by.
COUNTED_NULLS = (
    *(
        column.name
        for column in CHARGES.columns
        if not column.nullable and column.name not in (*CHARGES.partition_by, "x_part", "billing_currency")
    ),
    "billed_cost",
)

Expectation = Mapping[str, Any]


@dataclass(frozen=True)
class History:
    """What a source has published so far, by billing period: the values of WATCHED, and rows with an owner."""

    seen: Mapping[str, Mapping[str, frozenset[str]]] = field(default_factory=dict)
    attributed_per_10000: Mapping[str, int] = field(default_factory=dict)

    def values(self, column: str) -> frozenset[str]:
        """Every value that the column has had."""
        return frozenset().union(*(columns[column] for columns in self.seen.values()))

    def coverage_before(self, period: str) -> int | None:
        """Rows of 10,000 that had an owner in the newest period before this one; None where there is none."""
        before = max((known for known in self.attributed_per_10000 if known < period), default=None)
        return None if before is None else self.attributed_per_10000[before]


@dataclass(frozen=True)
class Expected:
    """What is known of a delivery before its charges are looked at."""

    period: str
    rows: int
    delivered_at: datetime | None
    history: History = History()

    @property
    def days(self) -> tuple[date, date]:
        """First and last day of the billing period."""
        year, month = int(self.period[:4]), int(self.period[5:7])
        return date(year, month, 1), date(year, month, calendar.monthrange(year, month)[1])

    @property
    def used_until(self) -> date | None:
        """The day on which the last usage should lie, or later; None where the delivery's age is not known."""
        first, last = self.days
        if self.delivered_at is None:
            return None
        return max(first, min(last, self.delivered_at.date() - USAGE_LAG))


def charges_profile_suite(expected: Expected) -> list[Expectation]:
    """Expectations on the profile of one delivery's charges (see `profile_of`)."""
    suite = [
        _critical("as many rows as the ledger says", "sum_to_be_between", "rows", *_exactly(expected.rows)),
        _critical("every row has a currency", "values_to_not_be_null", "billing_currency"),
        _critical(
            "currencies are ISO 4217 codes",
            "values_to_match_regex",
            "billing_currency",
            regex="^[A-Z]{3}$",
        ),
        *[
            _critical(f"every row has a {name}", "sum_to_be_between", f"null_{name}", *_exactly(0))
            for name in COUNTED_NULLS
        ],
    ]
    before = expected.history.coverage_before(expected.period)
    if before is not None:
        least = expected.rows * max(0, before - COVERAGE_FALL) // 10_000
        suite.append(
            _warning(
                "rows with an owner have not become fewer than in the month before, by five points of a hundred",
                "sum_to_be_between",
                "attributed_rows",
                min_value=least,
            )
        )
    return suite


def daily_costs_suite(expected: Expected) -> list[Expectation]:
    """Expectations on the staged daily_costs of one delivery."""
    first, last = expected.days
    required = [column.name for column in DAILY_COSTS.columns if not column.nullable]
    in_set = "values_to_be_in_set"
    suite = [
        *[
            _critical(f"every row has a {name}", "values_to_not_be_null", name)
            for name in (*required, "billed_cost")
        ],
        _critical("only FOCUS categories", in_set, "charge_category", value_set=list(CHARGE_CATEGORIES)),
        _critical("only FOCUS classes", in_set, "charge_class", value_set=["Correction"]),
        _critical("only known states", in_set, "attribution_state", value_set=list(ATTRIBUTION_STATES)),
        _critical("only known reasons", in_set, "unattributed_reason", value_set=list(UNATTRIBUTED_REASONS)),
        _critical(
            "as many charges as the ledger says", "sum_to_be_between", "charge_rows", *_exactly(expected.rows)
        ),
        _warning(
            "only FOCUS frequencies",
            in_set,
            "charge_frequency",
            value_set=["One-Time", "Recurring", "Usage-Based"],
        ),
        _warning(
            "usage lies in the month that is billed",
            "values_to_be_between",
            "usage_day",
            min_value=first,
            max_value=last,
        ),
    ]
    if expected.history.seen:
        suite += [
            _warning("only values that this source had before", in_set, column, value_set=sorted(known))
            for column in WATCHED
            if (known := expected.history.values(column))
        ]
    if expected.used_until is not None:
        suite.append(
            _warning(
                "usage reaches to three days before the delivery, or to the month's end",
                "max_to_be_between",
                "usage_day",
                min_value=expected.used_until,
            )
        )
    return suite


def _exactly(number: int) -> tuple[int, int]:
    return number, number


def _critical(says: str, kind: str, column: str, *between: int, **kwargs: Any) -> Expectation:
    if between:
        kwargs |= {"min_value": between[0], "max_value": between[1]}
    return {
        "type": f"expect_column_{kind}",
        "kwargs": {"column": column, **kwargs},
        "severity": CRITICAL,
        "meta": {"says": says},
    }


def _warning(says: str, kind: str, column: str, **kwargs: Any) -> Expectation:
    return {**_critical(says, kind, column, **kwargs), "severity": WARNING}
