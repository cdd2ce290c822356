"""The dbt project agrees with `tables.py`, and can be read where no lake is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from weighbridge.adapters.marts import run_dbt
from weighbridge.tables import MARTS, TABLES, Table

PROJECT = Path(__file__).parents[2]
MODELS = PROJECT / "models"


def test_the_sources_say_what_the_tables_say() -> None:
    sources = yaml.safe_load((MODELS / "staging" / "_sources.yml").read_text())["sources"][0]["tables"]
    assert [source["name"] for source in sources] == [table.name for table in TABLES]
    for source, table in zip(sources, TABLES, strict=True):
        assert source["description"] == table.grain
        assert source["columns"] == [
            {"name": column.name, "data_type": column.type, "description": column.says}
            for column in table.columns
        ]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_each_table_has_a_staging_model_that_only_renames(table: Table) -> None:
    text = (MODELS / "staging" / f"stg_{table.name}.sql").read_text()
    body = re.fullmatch(r"-- .+\nselect\n(.*)\nfrom \{\{ source\('lake', '(\w+)'\) \}\}\n", text, re.DOTALL)
    assert body is not None
    assert body[2] == table.name
    columns = [line.strip().rstrip(",").split(" as ")[0] for line in body[1].splitlines()]
    assert columns == table.column_names


def test_each_mart_says_its_grain_first_and_every_column_with_its_meaning() -> None:
    assert {path.stem for path in (MODELS / "marts").glob("*.sql")} == set(MARTS)
    for mart in MARTS:
        model = yaml.safe_load((MODELS / "marts" / f"{mart}.yml").read_text())["models"][0]
        assert model["name"] == mart
        assert model["description"].startswith("Grain: one row per ")
        assert all(column["description"] for column in model["columns"])
        names = [column["name"] for column in model["columns"]]
        assert {"source", "billing_period", "usage_month", "billing_currency"} <= set(names)


def test_the_project_is_read_from_a_clean_checkout_without_a_lake(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run_dbt(PROJECT, ["parse"], {}, tmp_path)
    assert capfd.readouterr().out == ""
    nodes = json.loads((tmp_path / "manifest.json").read_text())["nodes"].values()
    assert {node["name"] for node in nodes if node["resource_type"] == "model"} == {
        *MARTS,
        *(f"stg_{table.name}" for table in TABLES),
    }
