"""The roll-up in the product's Spark session, in a process of its own: CPU-seconds of each run, rows as Parquet."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, SparkSession
from watch import Session

from weighbridge.billing import money, tagtexts
from weighbridge.tables import AMOUNT
from weighbridge.wiring import Settings, build_session

NAMES = ("Billed", "Effective", "List")


def amounts(kind: str) -> list[Column]:
    """Exact sums of the three costs; doubles by way of their units of 1e-10, as the product reads them."""
    if kind == "decimal":
        return [F.sum(f"{name}Cost").alias(name.lower()) for name in NAMES]
    return [F.sum(money.whole_units(F.col(f"{name}Double"))).alias(name.lower()) for name in NAMES]


def roll_up(rows: DataFrame, tags: str, kind: str, two_steps: bool) -> DataFrame:
    """Month, business line, model version, region, category -> exact sums and rows, sorted.

    JSON in two steps: grouped by its text first, then each distinct text is parsed once.
    """
    month = F.date_format("BillingPeriodStart", "yyyy-MM").alias("month")
    keys = [F.col("RegionId").alias("region"), F.col("ChargeCategory").alias("category")]
    if tags == "map":
        by = [F.col("Tags")[name].alias(name) for name in ("business_line", "model_version")]
    elif two_steps:
        by = [F.col("TagsJson").alias("tags")]
    else:
        by = [
            F.get_json_object("TagsJson", f"$.{name}").alias(name)
            for name in ("business_line", "model_version")
        ]
    summed = rows.groupBy(month, *by, *keys).agg(*amounts(kind), F.count(F.lit(1)).alias("n"))
    if tags == "json" and two_steps:
        parsed = summed.withColumn("tags", tagtexts.parsed(F.col("tags")))
        named = [F.col("tags")[name].alias(name) for name in ("business_line", "model_version")]
        again = [F.sum(name.lower()).alias(name.lower()) for name in NAMES]
        summed = parsed.groupBy("month", *named, "region", "category").agg(*again, F.sum("n").alias("n"))
    if kind == "double":
        for name in NAMES:
            summed = summed.withColumn(name.lower(), _of_units(F.col(name.lower())))
    costs = [F.col(name.lower()).cast(AMOUNT).alias(name.lower()) for name in NAMES]
    return summed.select("month", "business_line", "model_version", "region", "category", *costs, "n")


def _of_units(units: Column) -> Column:
    return units.cast("decimal(20,0)") * F.lit("1E-10").cast("decimal(10,10)")


def run(spark: SparkSession, spec: dict[str, object], case: dict[str, str]) -> None:
    """One run of one case, written sorted as one file."""
    rows = spark.read.parquet(str(spec["place"]))
    two_steps = spec["engine"] == "comet"
    made = roll_up(rows, case["tags"], case["money"], two_steps)
    order = ["month", "business_line", "model_version", "region", "category"]
    made.coalesce(1).sortWithinPartitions(*order).write.mode("overwrite").parquet(case["to"])


def main() -> None:
    """`rollup_spark.py SPEC`: plain Spark takes each case in one step, Comet takes JSON in two."""
    spec = json.loads(sys.argv[1])
    comet = "on" if spec["engine"] == "comet" else "off"
    settings = Settings.from_environment({"WEIGHBRIDGE_COMET": comet, "WEIGHBRIDGE_SPARK_MASTER": "local[2]"})
    spark = build_session(settings)
    processes = Session(os.getsid(0))
    found: dict[str, list[float]] = {}
    for case in spec["cases"]:
        runs = found.setdefault(f"{case['tags']} {case['money']}", [])
        for _ in range(spec["runs"]):
            before, _resident = processes.sample()
            run(spark, spec, case)
            after, _resident = processes.sample()
            runs.append(after - before)
    spark.stop()
    Path(spec["found"]).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
