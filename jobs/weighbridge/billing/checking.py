"""A delivery's suites, run by Great Expectations on what is staged: one result per expectation."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyspark.sql.functions as F

from weighbridge.billing.ledger import LedgerRow
from weighbridge.errors import BillRefused
from weighbridge.quality import (
    COUNTED_NULLS,
    CRITICAL,
    WATCHED,
    Expectation,
    Expected,
    History,
    charges_profile_suite,
    daily_costs_suite,
)
from weighbridge.tables import MEASURES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Check:
    """One expectation and what came of it. `expected` and `observed` are JSON."""

    suite: str
    check_name: str
    column_name: str | None
    severity: str
    success: bool
    says: str
    expected: str
    observed: str

    @property
    def line(self) -> str:
        """The check as one line for a person."""
        where = f" ({self.column_name})" if self.column_name else ""
        return f"{self.says}{where}: found {self.observed}, expected {self.expected}"


class Unfit(BillRefused):
    """A delivery that failed a critical check; `checks` has the result of every one."""

    def __init__(self, what: str, period: str, checks: Sequence[Check]) -> None:
        """Names what failed, with what was found."""
        self.period = period
        self.checks = tuple(checks)
        failed = "; ".join(check.line for check in checks if not check.success and check.severity == CRITICAL)
        super().__init__(
            f"{what}: {failed}. Nothing of it was published, what was served stays; "
            "have the provider deliver it again, or 'weighbridge dismiss' it"
        )


def profile_of(charges: DataFrame) -> DataFrame:
    """Charges counted and summed in one pass. One row per file of the delivery and currency.

    `rows`, `attributed_rows`, `null_…` per column that must have a value, and the exact sum of each cost.
    """
    return charges.groupBy("x_part", "billing_currency").agg(
        F.count(F.lit(1)).alias("rows"),
        F.sum(F.when(F.col("x_attribution_state") != "missing", 1).otherwise(0)).alias("attributed_rows"),
        *[F.sum(F.col(name).isNull().cast("bigint")).alias(f"null_{name}") for name in COUNTED_NULLS],
        *[F.sum(measure).alias(measure) for measure in MEASURES],
    )


def history_of(daily_costs: DataFrame) -> dict[str, History]:
    """What each source has published so far, by its name; one pass over daily_costs."""
    rows = daily_costs.groupBy("source", "billing_period").agg(
        F.sum("charge_rows").alias("rows"),
        F.sum(F.when(F.col("attribution_state") != "missing", F.col("charge_rows")).otherwise(0)).alias(
            "owned"
        ),
        *[F.collect_set(column).alias(column) for column in WATCHED],
    )
    found: dict[str, History] = {}
    for row in rows.collect():
        before = found.get(row["source"], History())
        period = row["billing_period"]
        found[row["source"]] = History(
            {**before.seen, period: {column: frozenset(row[column]) for column in WATCHED}},
            {**before.attributed_per_10000, period: 10_000 * row["owned"] // row["rows"]},
        )
    return found


def check_delivery(
    profile: Sequence[Mapping[str, Any]], daily_costs: DataFrame, expected: Expected
) -> tuple[Check, ...]:
    """Every check of a delivery: on the rows of its profile, and on its staged daily_costs."""
    import pandas as pd

    frame = pd.DataFrame(profile, columns=list(profile[0])) if profile else pd.DataFrame()
    return (
        *run_suite("charges_profile", frame, charges_profile_suite(expected)),
        *run_suite("daily_costs", daily_costs, daily_costs_suite(expected)),
    )


def failed(checks: Iterable[Check], severity: str) -> list[Check]:
    """The checks of a severity that did not hold."""
    return [check for check in checks if not check.success and check.severity == severity]


def check_rows(run: str, row: LedgerRow, checks: Iterable[Check], at: datetime) -> list[tuple[Any, ...]]:
    """The rows of `check_results`, one a check, in that table's order of columns."""
    return [
        (
            run,
            row.delivery,
            row.source,
            row.billing_period,
            check.suite,
            check.check_name,
            check.column_name,
            check.severity,
            check.success,
            check.says,
            check.expected,
            check.observed,
            at,
        )
        for check in checks
    ]


def run_suite(suite: str, frame: Any, expectations: Sequence[Expectation]) -> list[Check]:
    """The results of one suite on a pandas or Spark DataFrame, in the suite's order."""
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    import great_expectations as gx

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    held = context.suites.add(gx.ExpectationSuite(name=suite, expectations=[dict(e) for e in expectations]))
    is_pandas = type(frame).__module__.startswith("pandas")
    sources = context.data_sources
    source = sources.add_pandas(suite) if is_pandas else sources.add_spark(suite, persist=False)
    batch = source.add_dataframe_asset(suite).add_batch_definition_whole_dataframe("whole")
    found = batch.get_batch({"dataframe": frame}).validate(held, result_format="SUMMARY")
    results = {_name(r.expectation_config.type, r.expectation_config.kwargs): r for r in found.results}
    return [_check(suite, e, results[_name(e["type"], e["kwargs"])]) for e in expectations]


def _name(kind: str, kwargs: Mapping[str, Any]) -> tuple[str, str | None]:
    return kind, kwargs.get("column")


def _check(suite: str, expectation: Expectation, result: Any) -> Check:
    kwargs = dict(expectation["kwargs"])
    column = kwargs.pop("column")
    problem = result.exception_info
    if problem and not ("raised_exception" in problem and not problem["raised_exception"]):
        raise RuntimeError(f"{expectation['type']} on {column} could not be evaluated: {problem}")
    return Check(
        suite=suite,
        check_name=expectation["type"],
        column_name=column,
        severity=expectation["severity"],
        success=bool(result.success),
        says=expectation["meta"]["says"],
        expected=_json(_shortened(kwargs)),
        observed=_json(_observed(result.result)),
    )


def _shortened(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked; of a long list of values only how many they are."""
    values = kwargs.get("value_set", ())
    return {**kwargs, "value_set": f"{len(values)} values"} if len(values) > 20 else dict(kwargs)


def _observed(result: Mapping[str, Any]) -> dict[str, Any]:
    """What was found: one value, or how many rows differ and some of their values."""
    if "observed_value" in result:
        return {"value": result["observed_value"]}
    found = {"rows": result.get("element_count"), "unexpected_rows": result.get("unexpected_count")}
    values = list(dict.fromkeys(str(value) for value in result.get("partial_unexpected_list") or ()))
    return {**found, "values": values} if values else found


def _json(value: Mapping[str, Any]) -> str:
    def plain(one: Any) -> Any:
        # numpy's and Spark's numbers of rows; nothing here is money.
        return int(one) if hasattr(one, "__int__") else str(one)

    whole = {k: int(v) if isinstance(v, float) and v.is_integer() else v for k, v in value.items()}
    return json.dumps(whole, default=plain, ensure_ascii=False)
