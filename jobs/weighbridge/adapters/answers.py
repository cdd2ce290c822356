"""Answers to finance's questions from the lake: current, or as one night of the ledger left every table."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from weighbridge.adapters.marts import spark_place
from weighbridge.errors import Refused
from weighbridge.finance.as_of import Night, complete, night_for
from weighbridge.finance.export import Table
from weighbridge.finance.questions import Bound, Question
from weighbridge.tables import DELIVERIES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Delta's SQL parser drops the parameters that Spark 4.1 hands to a parser. Bound the older way, as literals
# in the parsed plan, they arrive.
BIND_ON_THE_PLAN = "spark.sql.legacy.parameterSubstitution.constantsOnly"


@dataclass(frozen=True)
class Answered:
    """The rows of an answer, and the night whose versions were read; None for the tables as they are now."""

    table: Table
    night: Night | None


def ask(
    spark: SparkSession,
    lake_root: str,
    question: Question,
    bound: Mapping[str, Bound],
    as_of: str | None = None,
) -> Answered:
    """A question's answer with its parameters bound, never formatted in. Reads only what the question names.

    Refused where a table does not exist yet, and where what `as_of` asks for is gone or never was.
    """
    nights = ledger_nights(spark, lake_root) if as_of else []
    night = night_for(as_of, nights) if as_of else None
    try:
        with _views(spark, lake_root, question.tables, night):
            return Answered(_collected(spark, question.sql, bound), night)
    except Refused:
        raise
    except Exception as error:
        # Spark has a dozen ways to miss a file or a log entry; whether something is gone is looked up.
        if night is not None and not _can_be_had(spark, lake_root, question.tables, night):
            raise _gone(spark, lake_root, question.tables, night, nights) from error
        raise


def ledger_nights(spark: SparkSession, lake_root: str) -> list[Night]:
    """Every row of the ledger with the versions that its night left behind, if it was completed."""
    place = _existing(spark, lake_root, DELIVERIES.name)
    rows = (
        spark.read.format("delta")
        .load(place)
        .selectExpr("delivery", "unix_micros(recorded_at) as at", "versions")
        .collect()
    )
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return [
        Night(row["delivery"], epoch + timedelta(microseconds=row["at"]), dict(row["versions"] or {}))
        for row in rows
    ]


def _existing(spark: SparkSession, lake_root: str, table: str) -> str:
    from delta.tables import DeltaTable

    place = f"{spark_place(lake_root)}/{table}"
    if not DeltaTable.isDeltaTable(spark, place):
        raise Refused(f"the lake at {lake_root} has no {table} yet: run 'weighbridge night' first")
    return place


@contextlib.contextmanager
def _views(spark: SparkSession, lake_root: str, tables: Sequence[str], night: Night | None) -> Iterator[None]:
    """Within, every table is known by its bare name, at the version that the night left or as it is now."""
    made: list[str] = []
    try:
        for table in tables:
            _at(spark, lake_root, table, night).createOrReplaceTempView(table)
            made.append(table)
        yield
    finally:
        for table in made:
            spark.catalog.dropTempView(table)


def _at(spark: SparkSession, lake_root: str, table: str, night: Night | None) -> DataFrame:
    reader = spark.read.format("delta")
    version = night.versions.get(table) if night else None
    # The ledger only grows: where a night did not note its version, today's tells the same deliveries.
    if night and version is None and table != DELIVERIES.name:
        raise Refused(f"{table} did not exist yet when delivery {night.delivery} was published ({night.day})")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    return reader.load(_existing(spark, lake_root, table))


def _collected(spark: SparkSession, sql: str, bound: Mapping[str, Bound]) -> Table:
    before = spark.conf.get(BIND_ON_THE_PLAN, None)
    spark.conf.set(BIND_ON_THE_PLAN, "true")
    try:
        answer = _with_times_as_text(spark.sql(sql, args=dict(bound)))
        return Table(tuple(answer.columns), tuple(tuple(row) for row in answer.collect()))
    finally:
        spark.conf.unset(BIND_ON_THE_PLAN) if before is None else spark.conf.set(BIND_ON_THE_PLAN, before)


def _with_times_as_text(answer: DataFrame) -> DataFrame:
    """Times as ISO 8601 in UTC, the session's zone: PySpark would turn them into the machine's zone."""
    import pyspark.sql.functions as F

    def shown(name: str, kind: str) -> Any:
        if kind != "timestamp":
            return F.col(f"`{name}`")
        return F.concat(F.translate(F.col(f"`{name}`").cast("string"), " ", "T"), F.lit("Z")).alias(name)

    return answer.select(*(shown(name, kind) for name, kind in answer.dtypes))


def _can_be_had(spark: SparkSession, lake_root: str, tables: Sequence[str], night: Night) -> bool:
    """Whether every file of these tables' versions is still there."""
    from pyspark.errors import PySparkException

    jvm: Any = spark._jvm
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    try:
        for table in tables:
            for file in _at(spark, lake_root, table, night).inputFiles():
                path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(file))
                if not path.getFileSystem(conf).exists(path):
                    return False
    except (PySparkException, Refused):
        return False
    return True


def _gone(
    spark: SparkSession, lake_root: str, tables: Sequence[str], night: Night, nights: Sequence[Night]
) -> Refused:
    """The refusal that names the oldest date to be had: what is newer is kept longer, so it is bisected."""
    newer = [one for one in complete(nights) if one.recorded_at > night.recorded_at]
    low, high = 0, len(newer)
    while low < high:
        middle = (low + high) // 2
        if _can_be_had(spark, lake_root, tables, newer[middle]):
            high = middle
        else:
            low = middle + 1
    asked = f"{', '.join(tables)} as of {night.day} (delivery {night.delivery})"
    if low == len(newer):
        return Refused(f"{asked} cannot be read any more, nor can any later date: ask without --as-of")
    return Refused(f"{asked} cannot be read any more; the oldest date to be had is {newer[low].day}")
