"""What the suites ask of a delivery, what their page shows, and when a source is late."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from weighbridge.billing.check_page import check_page
from weighbridge.billing.checking import Check, Unfit, check_rows, run_suite
from weighbridge.billing.lateness import late_sources
from weighbridge.billing.ledger import LedgerRow
from weighbridge.policies import Source
from weighbridge.quality import (
    COUNTED_NULLS,
    WATCHED,
    Expected,
    History,
    charges_profile_suite,
    daily_costs_suite,
)
from weighbridge.tables import CHECK_RESULTS

NOW = datetime(2026, 12, 1, 6, tzinfo=UTC)
HISTORY = History(
    {"2026-09": {column: frozenset({"known"}) for column in WATCHED}}, {"2026-08": 1_000, "2026-09": 9_000}
)


def expected(**changes: Any) -> Expected:
    """What is known of a delivery of ten rows of October, delivered on the 20th."""
    plain: dict[str, Any] = {
        "period": "2026-10",
        "rows": 10,
        "delivered_at": datetime(2026, 10, 20, tzinfo=UTC),
    }
    return Expected(**plain | changes)


def profile(**changes: Any) -> dict[str, Any]:
    """One row of a profile: a file of ten good rows."""
    plain = {"x_part": 1, "billing_currency": "USD", "rows": 10, "attributed_rows": 9}
    plain |= {f"null_{name}": 0 for name in COUNTED_NULLS}
    return plain | {"billed_cost": Decimal(1)} | changes


def failures(*rows: dict[str, Any], **changes: Any) -> list[tuple[str | None, str]]:
    """Column and severity of every check of the profile that did not hold."""
    import pandas as pd

    checks = run_suite(
        "charges_profile", pd.DataFrame(list(rows)), charges_profile_suite(expected(**changes))
    )
    return [(check.column_name, check.severity) for check in checks if not check.success]


def test_a_good_profile_passes() -> None:
    assert failures(profile(rows=4, attributed_rows=4), profile(x_part=2, rows=6), history=HISTORY) == []


@pytest.mark.parametrize(
    ("changes", "column"),
    [
        ({"rows": 9}, "rows"),
        ({"billing_currency": None}, "billing_currency"),
        ({"billing_currency": "usd"}, "billing_currency"),
        *[({f"null_{name}": 1}, f"null_{name}") for name in COUNTED_NULLS],
    ],
)
def test_a_fault_in_the_charges_is_critical_and_named(changes: dict[str, Any], column: str) -> None:
    assert failures(profile(**changes)) == [(column, "critical")]


def test_fewer_rows_with_an_owner_than_the_month_before_are_a_warning() -> None:
    # 90 of 100 before; 85 are let pass, 84 are not.
    assert failures(profile(rows=100, attributed_rows=85), rows=100, history=HISTORY) == []
    found = failures(profile(rows=100, attributed_rows=84), rows=100, history=HISTORY)
    assert found == [("attributed_rows", "warning")]


def test_nothing_is_compared_with_a_month_before_where_there_is_none() -> None:
    assert failures(profile(attributed_rows=0), history=History()) == []
    assert HISTORY.coverage_before("2026-08") is None
    assert HISTORY.coverage_before("2026-10") == 9_000


def test_values_are_compared_with_earlier_ones_only_where_there_are_any() -> None:
    def seen(history: History) -> set[str]:
        suite = daily_costs_suite(expected(history=history))
        return {e["kwargs"]["column"] for e in suite if e["meta"]["says"].startswith("only values")}

    assert seen(HISTORY) == set(WATCHED)
    assert seen(History()) == set()


@pytest.mark.parametrize(
    ("delivered", "until"),
    [
        (datetime(2026, 10, 20, 4, tzinfo=UTC), date(2026, 10, 17)),
        (datetime(2026, 10, 2, tzinfo=UTC), date(2026, 10, 1)),
        (datetime(2026, 11, 9, tzinfo=UTC), date(2026, 10, 31)),
        (None, None),
    ],
)
def test_usage_should_reach_to_three_days_before_the_delivery(
    delivered: datetime | None, until: date | None
) -> None:
    assert expected(delivered_at=delivered).used_until == until


def test_no_expectation_is_asked_twice_so_that_each_has_one_row() -> None:
    for suite in (charges_profile_suite, daily_costs_suite):
        asked = [(e["type"], e["kwargs"]["column"]) for e in suite(expected(history=HISTORY))]
        assert len(asked) == len(set(asked))


CHECKS = (
    Check("s", "expect_one", "region_id", "warning", False, "only values seen", "{}", '{"values": ["<b>x"]}'),
    Check("s", "expect_two", None, "critical", True, "held", "{}", "{}"),
    Check("s", "expect_three", "rows", "critical", False, "as many rows", '{"min_value": 3}', '{"value": 2}'),
)
ROW = LedgerRow("00000000000000aa", "aws-main", "2026-10")


def test_the_page_is_whole_in_itself_shows_what_failed_first_and_escapes_what_a_bill_says() -> None:
    page = check_page("night/<1>", NOW, [(ROW, CHECKS)])
    assert "http" not in page
    assert "<script" not in page
    assert "<b>x" not in page
    assert "night/&lt;1&gt;" in page
    assert page.index("as many rows") < page.index("only values seen") < page.index(">held<")
    assert "1 of 3 held" in page


def test_a_refusal_names_the_critical_checks_with_both_numbers() -> None:
    error = Unfit("aws-main 2026-10", "2026-10", CHECKS)
    assert 'as many rows (rows): found {"value": 2}, expected {"min_value": 3}' in str(error)
    assert "only values" not in str(error)


def test_check_rows_have_the_columns_of_their_table() -> None:
    rows = check_rows("night/1", ROW, CHECKS, NOW)
    found = dict(zip(CHECK_RESULTS.column_names, rows[0], strict=True))
    assert (found["run"], found["says"], found["success"]) == ("night/1", "only values seen", False)


def test_a_source_is_late_when_its_newest_good_delivery_is_too_old() -> None:
    def late(age_h: int, outcome: str = "published", **source: Any) -> tuple[str, ...]:
        made = Source("aws", "AWS", "bills", "1", "focus", **source)
        row = LedgerRow("d", "aws", "2026-11", delivered_at=NOW - timedelta(hours=age_h), outcome=outcome)
        return late_sources([made], [row], NOW)

    assert late(48) == ()
    assert "49 hours ago; it may take 48" in late(49)[0]
    assert late(49, late_after_hours=72) == ()
    assert late(9_999, late_after_hours=0) == ()
    assert "nothing yet" in late(1, outcome="refused")[0]
