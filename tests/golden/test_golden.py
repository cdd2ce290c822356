"""Each folder here is one small delivery, its policy, and the marts that somebody worked out by hand."""

from __future__ import annotations

import csv
import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASE = Path(__file__).parent / "one_bill"


def expected(mart: str) -> list[dict[str, str]]:
    """The rows of an expected mart, as text."""
    with (CASE / "expected" / f"{mart}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def add_up() -> ModuleType:
    """The script that adds up what was worked out by hand."""
    spec = importlib.util.spec_from_file_location("add_up", CASE / "add_up.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The lake after one night on the delivery, by the command that the scheduler calls."""
    from weighbridge.cli import run

    home = tmp_path_factory.mktemp("golden")
    shutil.copytree(CASE, home, dirs_exist_ok=True)
    spark.sql("DROP DATABASE IF EXISTS weighbridge CASCADE")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        patch.setenv("WEIGHBRIDGE_LAKE", str(home / "lake"))
        patch.setenv("WEIGHBRIDGE_POLICY", str(home / "policy"))
        answer = run("night", run="golden", day="2026-12-04")
        assert answer.data["outcome"] == "published", answer.text
        yield home / "lake"


def mart_rows(lake: Path, mart: str) -> list[dict[str, Any]]:
    """The rows of a mart, read without Spark."""
    from deltalake import DeltaTable

    rows: list[dict[str, Any]] = DeltaTable(str(lake / mart)).to_pyarrow_table().to_pylist()
    return rows


def as_text(value: Any) -> str:
    """A value as the expected files write it: plain decimals, nothing for null."""
    return "" if value is None else format(value, "f") if hasattr(value, "as_tuple") else str(value)


def test_what_was_worked_out_by_hand_adds_up_to_the_expected_marts(add_up: ModuleType) -> None:
    for mart, key in add_up.MARTS.items():
        assert [list(row.values()) for row in expected(mart)] == add_up.table(key)[1:]


@pytest.mark.parametrize("mart", ["monthly_cost", "cost_by_business_line", "cost_by_region"])
def test_the_mart_is_the_expected_file_to_the_last_digit(lake: Path, mart: str) -> None:
    wanted = expected(mart)
    found = [{name: as_text(row[name]) for name in wanted[0]} for row in mart_rows(lake, mart)]
    assert sorted(map(str, found)) == sorted(map(str, wanted))


def test_the_whole_mart_belongs_to_one_source_and_bill_and_states_no_contracted_cost(lake: Path) -> None:
    rest = ("source", "billing_period", "provider_name", "billing_currency", "contracted_cost")
    found = {tuple(row[name] for name in rest) for row in mart_rows(lake, "monthly_cost")}
    assert found == {("aws-main", "2026-11", "AWS", "USD", None)}


def test_finance_is_told_the_same(lake: Path) -> None:
    from decimal import Decimal

    from weighbridge.cli import run

    told = run("query", question="monthly_cost_by_business_line", param=("source=aws-main",)).data["rows"]
    sums: dict[str, Decimal] = {}
    for row in expected("cost_by_business_line"):
        line = row["business_line"]
        sums[line] = sums.get(line, Decimal(0)) + Decimal(row["effective_cost"])
    assert {row["business_line"]: Decimal(row["effective_cost"]) for row in told} == sums
