"""Every table keeps to the same convention: grain, key, names, meanings, exact money."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from weighbridge.adapters.lake import table_properties
from weighbridge.tables import AMOUNT, MARTS, TABLES, Table

CHECKOUT = Path(__file__).parents[2]
SNAKE_CASE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
MONEY = re.compile(r"(^|_)(cost|price|amount|quantity)$")
BINARY = re.compile(r"\b(float|double|real)\b")


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_table_says_what_one_row_is_and_by_what_it_is_known(table: Table) -> None:
    assert re.search(r"\bone row per \w+", table.grain, re.IGNORECASE)
    assert table.key
    assert len(set(table.key)) == len(table.key)
    assert set(table.key) <= set(table.column_names)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_table_is_cut_by_columns_of_its_key_in_which_no_null_stands(table: Table) -> None:
    never_null = {column.name for column in table.columns if not column.nullable}
    assert set(table.partition_by) <= never_null.intersection(table.key)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_names_are_snake_case_and_each_column_says_what_it_holds(table: Table) -> None:
    assert len(set(table.column_names)) == len(table.columns)
    assert [name for name in (table.name, *table.column_names) if not SNAKE_CASE.fullmatch(name)] == []
    assert [c.name for c in table.columns if not re.fullmatch(r"\w.{4,}[^.\s]", c.says)] == []


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_no_table_holds_money_or_a_quantity_in_anything_but_an_exact_decimal(table: Table) -> None:
    assert [c.name for c in table.columns if BINARY.search(c.type)] == []
    assert [c.name for c in table.columns if MONEY.search(c.name) and c.type != AMOUNT] == []


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_units_stand_beside_what_they_measure(table: Table) -> None:
    without = [
        column.name
        for column in table.columns
        if column.type == AMOUNT and not re.search(r"in (\w+_currency|\w+_unit)\b|per \w+_unit", column.says)
    ]
    assert without == []


def test_charges_keep_35_days_of_versions_and_everything_else_400() -> None:
    kept = {table.name: table_properties(table) for table in TABLES}
    for name, properties in kept.items():
        days = "interval 35 days" if name == "charges" else "interval 400 days"
        assert properties["delta.logRetentionDuration"] == days
        assert properties["delta.deletedFileRetentionDuration"] == days


def test_every_mart_is_held_against_daily_costs() -> None:
    text = (CHECKOUT / "tests" / "dbt" / "assert_every_mart_sums_to_daily_costs.sql").read_text()
    assert re.findall(r"sums\('(\w+)'\)", text) == ["stg_daily_costs", *MARTS]
    assert re.findall(r"'(\w+)'", text.split("array(")[1].split(")")[0]) == list(MARTS)


@pytest.mark.parametrize("name", [*(table.name for table in TABLES), *MARTS])
def test_every_table_and_mart_is_named_where_readers_look(name: str) -> None:
    assert f"`{name}`" in (CHECKOUT / "docs" / "connect.md").read_text().split("\n## ")[0]
