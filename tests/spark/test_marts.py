"""The marts on hand-made daily costs: what is in them, what is replaced, what a failing test undoes."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from cost_lake import CostLake, daily_cost, unattributed
from weighbridge.adapters.marts import (
    build_marts,
    document_marts,
    mart_versions,
    refresh_marts,
    register,
    restore_marts,
    run_dbt,
)
from weighbridge.errors import LeaseLost, Refused
from weighbridge.tables import MARTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROJECT = Path(__file__).parents[2]
TINY = Decimal("0.000000000000000001")
AZURE = daily_cost(source="azure", business_line="Search", provider_name="Microsoft")


def build(lake: CostLake, *periods: tuple[str, str], run: str = "r1", lease: int | None = None) -> Any:
    """Builds these periods, or all where none is named."""
    metadata = json.dumps({"run": run, "deliveries": ["d1"]})
    return build_marts(lake.spark, lake.root, PROJECT, periods or None, metadata, lease)


def money(lake: CostLake, mart: str) -> dict[tuple[str, str, str], Decimal]:
    """What a mart holds, read without Spark: billed cost per source, billing period and currency."""
    found: dict[tuple[str, str, str], Decimal] = {}
    for row in DeltaTable(f"{lake.root}/{mart}").to_pyarrow_table().to_pylist():
        key = (row["source"], row["billing_period"], row["billing_currency"])
        found[key] = found.get(key, Decimal(0)) + row["billed_cost"]
    return found


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> CostLake:
    """Two sources, two billing periods, two currencies; marts built once for all of them."""
    made = CostLake(spark, str(tmp_path_factory.mktemp("lake")))
    made.costs(
        daily_cost(billed_cost=Decimal("12.4"), list_cost=Decimal(20)),
        daily_cost(billed_cost=TINY, usage_day=datetime.date(2026, 10, 6)),
        daily_cost(billed_cost=Decimal(7), usage_day=datetime.date(2026, 9, 30)),
        daily_cost(billed_cost=Decimal(3), billing_currency="EUR", environment=None),
        unattributed(billed_cost=Decimal("0.6")),
        daily_cost(service_name="Nothing", billed_cost=Decimal(2), billing_currency="EUR"),
        unattributed(service_name="Nothing", billed_cost=Decimal(-2), billing_currency="EUR"),
        unattributed("key_absent", billed_cost=Decimal("-0.6"), charge_category="Credit", tenant="t"),
    )
    made.costs(daily_cost(billing_period="2026-11", usage_day=datetime.date(2026, 11, 1)), period="2026-11")
    made.costs(AZURE, source="azure")
    made.costs(daily_cost(source="leaving"), source="leaving")
    result = build(made)
    assert result.ok, result.failures
    return made


def test_every_mart_holds_the_bill_to_the_last_digit_and_adds_no_two_currencies(lake: CostLake) -> None:
    for mart in MARTS:
        assert money(lake, mart) == {
            ("aws", "2026-10", "USD"): Decimal("19.4") + TINY,
            ("aws", "2026-10", "EUR"): Decimal(3),
            ("aws", "2026-11", "USD"): Decimal(1),
            ("azure", "2026-10", "USD"): Decimal(1),
            ("leaving", "2026-10", "USD"): Decimal(1),
        }


def test_a_late_charge_keeps_its_month_of_use_in_the_bill_that_asks_for_it(lake: CostLake) -> None:
    rows = lake.spark.sql(
        "select usage_month, billed_cost from weighbridge.cost_by_business_line "
        "where billing_period = '2026-10' and source = 'aws' "
        "and business_line = 'Advertising' and billing_currency = 'USD'"
    ).collect()
    assert {row[0]: row[1] for row in rows} == {"2026-09": Decimal(7), "2026-10": Decimal("12.4") + TINY}


def test_a_cost_that_no_line_states_stays_null(lake: CostLake) -> None:
    rows = lake.spark.sql("select list_cost, contracted_cost from weighbridge.cost_by_region").collect()
    assert {row["contracted_cost"] for row in rows} == {None}
    assert {row["list_cost"] for row in rows} == {None, Decimal(20)}


def test_costs_keep_eighteen_decimals_and_shares_have_a_declared_scale(lake: CostLake) -> None:
    for mart in MARTS:
        types = dict(lake.spark.table(f"weighbridge.{mart}").dtypes)
        for measure in ("billed_cost", "effective_cost", "list_cost", "contracted_cost"):
            assert types[measure] == "decimal(38,18)"
        assert not {"float", "double"} & set(types.values())
    shares = {name: kind for name, kind in types.items() if name.endswith("_share")}
    assert shares == {
        "billed_share": "decimal(38,10)",
        "effective_share": "decimal(38,10)",
        "charge_rows_share": "decimal(11,10)",
    }


def test_a_share_is_exact_to_ten_digits_and_null_where_the_whole_is_zero(lake: CostLake) -> None:
    rows = lake.spark.sql(
        "select unattributed_reason, effective_share, billed_share from weighbridge.tag_coverage "
        "where source = 'aws' and billing_currency = 'USD' "
        "and usage_month = '2026-10' and billing_period = '2026-10'"
    ).collect()
    shares = {row["unattributed_reason"]: row["effective_share"] for row in rows}
    assert shares == {None: Decimal("0.5"), "no_tag": Decimal("0.25"), "key_absent": Decimal("0.25")}
    nothing = lake.spark.sql(
        "select billed_share from weighbridge.tag_coverage where service_name = 'Nothing'"
    )
    assert [row[0] for row in nothing.collect()] == [None, None]


def test_a_mart_says_its_grain_its_units_and_keeps_four_hundred_days(lake: CostLake) -> None:
    for mart in MARTS:
        detail = lake.spark.sql(f"describe detail weighbridge.{mart}").first()
        assert detail is not None
        assert detail["description"].startswith("Grain: one row per source")
        assert detail["partitionColumns"] == ["source", "billing_period"]
        assert detail["properties"]["delta.logRetentionDuration"] == "interval 400 days"
        assert detail["properties"]["delta.deletedFileRetentionDuration"] == "interval 400 days"
        fields = lake.spark.table(f"weighbridge.{mart}").schema
        assert all(field.metadata.get("comment") for field in fields), mart


def test_only_the_named_periods_are_replaced_by_one_commit_also_down_to_nothing(lake: CostLake) -> None:
    before = mart_versions(lake.spark, lake.root)
    lake.costs(daily_cost(billing_period="2026-11", billed_cost=Decimal(5)), period="2026-11")
    # This change is not in the run's periods, so no mart may show it.
    lake.costs(daily_cost(source="azure", billed_cost=Decimal(99)), source="azure")
    lake.costs(source="leaving")
    result = build(lake, ("aws", "2026-11"), ("leaving", "2026-10"), run="second", lease=7)
    assert result.ok, result.failures
    for mart in MARTS:
        held = money(lake, mart)
        assert held["aws", "2026-11", "USD"] == Decimal(5)
        assert held["azure", "2026-10", "USD"] == Decimal(1)
        assert ("leaving", "2026-10", "USD") not in held
        newest = lake.spark.sql(f"describe history weighbridge.{mart} limit 1").first()
        assert newest is not None
        assert newest["version"] == (before[mart] or 0) + 1
        assert json.loads(newest["userMetadata"]) == {"run": "second", "deliveries": ["d1"]}
        log = Path(lake.root, mart, "_delta_log", f"{newest['version']:020}.json").read_text()
        changed = [json.loads(line) for line in log.splitlines()]
        parts = {
            tuple(action["partitionValues"].values())
            for line in changed
            for name, action in line.items()
            if name in ("add", "remove")
        }
        assert parts == {("aws", "2026-11"), ("leaving", "2026-10")}
    lake.costs(AZURE, source="azure")


def test_a_run_without_news_builds_nothing(lake: CostLake) -> None:
    before = mart_versions(lake.spark, lake.root)
    assert build_marts(lake.spark, lake.root, PROJECT, [], "{}").ok
    assert mart_versions(lake.spark, lake.root) == before


def test_a_stale_writer_makes_no_commit(lake: CostLake) -> None:
    before = mart_versions(lake.spark, lake.root)
    with pytest.raises(LeaseLost, match="lease 7"):
        refresh_marts(lake.spark, lake.root, PROJECT, [("azure", "2026-10")], "{}", lease=6)
    assert mart_versions(lake.spark, lake.root) == before


def test_a_failing_test_is_named_with_its_rows_and_leaves_the_marts_as_they_were(lake: CostLake) -> None:
    held = money(lake, "monthly_cost")
    lake.costs(daily_cost(source="gcp", charge_category="Surprise"), source="gcp")
    before = mart_versions(lake.spark, lake.root)
    result = refresh_marts(lake.spark, lake.root, PROJECT, [("gcp", "2026-10")], "")
    assert not result.ok
    assert any("monthly_cost_is_keyed" in text and "Surprise" in text for text in result.failures)
    assert mart_versions(lake.spark, lake.root) != before  # built, found wanting, restored
    assert money(lake, "monthly_cost") == held
    lake.costs(source="gcp")


def test_money_and_lines_that_a_mart_changed_are_found(lake: CostLake) -> None:
    held = mart_versions(lake.spark, lake.root)
    lake.spark.sql("update weighbridge.tag_coverage set list_cost = 21 where list_cost = 20")
    # One line goes from one place to another: no sum tells, only the place does.
    lake.spark.sql(
        "update weighbridge.monthly_cost set charge_rows = charge_rows + if(tenant = 't', 1, -1) "
        "where business_line = 'unattributed' and billing_currency = 'USD'"
    )
    tests = run_dbt(PROJECT, ["test", "--select", "test_type:singular"], {"lake": lake.root})
    assert {result.node.name: (str(result.status), result.failures) for result in tests} == {
        "assert_every_mart_sums_to_daily_costs": ("fail", 1),
        "assert_no_line_is_dropped": ("fail", 2),
    }
    restore_marts(lake.spark, lake.root, held)


def test_a_mart_that_is_new_or_has_other_columns_is_made_for_every_period(lake: CostLake) -> None:
    before = mart_versions(lake.spark, lake.root)
    restore_marts(lake.spark, lake.root, before | {"cost_by_region": None})
    assert mart_versions(lake.spark, lake.root)["cost_by_region"] is None
    lake.spark.sql("alter table weighbridge.cost_by_model_version add column forgotten string")
    result = build(lake, ("azure", "2026-10"))
    assert result.ok, result.failures
    register(lake.spark, lake.root)
    assert "forgotten" not in lake.spark.table("weighbridge.cost_by_model_version").columns
    for mart in ("cost_by_region", "cost_by_model_version"):
        assert money(lake, mart) == money(lake, "monthly_cost")


def test_the_models_pass_their_unit_tests_and_have_a_page(lake: CostLake, tmp_path: Path) -> None:
    tests = run_dbt(PROJECT, ["test", "--select", "test_type:unit"], {})
    assert [str(result.status) for result in tests] == ["pass"]
    assert document_marts(lake.spark, lake.root, PROJECT, tmp_path).is_file()
    catalog = json.loads((tmp_path / "catalog.json").read_text())
    assert {node["metadata"]["name"] for node in catalog["nodes"].values()} >= set(MARTS)


@pytest.mark.parametrize(
    "pair", [("aws' or true --", "2026-10"), ("aws", "2026-10' or true --"), ("aws", "2026")]
)
def test_only_names_of_sources_and_months_reach_dbt(lake: CostLake, pair: tuple[str, str]) -> None:
    with pytest.raises(Refused):
        build(lake, pair)
