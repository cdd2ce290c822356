"""A lake with hand-made daily costs for tests: plain rows, of which a test names only what it is about."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weighbridge.billing.frames import few_rows
from weighbridge.tables import CHARGES, DAILY_COSTS, DELIVERIES, TABLES, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UTC = datetime.UTC


def daily_cost(**columns: Any) -> dict[str, Any]:
    """One row of daily_costs: a dollar of Advertising's ranker-7 in eu-west-1, billed by `aws` in 2026-10."""
    plain = dict.fromkeys(DAILY_COSTS.column_names)
    plain |= {
        "source": "aws",
        "billing_period": "2026-10",
        "usage_day": datetime.date(2026, 10, 5),
        "business_line": "Advertising",
        "model_version": "ranker-7",
        "environment": "prod",
        "region_id": "eu-west-1",
        "provider_name": "AWS",
        "sub_account_id": "111111111111",
        "service_name": "Amazon SageMaker",
        "charge_category": "Usage",
        "charge_frequency": "Usage-Based",
        "billing_currency": "USD",
        "attribution_state": "declared",
        "billed_cost": Decimal(1),
        "effective_cost": Decimal(1),
        "charge_rows": 1,
        "delivery": "d1",
        "policy_digest": "p1",
    }
    return plain | columns


def unattributed(reason: str = "no_tag", **columns: Any) -> dict[str, Any]:
    """One row of daily_costs that nobody pays."""
    nobody = {"business_line": "unattributed", "model_version": None, "attribution_state": "missing"}
    return daily_cost(**nobody, unattributed_reason=reason) | columns


def charge(**columns: Any) -> dict[str, Any]:
    """One row of charges that matches `daily_cost()`."""
    plain = dict.fromkeys(CHARGES.column_names)
    start = datetime.datetime(2026, 10, 5, 13, tzinfo=UTC)
    plain |= {
        "x_source": "aws",
        "x_billing_period": "2026-10",
        "x_delivery": "d1",
        "x_part": 1,
        "x_row": 1,
        "provider_name": "AWS",
        "sub_account_id": "111111111111",
        "billing_period_start": datetime.datetime(2026, 10, 1, tzinfo=UTC),
        "charge_period_start": start,
        "charge_period_end": start + datetime.timedelta(hours=1),
        "billed_cost": Decimal(1),
        "effective_cost": Decimal(1),
        "billing_currency": "USD",
        "charge_category": "Usage",
        "service_name": "Amazon SageMaker",
        "region_id": "eu-west-1",
        "resource_id": "arn:aws:sagemaker:eu-west-1:111111111111:endpoint/ranker",
        "tags": {"business_unit": "ads"},
        "x_business_line": "Advertising",
        "x_model_version": "ranker-7",
        "x_environment": "prod",
        "x_attribution_state": "declared",
        "x_policy_digest": "p1",
    }
    return plain | columns


def delivery(**columns: Any) -> dict[str, Any]:
    """One published row of the ledger."""
    plain = dict.fromkeys(DELIVERIES.column_names)
    plain |= {
        "delivery": "d1",
        "source": "aws",
        "billing_period": "2026-10",
        "manifest_digest": "m1",
        "parts": [{"path": "part-1.csv.gz", "bytes": 100, "rows": 1, "etag": "e"}],
        "outcome": "published",
        "run": "r1",
        "recorded_at": datetime.datetime(2026, 11, 1, 3, tzinfo=UTC),
    }
    return plain | columns


class CostLake:
    """The tables of `tables.py` under a folder, empty at first, registered in a fresh database."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        from delta.tables import DeltaTable

        self.spark, self.root = spark, root
        # The tables are external: the catalog forgets them, the files of another test's lake stay.
        spark.sql("DROP DATABASE IF EXISTS weighbridge CASCADE")
        spark.sql("CREATE DATABASE weighbridge")
        for table in TABLES:
            builder = DeltaTable.createIfNotExists(spark).tableName(f"weighbridge.{table.name}")
            builder = builder.location(f"{root}/{table.name}").partitionedBy(*table.partition_by)
            for column in table.columns:
                builder = builder.addColumn(column.name, column.type, nullable=column.nullable)
            builder.execute()

    def replace(self, table: Table, rows: list[dict[str, Any]], where: str = "true") -> int:
        """Replaces the rows of a table where a condition holds; the version this made."""
        from delta.tables import DeltaTable

        place = f"{self.root}/{table.name}"
        frame = few_rows(self.spark, rows, table.ddl)
        frame.coalesce(1).write.format("delta").mode("overwrite").option("replaceWhere", where).save(place)
        newest = DeltaTable.forPath(self.spark, place).history(1).first()
        assert newest is not None
        return int(newest["version"])

    def costs(self, *rows: dict[str, Any], source: str = "aws", period: str = "2026-10") -> int:
        """Replaces (source, billing period) in daily_costs."""
        return self.replace(DAILY_COSTS, list(rows), f"source = '{source}' AND billing_period = '{period}'")

    def make_marts(self) -> None:
        """Makes every mart anew without its tests, which are test_marts.py's matter."""
        from weighbridge.adapters.marts import register, run_dbt

        register(self.spark, self.root)
        results = run_dbt(Path(__file__).parents[1], ["run"], {"lake": self.root})
        assert {str(result.status) for result in results} == {"success"}
