"""Rows of a bill in the shape of charges, with what storing rounded away and what cannot be read."""

from __future__ import annotations

from dataclasses import dataclass

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StringType

from weighbridge.billing import money, parts, tagtexts
from weighbridge.billing.fields import FieldNumbers, Fields, number_text_name
from weighbridge.billing.formats import BillFormat, Declared
from weighbridge.errors import BillRefused
from weighbridge.tables import CHARGES, MEASURES

TAG_TEXT = "x_tag_text"
FIRST, LAST = "x_billing_period", "x_operation"


@dataclass(frozen=True)
class Shaped:
    """Rows with every column of charges that a bill can give, and ours beside them.

    `residual_…` per measure; `x_bad` and `x_bad_value`: the first column of a row that cannot be read, else
    null. Where `has_net`: `x_net`, `net_effective_cost` and its residual. Where tags come as text they stand
    in the column `tag_text` and `tags` is not there yet; `tag_column` is the provider's name of it.
    """

    rows: DataFrame
    has_net: bool
    tag_text: str | None
    tag_column: str | None
    keep_tag_keys: tuple[str, ...] | None


def line_columns() -> list[str]:
    """The columns of charges that a bill can give, in the table's order."""
    names = CHARGES.column_names
    return [n for n in names[names.index(FIRST) : names.index(LAST) + 1] if n != "x_delivery"]


def shape(
    rows: DataFrame, fields: Fields, bill_format: BillFormat, declared: Declared, is_text: bool
) -> Shaped:
    """The rows of all files, shaped. BillRefused where the tags' type holds no tags."""
    numbers = [n for n in (*bill_format.costs_read, *bill_format.quantities_read) if n in fields]
    texts = [fields.number_text(name).alias(number_text_name(name)) for name in numbers]
    rows = rows.select("*", *texts)
    stored = FieldNumbers(fields, money.STORED_KIND)
    residuals = FieldNumbers(fields, money.RESIDUAL_KIND)
    tag_column = next((name for name in bill_format.tags if name in fields), None)
    tags = _tags(fields, tag_column)

    given = bill_format.others(fields, stored, declared.currency)
    given |= bill_format.costs(fields, stored, False)
    given |= {
        "x_billing_period": F.substring(given["billing_period_start"].cast("string"), 1, len("2026-11")),
        "x_part": F.col("x_part"),
        "x_row": F.col("x_row"),
        "tags": F.lit(None) if tags is None else tags,
    }
    left = bill_format.costs(fields, residuals, False)
    has_net = bill_format.has_net(fields, stored)
    tag_text = TAG_TEXT if tags is None and tag_column is not None else None
    columns = [
        given.get(column.name, F.lit(None)).cast(column.type).alias(column.name)
        for column in CHARGES.columns
        if column.name in line_columns() and (column.name != "tags" or tag_text is None)
    ]
    columns += [left[measure].cast(money.RESIDUAL).alias(f"residual_{measure}") for measure in MEASURES]
    if has_net is not None:
        of_net = bill_format.costs(fields, stored, True)["effective_cost"]
        left_of_net = bill_format.costs(fields, residuals, True)["effective_cost"]
        columns += [
            has_net.alias("x_net"),
            of_net.alias("net_effective_cost"),
            left_of_net.alias("residual_net_effective_cost"),
        ]
    if tag_text is not None and tag_column is not None:
        columns.append(fields.text(tag_column).alias(tag_text))
    bad, value = _unreadable(fields, bill_format, given, is_text)
    columns += [bad.alias("x_bad"), value.alias("x_bad_value")]
    return Shaped(rows.select(*columns), has_net is not None, tag_text, tag_column, declared.keep_tag_keys)


def _tags(fields: Fields, tag_column: str | None) -> Column | None:
    """The tags as a map; None where there are none or they come as text."""
    kind = fields.type_of(tag_column) if tag_column is not None else None
    if tag_column is None or kind is None or isinstance(kind, StringType):
        return None
    found = tagtexts.native(fields.raw(tag_column), kind)
    if found is None:
        raise BillRefused(
            f"{tag_column} is of the type {kind.simpleString()}, which holds no tags that can be read"
        )
    return found


def _unreadable(
    fields: Fields, bill_format: BillFormat, given: dict[str, Column], is_text: bool
) -> tuple[Column, Column]:
    """The name of the first unreadable column of a row, and its value as text; null where all can be read."""
    checks: list[tuple[str, Column, Column]] = []
    if is_text:
        checks.append((parts.CORRUPT, F.col(parts.CORRUPT).isNotNull(), F.col(parts.CORRUPT)))
    starts = bill_format.starts
    checks += [
        (name, fields.bad_moment(name, needed=name in starts), fields.text(name))
        for name in (*starts, *bill_format.ends)
        if name in fields or name in starts
    ]
    for columns, are_costs in ((bill_format.costs_read, True), (bill_format.quantities_read, False)):
        for name in columns:
            if name in fields:
                text = F.col(number_text_name(name))
                checks.append((name, fields.bad_number(name, text, are_costs), text))
    checks += [
        (bill_format.category, given["charge_category"].isNull(), fields.text(bill_format.category)),
        (bill_format.currency, given["billing_currency"].isNull(), fields.text(bill_format.currency)),
    ]
    bad: Column = F.lit(None).cast("string")
    value: Column = F.lit(None).cast("string")
    for column, is_bad, found in reversed(checks):
        bad = F.when(is_bad, column).otherwise(bad)
        value = F.when(is_bad, found).otherwise(value)
    return bad, value
