"""The tables do not depend on how Spark is told to work: Comet or not, and into how many parts it cuts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from night_lake import NightLake, Watched
from weighbridge.billing.night import run_night
from weighbridge.billing.samples.delivery import write
from weighbridge.billing.samples.order import Order
from weighbridge.tables import MARTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS = (1, 3, 7, 16)
BILLS = ("cur2", "focus")
TABLES = ("charges", "daily_costs", *MARTS)

# What names the source, or the place of a row in its files.
OWN = {"charges": ("x_source", "x_delivery", "x_part", "x_row"), "daily_costs": ("source", "delivery")}


@contextmanager
def told(spark: SparkSession, **conf: str) -> Iterator[None]:
    """Within, the session has these settings; `_` stands for a dot in their names."""
    names = {name.replace("__", "."): value for name, value in conf.items()}
    before = {name: spark.conf.get(name, None) for name in names}
    try:
        for name, value in names.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, earlier in before.items():
            spark.conf.unset(name) if earlier is None else spark.conf.set(name, earlier)


class Cutting(Watched):
    """Progress that has Spark shuffle each source's bill into as many partitions as it has files."""

    def __init__(self, spark: SparkSession, parts: dict[str, int]) -> None:
        super().__init__()
        self.spark, self.parts = spark, parts

    def phase(self, name: str, of: Sequence[str] = ()) -> None:
        """The bill that is read next decides."""
        if name == "read":
            parts = self.parts[of[0].split()[0]]
            self.spark.conf.set("spark.sql.shuffle.partitions", str(parts))


def sample(home: NightLake, source: str, bill: str, parts: int) -> None:
    """A realistic bill with commitments, discounts, tax, credits and untagged rows lands, in so many files."""
    files = "parquet" if bill == "cur2" else "csv"
    write(Order(bill, 300, "2026-10", 1, home.landing(source), parts, files=files))
    home.formats[source] = "cur-2.0" if bill == "cur2" else "focus"


def uses_comet(spark: SparkSession, landing: Path) -> bool:
    """True where the session reads a bill's Parquet by Comet."""
    file = next(landing.rglob("*.parquet"))
    return "Comet" in spark.read.parquet(str(file))._jdf.queryExecution().executedPlan().toString()


@pytest.fixture(scope="module")
def home(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> NightLake:
    """The same two bills, taken with Comet and without; the first of them also in 1, 3, 7 and 16 partitions."""
    by_parts = {f"cut-{parts}": parts for parts in PARTITIONS}
    made = NightLake(
        spark,
        tmp_path_factory.mktemp("same"),
        *[f"{bill}-{comet}" for bill in BILLS for comet in ("on", "off")],
        *by_parts,
    )
    for comet, switch in (("on", "true"), ("off", "false")):
        for bill in BILLS:
            sample(made, f"{bill}-{comet}", bill, 2)
        with told(spark, spark__comet__enabled=switch):
            assert uses_comet(spark, made.landing(f"cur2-{comet}")) == (comet == "on")
            record = run_night(made.night(comet, build_marts=made.marts()))
        assert record.outcome == "published", record.refused
    for source, parts in by_parts.items():
        sample(made, source, "cur2", parts)
    with told(spark, spark__sql__shuffle__partitions="1", spark__sql__adaptive__enabled="false"):
        record = run_night(made.night("cut", progress=Cutting(spark, by_parts)))
    assert record.outcome == "published", record.refused
    return made


@pytest.mark.parametrize("bill", BILLS)
@pytest.mark.parametrize("table", TABLES)
def test_every_table_is_the_same_with_comet_and_without(home: NightLake, table: str, bill: str) -> None:
    own = OWN.get(table, ("source",))
    with_comet = home.dump(table, f"{bill}-on", without=own)
    assert with_comet
    assert home.dump(table, f"{bill}-off", without=own) == with_comet


@pytest.mark.parametrize("table", ["charges", "daily_costs"])
@pytest.mark.parametrize("parts", PARTITIONS)
def test_any_number_of_partitions_gives_the_same_sorted_bytes(
    home: NightLake, table: str, parts: int
) -> None:
    expected = home.dump(table, "cur2-on", without=OWN[table])
    assert home.dump(table, f"cut-{parts}", without=OWN[table]) == expected


@pytest.mark.parametrize("parts", PARTITIONS)
def test_a_bill_was_really_read_and_written_in_so_many_partitions(home: NightLake, parts: int) -> None:
    files = list(Path(home.root, "charges", f"x_source=cut-{parts}").rglob("*.parquet"))
    assert len(files) == parts
    assert {row["x_part"] for row in home.rows("charges", f"cut-{parts}")} == set(range(1, parts + 1))
