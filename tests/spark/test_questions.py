"""Every finance question on a small lake, now and as it stood, with its parameters bound."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cost_lake import CostLake, charge, daily_cost, delivery, unattributed
from weighbridge.adapters.answers import ask
from weighbridge.adapters.marts import mart_versions
from weighbridge.cli import run
from weighbridge.errors import Refused
from weighbridge.finance.export import is_money
from weighbridge.finance.questions import find, questions
from weighbridge.tables import CHARGES, CHECK_RESULTS, DELIVERIES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROJECT = Path(__file__).parents[2]
FOLDER = PROJECT / "sql" / "queries"
LAST_DIGIT = Decimal("0.000000000000000001")
NEEDED = {"period": "2026-10", "business_line": "Advertising", "currency": "USD"}


def night(lake: CostLake, day: int, name: str, effective: Decimal) -> dict[str, Any]:
    """One night that publishes this effective cost for Advertising; its row of the ledger."""
    paid = {"effective_cost": effective, "billed_cost": Decimal(10), "list_cost": Decimal(20)}
    costs = lake.costs(
        daily_cost(**paid, delivery=name),
        daily_cost(business_line="Search", model_version=None, region_id=None, delivery=name),
        unattributed(effective_cost=Decimal("0.5"), delivery=name),
    )
    lines = [
        charge(**paid, x_row=7, x_delivery=name),
        charge(x_row=8, x_delivery=name, effective_cost=-LAST_DIGIT),
        charge(x_row=9, x_delivery=name, x_business_line="Search", x_model_version=None),
    ]
    versions = {"charges": lake.replace(CHARGES, lines), "daily_costs": costs}
    lake.make_marts()
    versions |= {mart: version or 0 for mart, version in mart_versions(lake.spark, lake.root).items()}
    recorded = datetime.datetime(2026, 11, day, 3, tzinfo=datetime.UTC)
    return delivery(delivery=name, recorded_at=recorded, versions=versions)


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> CostLake:
    """Two nights of one bill: 8 on the second of November, 8 and the last digit on the fourth."""
    made = CostLake(spark, str(tmp_path_factory.mktemp("lake")))
    made.costs(daily_cost(billing_period="2026-09", effective_cost=Decimal(3)), period="2026-09")
    first = night(made, 2, "d1", Decimal(8))
    second = night(made, 4, "d2", Decimal(8) + LAST_DIGIT)
    made.replace(DELIVERIES, [first, second])
    made.replace(CHECK_RESULTS, [failed_check()])
    return made


def failed_check() -> dict[str, Any]:
    """One warning of the first delivery."""
    texts = {"severity": "warning", "says": "only values that this source had before", "suite": "daily_costs"}
    keys = {"run": "r1", "delivery": "d1", "source": "aws", "billing_period": "2026-10"}
    at = datetime.datetime(2026, 11, 2, tzinfo=datetime.UTC)
    plain = dict.fromkeys(CHECK_RESULTS.column_names)
    return plain | keys | texts | {"check_name": "expect", "success": False, "checked_at": at}


def answer(lake: CostLake, name: str, as_of: str | None = None, **given: str) -> list[dict[str, Any]]:
    """The rows of a question's answer."""
    question = find(FOLDER, name)
    return ask(lake.spark, lake.root, question, question.bind(given), as_of).table.records()


def test_every_question_is_answered_and_its_decimals_are_named_by_what_they_are(lake: CostLake) -> None:
    for question in questions(FOLDER).values():
        given = {one.name: NEEDED[one.name] for one in question.parameters if one.default is None}
        rows = answer(lake, question.name, **given)
        assert rows, question.name
        for name, value in rows[0].items():
            if isinstance(value, Decimal):
                assert is_money(name) or name.endswith("_share"), f"{question.name}: {name}"
                assert not is_money(name) or value.as_tuple().exponent == -18, f"{question.name}: {name}"
        if any(map(is_money, rows[0])):
            assert "billing_currency" in rows[0], question.name


def test_who_spends_most_is_ordered_and_has_shares(lake: CostLake) -> None:
    rows = answer(lake, "who_spends_most", period="2026-10", rows="2")
    assert [(row["business_line"], row["effective_cost"]) for row in rows] == [
        ("Advertising", Decimal(8) + LAST_DIGIT),
        ("Search", Decimal(1)),
    ]
    assert rows[1]["effective_share"] == Decimal("0.1052631579")


def test_growth_is_exact_and_compares_with_the_month_before(lake: CostLake) -> None:
    rows = {row["business_line"]: row for row in answer(lake, "what_grew", period="2026-10")}
    grown = rows["Advertising"]
    assert (grown["before_effective_cost"], grown["growth_effective_cost"]) == (
        Decimal(3),
        Decimal(5) + LAST_DIGIT,
    )
    assert rows["Search"]["before_effective_cost"] is None
    assert rows["Search"]["growth_effective_cost"] == Decimal(1)


def test_only_lines_with_a_list_price_are_compared_with_it(lake: CostLake) -> None:
    row = answer(lake, "list_against_effective", period="2026-10")[0]
    assert (row["list_cost"], row["effective_cost"]) == (Decimal(20), Decimal(8) + LAST_DIGIT)
    assert row["saved_cost"] == Decimal(12) - LAST_DIGIT
    assert row["without_list_price_effective_cost"] == -LAST_DIGIT


def test_a_number_opens_down_to_file_and_row_of_the_bill(lake: CostLake) -> None:
    rows = answer(lake, "open_one_number", **NEEDED, model_version="ranker-7")
    assert [(row["part"], row["bill_row"], row["bill_file"]) for row in rows] == [
        (1, 7, "part-1.csv.gz"),
        (1, 8, "part-1.csv.gz"),
    ]
    assert {row["whole_effective_cost"] for row in rows} == {Decimal(8)}
    assert rows[0]["charge_period_start"] == "2026-10-05T13:00:00Z"


def test_what_nobody_pays_says_why(lake: CostLake) -> None:
    rows = answer(lake, "unattributed_and_why", period="2026-10")
    assert [(row["unattributed_reason"], row["effective_cost"]) for row in rows] == [
        ("no_tag", Decimal("0.5"))
    ]


@pytest.mark.parametrize(
    ("as_of", "effective"),
    [
        ("2026-11-02", Decimal("9.5")),
        ("2026-11-03", Decimal("9.5")),
        ("d1", Decimal("9.5")),
        ("2026-11-04", Decimal("9.5") + LAST_DIGIT),
        (None, Decimal("9.5") + LAST_DIGIT),
    ],
)
def test_a_bill_is_answered_as_it_stood(lake: CostLake, as_of: str | None, effective: Decimal) -> None:
    rows = answer(lake, "as_it_stood", as_of, period="2026-10")
    assert [row["effective_cost"] for row in rows] == [effective]


def test_a_date_before_the_first_night_is_refused_with_the_oldest(lake: CostLake) -> None:
    with pytest.raises(Refused, match="2026-11-02"):
        answer(lake, "as_it_stood", "2026-11-01")


def test_a_version_that_is_gone_is_refused_with_the_oldest_date_to_be_had(lake: CostLake) -> None:
    assert answer(lake, "list_against_effective", "d1", period="2026-10")
    first = lake.spark.read.format("delta").option("versionAsOf", 1).load(f"{lake.root}/charges").inputFiles()
    for file in first:
        Path(file.removeprefix("file:")).unlink()
    with pytest.raises(Refused, match="the oldest date to be had is 2026-11-04"):
        answer(lake, "list_against_effective", "2026-11-02", period="2026-10")
    # The mart of that night is still there, and so is the newer night.
    assert answer(lake, "as_it_stood", "2026-11-02")
    assert answer(lake, "list_against_effective", "2026-11-04", period="2026-10")


@pytest.mark.parametrize("text", ["x' or '1'='1", "`x`; drop table monthly_cost --", '"', "\\", "\x00"])
def test_a_parameter_is_a_value_and_never_sql(lake: CostLake, text: str) -> None:
    assert answer(lake, "as_it_stood", source=text) == []


def test_the_names_of_tables_are_free_again_after_an_answer(lake: CostLake) -> None:
    answer(lake, "as_it_stood")
    assert [view.name for view in lake.spark.catalog.listTables() if view.isTemporary] == []


def test_the_command_answers_in_every_format(
    lake: CostLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEIGHBRIDGE_LAKE", lake.root)
    asked = {"question": "who_spends_most", "param": ("period=2026-10",), "as_of": "d1"}
    found = run("query", **asked)
    assert found.data["rows"][0]["effective_cost"] == "8"
    assert found.data["as_of"]["delivery"] == "d1"
    assert "Advertising" in found.text
    assert json.loads(run("query", **asked, format="json").text)["rows"] == found.data["rows"]
    assert run("query", **asked, format="csv").text.startswith('"business_line","billing_currency",')
    workbook = tmp_path / "bill.xlsx"
    assert str(workbook) in run("query", **asked, format="xlsx", out=workbook).text
    assert workbook.read_bytes()[:2] == b"PK"
    assert workbook.stat().st_mode & 0o077 == 0
    with pytest.raises(Refused, match="--out"):
        run("query", **asked, format="xlsx")


def test_the_marts_command_builds_some_periods_and_refuses_unknown_ones(
    lake: CostLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEIGHBRIDGE_LAKE", lake.root)
    assert run("marts", period="2026-09").data["periods"] == [("aws", "2026-09")]
    with pytest.raises(Refused, match="2026-10"):
        run("marts", period="2020-01")
