"""Every public sample bill behaves as its row of MANIFEST.csv says."""

from __future__ import annotations

import csv
import json
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from weighbridge.adapters.files import FolderStore
from weighbridge.billing.formats import READ, Declared, Part, recognise
from weighbridge.billing.headers import headers
from weighbridge.billing.inspection import inspect_all
from weighbridge.errors import BillRefused

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, str]


def manifest(bills: Path) -> list[Row]:
    with (bills / "MANIFEST.csv").open(newline="") as file:
        return [row for row in csv.DictReader(file) if row["expected"] != "not-a-bill"]


def is_asked_for(bills: Path, row: Row) -> bool:
    """True for a bill of a format that is read; others are refused by their header."""
    part = Part(row["file"], FolderStore(str(bills)))
    try:
        return recognise(headers([part])[0].names, row["file"], Declared())[1] in READ
    except BillRefused:
        return False


def needs(row: Row) -> Declared:
    return Declared(**dict(need.split("=") for need in row["needs"].split()))


def inspected(spark: SparkSession, bills: Path, rows: list[Row], declared: Declared) -> dict[str, Any]:
    store = FolderStore(str(bills))
    answers = inspect_all(spark, [row["file"] for row in rows], lambda path: (store, path), declared)
    return {answer["path"]: answer for answer in answers}


def problems(row: Row, answer: dict[str, Any]) -> list[str]:
    """What differs between an answer and the row of the manifest."""
    if "refused" in answer:
        return [answer["refused"]]
    found: list[str] = []
    if answer["rows"] != int(row["rows"]):
        found.append(f"{answer['rows']} rows, not {row['rows']}")
    if row["periods"] and answer["periods"] != row["periods"].split():
        found.append(f"periods {answer['periods']}, not {row['periods']}")
    for currency, totals in json.loads(row["totals"]).items():
        for measure, amount in totals.items():
            given = answer["totals"].get(currency, {}).get(measure)
            if given is None or Decimal(given) != Decimal(amount) or "E" in given:
                found.append(f"{currency} {measure} is {given}, not {amount}")
    return found


def test_each_bill_of_a_known_format_has_the_manifests_totals_once_its_needs_are_declared(
    spark: SparkSession, bills: Path
) -> None:
    """The ones with needs are refused without them."""
    known = [row for row in manifest(bills) if is_asked_for(bills, row)]
    loadable = [row for row in known if row["expected"] == "load"]
    assert len(loadable) > 30
    found: dict[str, list[str]] = {}
    for needed in sorted({row["needs"] for row in loadable}):
        rows = [row for row in loadable if row["needs"] == needed]
        answers = inspected(spark, bills, rows, needs(rows[0]))
        found |= {row["file"]: problems(row, answers[row["file"]]) for row in rows}
        if needed:
            undeclared = inspected(spark, bills, rows, Declared())
            found |= {
                f"{path} undeclared": ["read"] for path, one in undeclared.items() if "refused" not in one
            }
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_bills_that_cannot_be_read_are_refused_with_file_row_column_and_value(
    spark: SparkSession, bills: Path
) -> None:
    rows = [row for row in manifest(bills) if row["expected"] == "refuse" and is_asked_for(bills, row)]
    us_dates = [row for row in rows if row["file"].startswith("focus_spec/")]
    answers = inspected(spark, bills, us_dates, Declared(dates="M/d/yy"))
    answers |= inspected(spark, bills, [row for row in rows if row not in us_dates], Declared())
    reasons = {path: answer.get("refused", "it was read") for path, answer in answers.items()}
    agreement = reasons["focus_spec/simple_saas_agreements_a1.csv"]
    assert "simple_saas_agreements_a1.csv, row 1: BilledCost is '$10,000.00 '" in agreement
    schema_sample = reasons["fivetran_cur2/aws_cost_report.csv"]
    assert "row 1: line_item_usage_start_date is nothing" in schema_sample
    assert not [path for path, reason in reasons.items() if reason == "it was read"]


def test_bills_of_other_formats_are_refused_by_their_header(bills: Path) -> None:
    refused = 0
    for row in manifest(bills):
        if not is_asked_for(bills, row):
            part = Part(row["file"], FolderStore(str(bills)))
            with pytest.raises(BillRefused, match=r"not asked for yet|lacks|no file that is read here"):
                recognise(headers([part])[0].names, row["file"], Declared())
            refused += 1
    assert refused > 20
