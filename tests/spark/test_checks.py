"""The checks of a delivery on real frames: each can fail, and what fails decides about the night."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from cost_lake import charge, daily_cost, unattributed
from weighbridge.billing.checking import check_delivery, failed, history_of, profile_of
from weighbridge.quality import COUNTED_NULLS, WATCHED, Expected, History
from weighbridge.tables import CHARGES, DAILY_COSTS, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DELIVERED = datetime.datetime(2026, 10, 7, tzinfo=datetime.UTC)


def frame(spark: SparkSession, table: Table, *rows: dict[str, Any]) -> DataFrame:
    """Rows in the shape of a table, nulls allowed everywhere."""
    ddl = table.ddl.replace(" NOT NULL", "")
    return spark.createDataFrame([tuple(row.values()) for row in rows], ddl)


def checks(spark: SparkSession, charges: list[Any], days: list[Any], expected: Expected) -> Any:
    """Every check of a delivery that consists of these rows."""
    profile = [row.asDict() for row in profile_of(frame(spark, CHARGES, *charges)).collect()]
    return check_delivery(profile, frame(spark, DAILY_COSTS, *days), expected)


def test_a_good_delivery_passes_every_check(spark: SparkSession) -> None:
    history = history_of(frame(spark, DAILY_COSTS, daily_cost(billing_period="2026-09")))["aws"]
    found = checks(spark, [charge()], [daily_cost()], Expected("2026-10", 1, DELIVERED, history))
    assert [check.line for check in found if not check.success] == []
    assert len(found) > len(COUNTED_NULLS) + len(WATCHED)


def test_every_check_can_fail(spark: SparkSession) -> None:
    history = History({"2026-09": {c: frozenset({"known"}) for c in WATCHED}}, {"2026-09": 10_000})
    wrong = daily_cost(
        usage_day=datetime.date(2026, 9, 1),
        charge_category="Surprise",
        charge_class="Surprise",
        charge_frequency="Surprise",
        attribution_state="surprise",
        unattributed_reason="surprise",
        consumed_unit="Surprise",
    )
    charges = [
        dict.fromkeys(CHARGES.column_names) | {"x_part": 1},
        charge(billing_currency="usd", x_attribution_state="missing"),
    ]
    days = [dict.fromkeys(DAILY_COSTS.column_names), wrong]
    found = checks(spark, charges, days, Expected("2026-10", 3, DELIVERED, history))
    assert [check.line for check in found if check.success] == []


def test_what_was_published_is_known_by_source_and_month(spark: SparkSession) -> None:
    found = history_of(
        frame(
            spark,
            DAILY_COSTS,
            daily_cost(charge_rows=3),
            unattributed(charge_rows=1, region_id="us-east-1"),
            daily_cost(source="azure", region_id="westeurope"),
        )
    )
    assert found["aws"].values("region_id") == {"eu-west-1", "us-east-1"}
    assert found["aws"].attributed_per_10000 == {"2026-10": 7_500}
    assert found["azure"].values("region_id") == {"westeurope"}


def test_a_value_never_seen_and_usage_outside_the_month_are_warnings_with_the_value(
    spark: SparkSession,
) -> None:
    history = History(
        {
            "2026-09": {c: frozenset({"eu-west-1"}) for c in ("region_id",)}
            | {c: frozenset[str]() for c in WATCHED if c != "region_id"}
        },
        {},
    )
    days = [daily_cost(region_id="mars-1"), daily_cost(usage_day=datetime.date(2026, 9, 30))]
    found = checks(spark, [charge(), charge(x_row=2)], days, Expected("2026-10", 2, DELIVERED, history))
    assert failed(found, "critical") == []
    warned = {check.column_name: check.observed for check in failed(found, "warning")}
    assert warned == {
        "region_id": '{"rows": 2, "unexpected_rows": 1, "values": ["mars-1"]}',
        "usage_day": '{"rows": 2, "unexpected_rows": 1, "values": ["2026-09-30"]}',
    }


def test_the_profile_counts_and_sums_per_file_and_currency(spark: SparkSession) -> None:
    rows = profile_of(
        frame(
            spark,
            CHARGES,
            charge(billed_cost=Decimal("0.1")),
            charge(x_row=2, billed_cost=Decimal("0.2"), x_attribution_state="missing"),
            charge(x_part=2, billing_currency="EUR", sub_account_id=None, x_policy_digest=None),
        )
    ).collect()
    found = {(row["x_part"], row["billing_currency"]): row for row in rows}
    assert found[1, "USD"]["rows"] == 2
    assert found[1, "USD"]["attributed_rows"] == 1
    assert found[1, "USD"]["billed_cost"] == Decimal("0.3")
    assert found[2, "EUR"]["null_x_policy_digest"] == 1
    assert found[1, "USD"]["null_x_policy_digest"] == 0
