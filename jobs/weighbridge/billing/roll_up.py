"""Charges summed to days: the table that every mart is made of."""

from __future__ import annotations

import pyspark.sql.functions as F
from pyspark.sql import DataFrame

from weighbridge.tables import DAILY_COSTS, MEASURES

# Column of daily_costs -> column of charges it is taken from, where the names differ.
TAKEN_FROM = {
    "source": "x_source",
    "billing_period": "x_billing_period",
    "business_line": "x_business_line",
    "model_version": "x_model_version",
    "environment": "x_environment",
    "tenant": "x_tenant",
    "attribution_state": "x_attribution_state",
    "unattributed_reason": "x_unattributed_reason",
    "delivery": "x_delivery",
    "policy_digest": "x_policy_digest",
}


def roll_up_by_day(charges: DataFrame) -> DataFrame:
    """Charges of one delivery, or several, as daily_costs. One row per key of that table; sums only.

    A charge stands on the day its charge period starts. A sum of nothing but nulls stays null.
    """
    dimensions = [
        F.col("charge_period_start").cast("date").alias(name)
        if name == "usage_day"
        else F.col(TAKEN_FROM.get(name, name)).alias(name)
        for name in (*DAILY_COSTS.key, "delivery", "policy_digest")
    ]
    sums = [F.sum(measure).alias(measure) for measure in (*MEASURES, "consumed_quantity")]
    summed = charges.groupBy(*dimensions).agg(*sums, F.count(F.lit(1)).alias("charge_rows"))
    return summed.select(*[F.col(c.name).cast(c.type).alias(c.name) for c in DAILY_COSTS.columns])
