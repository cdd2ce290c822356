"""Other engines read the published tables over delta-rs and find the same totals, to the last digit."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cost_lake import CostLake, charge, daily_cost, delivery
from weighbridge.tables import CHARGES, DAILY_COSTS, DELIVERIES, MARTS, MEASURES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROJECT = Path(__file__).parents[2]
WITH_MONEY = (CHARGES.name, DAILY_COSTS.name, *MARTS)
Totals = dict[str, tuple[Decimal | None, ...]]


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> CostLake:
    """Two billing periods, two currencies, amounts that no double can hold; rewritten once."""
    made = CostLake(spark, str(tmp_path_factory.mktemp("lake")))
    amounts = {
        "billed_cost": Decimal("12345678901234567.123456789012345678"),
        "effective_cost": Decimal("0.1"),
        "list_cost": Decimal("-0.000000000000000001"),
    }
    for run in ("first", "second"):
        made.costs(daily_cost(**amounts), daily_cost(billing_currency="EUR", delivery=run))
        made.costs(daily_cost(billing_period="2026-11", environment=None), period="2026-11")
        made.replace(CHARGES, [charge(**amounts), charge(x_row=2, billing_currency="EUR", x_delivery=run)])
    made.replace(DELIVERIES, [delivery(versions={"charges": 2})])
    made.make_marts()
    return made


def spark_totals(lake: CostLake, table: str) -> Totals:
    """Sums of the four costs per currency, as Spark finds them."""
    sums = ", ".join(f"sum({measure})" for measure in MEASURES)
    rows = lake.spark.sql(f"select billing_currency, {sums} from weighbridge.{table} group by 1").collect()
    return {row[0]: tuple(row[1:]) for row in rows}


@pytest.mark.parametrize("table", WITH_MONEY)
def test_duckdb_finds_the_same_totals(lake: CostLake, table: str) -> None:
    import duckdb
    from deltalake import DeltaTable

    published = DeltaTable(f"{lake.root}/{table}").to_pyarrow_dataset()
    sums = ", ".join(f"sum({measure})" for measure in MEASURES)
    with duckdb.connect() as engine:
        engine.register("published", published)
        rows = engine.sql(f"select billing_currency, {sums} from published group by 1").fetchall()
    assert {row[0]: tuple(row[1:]) for row in rows} == spark_totals(lake, table)


@pytest.mark.parametrize("table", WITH_MONEY)
def test_polars_finds_the_same_totals(lake: CostLake, table: str) -> None:
    import polars as pl
    from deltalake import DeltaTable

    published = pl.from_arrow(
        DeltaTable(f"{lake.root}/{table}").to_pyarrow_table(columns=["billing_currency", *MEASURES])
    )
    assert isinstance(published, pl.DataFrame)
    sums = published.group_by("billing_currency").agg(
        # A sum of nothing but nulls is 0 in Polars and null in SQL.
        pl.when(pl.col(measure).is_not_null().any()).then(pl.col(measure).sum()).alias(measure)
        for measure in MEASURES
    )
    assert {row[0]: tuple(row[1:]) for row in sums.iter_rows()} == spark_totals(lake, table)


def test_the_ledger_opens_in_delta_rs_with_the_same_rows(lake: CostLake) -> None:
    from deltalake import DeltaTable

    rows = DeltaTable(f"{lake.root}/deliveries").to_pyarrow_table().to_pylist()
    assert [row["delivery"] for row in rows] == ["d1"]
    assert dict(rows[0]["versions"]) == {"charges": 2}


@pytest.mark.parametrize("reader", ["DuckDB", "Polars"])
def test_the_code_of_the_connect_page_runs(
    lake: CostLake, reader: str, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (PROJECT / "docs" / "connect.md").read_text()
    section = page.split(f"\n## {reader}\n", 1)[1].split("\n## ", 1)[0]
    found = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert found is not None
    exec(compile(found[1].replace("/path/to/lake", lake.root), f"docs/connect.md {reader}", "exec"), {})
    assert "Advertising" in capsys.readouterr().out
