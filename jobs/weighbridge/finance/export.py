"""An answer as a table, CSV, XLSX or JSON: exact money, and no cell that a spreadsheet runs as a formula."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from weighbridge.finance.currencies import minor_unit

CURRENCY = "billing_currency"
# What may stand unseen before a formula's first sign: spaces of every kind, zero width and byte order marks.
_UNSEEN = re.compile(r"^[ \u00a0\u1680\u2000-\u200f\u2028-\u202f\u205f\u2060\u3000\ufeff]*")
_LINE = re.compile(r"(\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])")
# The last four are the full-width forms, which Excel reads like the others.
_STARTS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")
# More digits than any stored amount has, so that rounding a cell never meets the context's own limit.
_EXACT = Context(prec=60)


@dataclass(frozen=True)
class Table:
    """An answer: column names, and rows of values as Spark hands them over."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def records(self) -> list[dict[str, Any]]:
        """One mapping a row, in the answer's order."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def is_money(column: str) -> bool:
    """Whether a column holds money: its name ends with `_cost`, and `billing_currency` stands in the row."""
    return column.endswith("_cost")


def safe_text(text: str) -> str:
    """The text with `'` before every line that a spreadsheet could take for a formula.

    A line counts from its first visible sign; a cell that begins with a tab or a line break counts as well.
    """
    pieces = _LINE.split(text)
    pieces[::2] = [_guarded(line) for line in pieces[::2]]
    safe = "".join(pieces)
    return "'" + safe if _UNSEEN.sub("", safe)[:1] in ("\r", "\n") else safe


def _guarded(line: str) -> str:
    return "'" + line if _UNSEEN.sub("", line).startswith(_STARTS_A_FORMULA) else line


def plain(value: Any) -> str:
    """A value as exact text: money with every digit that counts, times in UTC, maps and lists as JSON."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return _shortest(value)
    if isinstance(value, datetime):
        moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        return moment.isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, (dict, list, tuple)):
        return json.dumps(value, default=plain, ensure_ascii=False, sort_keys=True)
    return str(value)


def _shortest(value: Decimal) -> str:
    """A decimal without the zeros that say nothing, and never with an exponent."""
    text = format(value, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, Decimal)) and not isinstance(value, bool)


def to_csv(table: Table) -> str:
    """CSV after RFC 4180: numbers bare and exact, text quoted and safe, null empty, lines end CR LF."""

    def cell(value: Any) -> str:
        if value is None or _is_number(value):
            return plain(value)
        return '"' + safe_text(plain(value)).replace('"', '""') + '"'

    lines = [",".join(map(cell, line)) for line in (table.columns, *table.rows)]
    return "".join(line + "\r\n" for line in lines)


def to_text(table: Table) -> str:
    """A table for a person: aligned, numbers to the right with every digit, null as `-`, one line a row."""
    shown = [[_on_one_line(value) for value in row] for row in table.rows]
    widths = [max(map(len, cells)) for cells in zip(table.columns, *shown, strict=True)]
    right = [any(_is_number(row[at]) for row in table.rows) for at in range(len(table.columns))]

    def line(cells: Sequence[str]) -> str:
        parts = (
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(cells, widths, right, strict=True)
        )
        return "  ".join(parts).rstrip()

    ruler = ["-" * width for width in widths]
    count = f"{len(table.rows)} row{'' if len(table.rows) == 1 else 's'}"
    return "\n".join([line(table.columns), line(ruler), *map(line, shown), "", count])


def _on_one_line(value: Any) -> str:
    """A value without control signs: a tag must not move the cursor or forge a row of the table."""
    if value is None:
        return "-"
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in plain(value))


def to_json_data(table: Table) -> list[dict[str, Any]]:
    """One mapping a row for JSON: decimals as exact text, whole numbers as numbers, null as null."""
    return [{name: _json_value(value) for name, value in record.items()} for record in table.records()]


def _json_value(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, dict):
        return {key: _json_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_value(item) for item in value]
    return plain(value)


def to_xlsx(table: Table, title: str) -> bytes:
    """A workbook of one sheet: money rounded to the currency's minor unit, its exact text beside."""
    from openpyxl import Workbook

    workbook = Workbook()
    sheet = workbook.active
    sheet.title = title[:31]
    for at, heads in enumerate(_xlsx_heads(table), start=1):
        _write(sheet.cell(row=1, column=at), heads, None)
    for line, record in enumerate(table.records(), start=2):
        at = 0
        for name, value in record.items():
            money = is_money(name) and isinstance(value, Decimal)
            decimals = minor_unit(record.get(CURRENCY)) if money else None
            at += 1
            _write(sheet.cell(row=line, column=at), value, decimals)
            if is_money(name):
                at += 1
                _write_exact(sheet.cell(row=line, column=at), value)
    sheet.freeze_panes = "A2"
    stream = io.BytesIO()
    workbook.save(stream)
    return stream.getvalue()


def _xlsx_heads(table: Table) -> list[str]:
    return [
        head for name in table.columns for head in ([name, f"{name} (exact)"] if is_money(name) else [name])
    ]


def rounded(value: Decimal, decimals: int) -> Decimal:
    """The amount as an invoice would print it: half away from zero, at a currency's minor unit."""
    return value.quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_HALF_UP, context=_EXACT)


def _write(cell: Any, value: Any, decimals: int | None) -> None:
    """One cell: a number with its format, or text that stays text whatever it begins with."""
    if value is None:
        return
    if decimals is not None:
        cell.value = rounded(value, decimals)
        cell.number_format = "#,##0" + ("." + "0" * decimals if decimals else "")
    elif _is_number(value):
        cell.value = value
    else:
        _write_text(cell, safe_text(plain(value)))


def _write_exact(cell: Any, value: Any) -> None:
    if isinstance(value, Decimal):
        _write_text(cell, plain(value))  # our own digits: text, and nothing but a number


def _write_text(cell: Any, text: str) -> None:
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    cell.value = ILLEGAL_CHARACTERS_RE.sub("\N{REPLACEMENT CHARACTER}", text)[:32767]
    # openpyxl takes text that begins with `=` for a formula; the type is set last, so it cannot.
    cell.data_type = "s"
    cell.number_format = "@"
