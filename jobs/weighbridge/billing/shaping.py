"""Rows of a bill in the shape of charges, or as what a survey sums: money, days, tags, what cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StringType

from weighbridge.billing import money, parts, tagtexts
from weighbridge.billing.fields import (
    FieldNumbers,
    Fields,
    clean_name,
    code_name,
    fine_name,
    left_name,
    moment_name,
    stored_name,
    text_name,
    units_name,
)
from weighbridge.billing.formats import BillFormat, Declared
from weighbridge.errors import BillRefused
from weighbridge.tables import AMOUNT, CHARGES, MEASURES

NET_EFFECTIVE = "net_effective_cost"
FIRST, LAST = "x_billing_period", "x_operation"


def line_columns() -> list[str]:
    """The columns of charges that a bill can give, in the table's order."""
    names = CHARGES.column_names
    return [n for n in names[names.index(FIRST) : names.index(LAST) + 1] if n != "x_delivery"]


@dataclass(frozen=True)
class Shape:
    """How the rows of a bill's files become ours. `rows` has the provider's columns, `x_part` and `x_row`.

    `surveyed` has what a survey sums and a person is told, `lines` has charges. Both stand on the same
    numbers and times, which `_read` puts into columns of their own, so that each is computed once.
    """

    rows: DataFrame
    fields: Fields
    bill_format: BillFormat
    declared: Declared
    is_text: bool

    def __post_init__(self) -> None:
        """Refuses tags of a type that holds none."""
        column = self.tag_column
        kind = self.fields.type_of(column) if column is not None else None
        if column is not None and kind is not None and self.tag_map is None and not self.tags_are_text:
            raise BillRefused(
                f"{column} is of the type {kind.simpleString()}, which holds no tags that are read"
            )

    @property
    def tag_column(self) -> str | None:
        """The provider's name of the tags, None where the bill has none."""
        return next((name for name in self.bill_format.tags if name in self.fields), None)

    @property
    def tags_are_text(self) -> bool:
        """True where tags have to be parsed."""
        return self.tag_column is not None and isinstance(self.fields.type_of(self.tag_column), StringType)

    @property
    def tag_text(self) -> Column:
        """The tags as the bill writes them, where they are text."""
        assert self.tag_column is not None
        return self.fields.cleaned(self.tag_column)

    @property
    def tag_map(self) -> Column | None:
        """The tags where they are a map or can be made one without parsing."""
        kind = self.fields.type_of(self.tag_column) if self.tag_column is not None else None
        if self.tag_column is None or kind is None or self.tags_are_text:
            return None
        return tagtexts.native(self.fields.raw(self.tag_column), kind)

    @property
    def has_net(self) -> bool:
        """True where the bill has costs after discounts too."""
        return self.bill_format.has_net(self.fields, self._stored) is not None

    @property
    def _stored(self) -> FieldNumbers:
        return FieldNumbers(self.fields, money.STORED_KIND)

    def lines(self, tags: Column, net_periods: Sequence[str]) -> DataFrame:
        """One row per bill line in the shape of charges, without source, delivery and attribution.

        `tags` is the map, from a column of `rows`; effective cost is after discounts in `net_periods`.
        """
        costs = self.bill_format.costs(self.fields, self._stored, False)
        if net_periods:
            net = self.bill_format.costs(self.fields, self._stored, True)["effective_cost"]
            in_net = self._period().isin(list(net_periods))
            costs["effective_cost"] = F.when(in_net, net).otherwise(costs["effective_cost"])
        given = self.bill_format.others(self.fields, self._stored, self.declared.currency) | costs
        given |= {
            "x_billing_period": self._period(),
            "x_part": F.col("x_part"),
            "x_row": F.col("x_row"),
            "tags": tags,
        }
        types = {column.name: column.type for column in CHARGES.columns}
        return self._read(with_ends=True).select(
            *[given.get(name, F.lit(None)).cast(types[name]).alias(name) for name in line_columns()]
        )

    def surveyed(self) -> DataFrame:
        """One row per bill line: file, row, period, currency, day, costs with residuals, tags, `x_bad`.

        `x_bad` is true for a row with anything that cannot be read, tag texts apart. Where `has_net`, there
        are `x_net` and the effective cost after discounts too.
        """
        stored, residuals = self._stored, FieldNumbers(self.fields, money.RESIDUAL_KIND)
        costs = self.bill_format.costs(self.fields, stored, False)
        left = self.bill_format.costs(self.fields, residuals, False)
        columns = [costs[name].cast(AMOUNT).alias(f"stored_{name}") for name in MEASURES]
        columns += [left[name].cast(money.RESIDUAL).alias(f"residual_{name}") for name in MEASURES]
        has_net = self.bill_format.has_net(self.fields, stored)
        if has_net is not None:
            net = self.bill_format.costs(self.fields, stored, True)["effective_cost"]
            left_of_net = self.bill_format.costs(self.fields, residuals, True)["effective_cost"]
            columns += [
                has_net.alias("x_net"),
                net.alias(f"stored_{NET_EFFECTIVE}"),
                left_of_net.alias(f"residual_{NET_EFFECTIVE}"),
            ]
        if self.tags_are_text:
            columns.append(self.tag_text.alias("tag_text"))
        else:
            tags = self.tag_map
            columns.append((F.lit(None).cast(tagtexts.TAGS) if tags is None else tags).alias("tags"))
        day = F.col(moment_name(self.bill_format.starts[1])).cast("date")
        bad = F.lit(False)
        for _, is_bad in self._checks():
            bad = bad | is_bad
        return self._with_residuals().select(
            "x_part",
            "x_row",
            self._period().alias("x_billing_period"),
            self._currency().alias("billing_currency"),
            day.alias("day"),
            bad.alias("x_bad"),
            *columns,
        )

    def unreadable(self) -> DataFrame:
        """Rows with anything that cannot be read: file, row, the column's name and its value as text."""
        checks = self._checks()
        if self.tags_are_text and self.tag_column is not None:
            no_tags = self.tag_text.isNotNull() & tagtexts.parsed(self.tag_text).isNull()
            checks.append((self.tag_column, no_tags))
        name: Column = F.lit(None).cast("string")
        value: Column = F.lit(None).cast("string")
        for column, is_bad in reversed(checks):
            found = F.col(column) if column == parts.CORRUPT else self.fields.text(column)
            name = F.when(is_bad, column).otherwise(name)
            value = F.when(is_bad, found).otherwise(value)
        all_rows = self._with_residuals().select(
            "x_part", "x_row", name.alias("column"), value.alias("value")
        )
        return all_rows.where(F.col("column").isNotNull())

    def _numbers(self) -> list[str]:
        every = (*self.bill_format.costs_read, *self.bill_format.quantities_read)
        return [name for name in every if name in self.fields]

    def _cleaned(self) -> DataFrame:
        """The rows and their texts, each cleaned once: the type of a line is asked for some twenty times."""
        texts = self.fields.texts
        cleaned = self.rows.select(
            "*", *[self.fields.cleaned(name).alias(clean_name(name)) for name in texts]
        )
        return cleaned.select(
            "*", *[F.trim(F.col(clean_name(name))).alias(code_name(name)) for name in texts]
        )

    def _read(self, with_ends: bool) -> DataFrame:
        """The rows, their numbers as texts and as stored, and their times."""
        numbers = self._numbers()
        texts = [
            self.fields.number_text(name).alias(text_name(name))
            for name in numbers
            if self.fields.needs_text(name)
        ]
        units = [self.fields.units(n).alias(units_name(n)) for n in numbers if self.fields.is_double(n)]
        moments = (*self.bill_format.starts, *(self.bill_format.ends if with_ends else ()))
        rows = (
            self._cleaned()
            .select("*", *units)
            .select("*", *texts, *[self.fields.moment(name).alias(moment_name(name)) for name in moments])
        )
        return rows.select("*", *[self.fields.stored(name).alias(stored_name(name)) for name in numbers])

    def _with_residuals(self) -> DataFrame:
        costs = [n for n in self.bill_format.costs_read if n in self.fields and self.fields.needs_text(n)]
        return money.with_residuals(
            self._read(with_ends=False), {text_name(n): (left_name(n), fine_name(n)) for n in costs}
        )

    def _period(self) -> Column:
        start = F.col(moment_name(self.bill_format.starts[0]))
        return F.substring(start.cast("string"), 1, len("2026-11"))

    def _currency(self) -> Column:
        return F.coalesce(self.fields.code(self.bill_format.currency), F.lit(self.declared.currency))

    def _checks(self) -> list[tuple[str, Column]]:
        """(column, whether a row's value of it cannot be read), the row's form first."""
        fields, of = self.fields, self.bill_format
        checks = [(parts.CORRUPT, F.col(parts.CORRUPT).isNotNull())] if self.is_text else []
        checks += [(name, fields.bad_start(name)) for name in of.starts]
        checks += [(name, fields.bad_end(name)) for name in of.ends if name in fields]
        checks += [(name, fields.bad_number(name, name in of.costs_read)) for name in self._numbers()]
        checks.append((of.category, fields.code(of.category).isNull()))
        checks.append((of.currency, self._currency().isNull()))
        return checks
