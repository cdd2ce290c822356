"""Bills as rows: every file of a delivery read to its end, each line in the shape of charges, or refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NoReturn

import pyspark.sql.functions as F
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame

from weighbridge.billing import parts, tagtexts
from weighbridge.billing.attribute import KEY_SEPARATOR
from weighbridge.billing.fields import Fields
from weighbridge.billing.formats import BillFormat, Declared, Part, recognise
from weighbridge.billing.headers import WAY_OUT, Header, common, headers
from weighbridge.billing.shaping import NET_EFFECTIVE, Shape
from weighbridge.billing.survey import PeriodSurvey, Survey, Total, survey_of
from weighbridge.errors import BillRefused
from weighbridge.tables import MEASURES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Distinct tag texts are parsed once and joined back while they fit into memory and are few beside the rows.
MOST_TAG_SETS = 100_000
MOST_TAG_SETS_PER_ROW = 0.3
FEW_TAG_SETS = 1_000

# Errors of Spark that say that a sum does not fit its type.
OVERFLOWS = ("ARITHMETIC_OVERFLOW", "NUMERIC_VALUE_OUT_OF_RANGE", "CAST_OVERFLOW")


@dataclass
class Bill:
    """A bill of a known format: `columns` are names and types as the provider wrote them."""

    format: str
    columns: list[tuple[str, str]]
    parts: tuple[Part, ...]
    shape: Shape
    _survey: Survey | None = field(default=None, repr=False)

    def survey(self) -> Survey:
        """One pass over everything; BillRefused names file, row, column and value of the first unreadable one."""
        if self._survey is None:
            try:
                groups = self._groups().collect()
                if any(group["bad_rows"] for group in groups):
                    self._refuse_first_bad()
            except (PySparkException, Py4JError) as error:
                self._refuse_failed(error)
            if not groups:
                raise BillRefused(f"{_names(self.parts)} has no rows, so no billing period")
            self._survey = survey_of([group.asDict() for group in groups])
        return self._survey

    @property
    def lines(self) -> DataFrame:
        """One row per bill line in the shape of charges, without source, delivery and attribution; lazy."""
        found, shape = self.survey(), self.shape
        if not shape.tags_are_text:
            tags = shape.tag_map
            given = F.lit(None).cast(tagtexts.TAGS) if tags is None else tags
        elif found.tag_sets <= min(MOST_TAG_SETS, max(found.rows * MOST_TAG_SETS_PER_ROW, FEW_TAG_SETS)):
            rows = tagtexts.with_tags(shape.rows.withColumn("x_tag_text", shape.tag_text), "x_tag_text")
            shape, given = replace(shape, rows=rows), F.col(tagtexts.PARSED)
        else:
            given = tagtexts.parsed(shape.tag_text)
        return shape.lines(self._kept(given), found.net_periods)

    def _groups(self) -> DataFrame:
        """Rows summed by file, billing period, currency and set of tag keys. Tag texts are parsed once a text."""
        shape = self.shape
        by = ["x_part", "x_billing_period", "billing_currency"]
        measures = [*MEASURES, *([NET_EFFECTIVE] if shape.has_net else [])]
        sums = [f"{kind}_{name}" for kind in ("stored", "residual") for name in measures]
        keys = F.col("tag_text") if shape.tags_are_text else self._keys(F.col("tags"))
        summed = (
            shape.surveyed()
            .groupBy(*by, keys.alias("keys"))
            .agg(
                F.count(F.lit(1)).alias("rows"),
                F.count_if("x_bad").alias("bad_rows"),
                (F.count_if("x_net") if shape.has_net else F.lit(0).cast("bigint")).alias("net_rows"),
                F.min("day").alias("first_day"),
                F.max("day").alias("last_day"),
                *[F.sum(name).alias(name) for name in sums],
            )
        )
        if not shape.tags_are_text:
            return summed.withColumn("tag_sets", F.lit(0))
        tags = summed.withColumn("tags", tagtexts.parsed(F.col("keys")))
        unread = F.when(F.col("keys").isNotNull() & F.col("tags").isNull(), F.col("rows")).otherwise(0)
        return tags.groupBy(*by, self._keys(F.col("tags")).alias("keys")).agg(
            F.sum("rows").alias("rows"),
            F.sum(F.col("bad_rows") + unread).alias("bad_rows"),
            F.sum("net_rows").alias("net_rows"),
            F.min("first_day").alias("first_day"),
            F.max("last_day").alias("last_day"),
            *[F.sum(name).alias(name) for name in sums],
            F.count(F.lit(1)).alias("tag_sets"),
        )

    def _kept(self, tags: Column) -> Column:
        """The tags whose keys the source keeps; all of them where it names none."""
        if self.shape.declared.keep_tag_keys is None:
            return tags
        keep = list(self.shape.declared.keep_tag_keys)
        return F.map_filter(tags, lambda key, _value: key.isin(keep))

    def _keys(self, tags: Column) -> Column:
        return F.coalesce(F.array_join(F.map_keys(self._kept(tags)), KEY_SEPARATOR), F.lit(""))

    def _refuse_first_bad(self) -> NoReturn:
        first = self.shape.unreadable().orderBy("x_part", "x_row").first()
        assert first is not None
        part = self.parts[first["x_part"] - 1]
        if first["column"] == parts.CORRUPT:
            raise BillRefused(
                f"{part.name}, row {first['x_row']} does not have the {len(self.columns)} fields of the header: "
                f"{_shown(first['value'])}; {WAY_OUT}"
            )
        of = self.shape.bill_format
        is_time = first["column"] in (*of.starts, *of.ends) and first["value"] is not None
        raise BillRefused(
            f"{part.name}, row {first['x_row']}: {first['column']} is {_shown(first['value'])}, which cannot be "
            "read; have the provider correct it and deliver it again"
            + (", or declare its form (dates in policy/sources.yaml, --dates for inspect)" if is_time else "")
        )

    def _refuse_failed(self, error: Exception) -> NoReturn:
        if any(overflow in str(error) for overflow in OVERFLOWS):
            raise BillRefused(
                f"{_names(self.parts)}: an amount or a total does not fit DECIMAL(38,18), which holds less "
                "than 1e20; have the provider correct it and deliver it again"
            ) from error
        parts.refuse_damaged(self.parts, error)


def open_bill(spark: SparkSession, given: Sequence[Part], declared: Declared) -> Bill:
    """The bill in these files. BillRefused where a file is damaged, unlike the others or of no known format."""
    if not given:
        raise BillRefused("the delivery lists no file")
    found = headers(given)
    header = common(found)
    name = given[0].name
    bill_format, version = recognise(header.names, name, declared)
    _require_readable(name, header, bill_format, declared)
    wanted = parts.places(header, bill_format.reads)
    frames = [
        parts.frame(spark, part, number, own, wanted)
        for number, (part, own) in enumerate(zip(given, found, strict=True), start=1)
    ]
    fields = Fields(wanted, declared.dates)
    shape = Shape(_union(frames), fields, bill_format, declared, header.is_text)
    return Bill(version, header.named, tuple(given), shape)


def _require_readable(name: str, header: Header, bill_format: BillFormat, declared: Declared) -> None:
    """Refuses what the header alone tells: no currency, one column twice, money of a type that holds none."""
    if bill_format.currency not in header.names and declared.currency is None:
        raise BillRefused(
            f"{name} has no column {bill_format.currency} and its source declares no currency; "
            "declare one (currency in policy/sources.yaml, --currency for inspect)"
        )
    twice = sorted(header.repeated() & set(bill_format.reads))
    if twice:
        raise BillRefused(f"{name} has the column {twice[0]} twice; which one counts cannot be told")
    fields = Fields(parts.places(header, bill_format.reads), declared.dates)
    kinds = dict(header.named)
    for column in (*bill_format.costs_read, *bill_format.quantities_read):
        lost = column in header.names and column not in fields and kinds[column] != "null"
        if lost or not fields.is_number(column):
            raise BillRefused(
                f"{name}: {column} is of the type {kinds[column]}, which holds no exact amount; "
                "it can be text, a decimal, a whole number or a double"
            )


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    """All rows of all files. In halves: a chain of unions would be analysed anew at each link."""
    if len(frames) == 1:
        return frames[0]
    half = len(frames) // 2
    return _union(frames[:half]).union(_union(frames[half:]))


def _names(given: Sequence[Part]) -> str:
    return given[0].name if len(given) == 1 else f"{given[0].name} and {len(given) - 1} more"


def _shown(value: str | None) -> str:
    return "nothing" if value is None else f"'{value[:200]}{'…' if len(value) > 200 else ''}'"


__all__ = ["Bill", "PeriodSurvey", "Survey", "Total", "open_bill"]
