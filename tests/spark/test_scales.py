"""Spark cuts the scale of decimals without a word: what every step on the way of money really gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyspark.sql.functions as F
import pytest

from cost_lake import charge, daily_cost
from weighbridge.adapters.files import FolderStore
from weighbridge.billing import money
from weighbridge.billing.checking import profile_of
from weighbridge.billing.formats import Declared, Part
from weighbridge.billing.frames import few_rows
from weighbridge.billing.reading import Bill, open_bill
from weighbridge.billing.roll_up import roll_up_by_day
from weighbridge.billing.samples.delivery import write
from weighbridge.billing.samples.order import Order
from weighbridge.tables import AMOUNT, CHARGES, DAILY_COSTS, MEASURES, TABLES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def scales(frame: DataFrame) -> dict[str, str]:
    """The decimal columns of a frame, and every double, with their types."""
    return {name: kind for name, kind in frame.dtypes if kind.startswith(("decimal", "double", "float"))}


@pytest.fixture(scope="module", params=["cur2", "focus"])
def bill(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Bill:
    """A bill with double money; CUR with costs after discounts too."""
    folder = tmp_path_factory.mktemp(request.param)
    made = write(Order(request.param, 120, "2026-10", 1, folder, 1, net=request.param == "cur2"))
    store = FolderStore(str(folder))
    parts = [Part(part.path.relative_to(folder).as_posix(), store) for part in made.parts]
    return open_bill(spark, parts, Declared())


def test_lines_hold_amounts_of_the_declared_type_alone(bill: Bill) -> None:
    found = scales(bill.lines)
    assert set(MEASURES) < set(found)
    assert found == {column.name: AMOUNT for column in CHARGES.columns if column.name in found}


def test_what_a_survey_sums_is_stored_amounts_and_whole_residuals(bill: Bill) -> None:
    for frame in (bill.shape.surveyed(), bill._groups()):
        found = scales(frame)
        assert {kind for name, kind in found.items() if name.startswith("stored_")} == {AMOUNT}
        assert {kind for name, kind in found.items() if name.startswith("residual_")} == {money.RESIDUAL}
        assert all(name.startswith(("stored_", "residual_")) for name in found)


def test_days_and_what_is_checked_of_charges_keep_the_declared_type(spark: SparkSession) -> None:
    charges = few_rows(spark, [charge()], CHARGES.ddl)
    days = roll_up_by_day(charges)
    assert days.dtypes == [(column.name, column.type) for column in DAILY_COSTS.columns]
    assert set(scales(days).values()) == {AMOUNT}
    assert scales(profile_of(charges)) == dict.fromkeys(MEASURES, AMOUNT)
    days = few_rows(spark, [daily_cost()], DAILY_COSTS.ddl)
    sums = days.groupBy("billing_currency").agg(*[F.sum(measure).alias(measure) for measure in MEASURES])
    assert scales(sums) == dict.fromkeys(MEASURES, AMOUNT)


def test_sums_and_differences_of_two_amounts_keep_every_decimal(spark: SparkSession) -> None:
    for kind in (money.STORED_KIND, money.RESIDUAL_KIND):
        one = F.lit(1).cast(kind.type)
        both = spark.range(1).select(kind.plus(one, one).alias("sum"), kind.minus(one, one).alias("rest"))
        assert scales(both) == {"sum": kind.type, "rest": kind.type}
    assert scales(spark.range(1).select(money.of_units(F.lit(1.0)).alias("units"))) == {"units": AMOUNT}
    assert scales(spark.range(1).select(money.stored(F.lit("1")).alias("stored"))) == {"stored": AMOUNT}


def test_no_table_declares_money_of_another_type() -> None:
    costs = {column.type for table in TABLES for column in table.columns if column.name in MEASURES}
    assert costs == {AMOUNT}
    assert not [c.name for table in TABLES for c in table.columns if c.type in ("double", "float")]
