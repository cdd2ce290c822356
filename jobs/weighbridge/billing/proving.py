"""One delivery, read, attributed, written beside what is served, and proven there; nothing is published here."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

import pyspark.sql.functions as F

from weighbridge.billing.attribute import (
    attribute_lines,
    attribute_sets,
    attribution_sets,
    keys_by_dimension,
    segment_starts,
    with_attribution_keys,
)
from weighbridge.billing.checking import Check, Unfit, check_delivery, failed, profile_of
from weighbridge.billing.deliveries import Delivery, check_parts, check_unchanged
from weighbridge.billing.formats import Declared, Part
from weighbridge.billing.lake import Lake, StagedFile
from weighbridge.billing.ledger import PUBLISHED, REFUSED, LedgerRow, PartRow, TotalRow
from weighbridge.billing.reading import PeriodSurvey, Survey, open_bill
from weighbridge.billing.reconcile import Totals, add, plain, require_equal, totals_in, totals_of
from weighbridge.billing.roll_up import roll_up_by_day
from weighbridge.errors import BillRefused
from weighbridge.policies import Policy, Source
from weighbridge.ports import FileStore, Progress
from weighbridge.quality import CRITICAL, Expected, History
from weighbridge.tables import CHARGES, DAILY_COSTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STAGING = "_weighbridge/staging"


@dataclass(frozen=True)
class Proven:
    """A (source, period) that may be published: its charges are written, its days are summed, both agree."""

    row: LedgerRow
    files: tuple[StagedFile, ...]
    daily: DataFrame
    kind: str = "delivery"
    checks: tuple[Check, ...] = ()

    @property
    def place(self) -> tuple[str, str]:
        """The (source, billing period) it replaces."""
        return self.row.source, self.row.billing_period or ""


@dataclass(frozen=True)
class Attempt:
    """What proving works with: the lake, the policy, what the source published before, a name for its folders."""

    lake: Lake
    policy: Policy
    history: History
    name: str
    progress: Progress


def prove_delivery(attempt: Attempt, delivery: Delivery, landing: FileStore, source: Source) -> Proven:
    """A delivery that is whole, readable, equal in every layer and fit; BillRefused or TotalsDiffer otherwise."""
    lake, policy = attempt.lake, attempt.policy
    what = f"{delivery.source} {delivery.period or ''} {delivery.id}".replace("  ", " ")
    attempt.progress.phase("read", (what,))
    files = check_parts(landing, delivery)
    if not delivery.parts:
        return _prove_nothing(lake, delivery, policy)
    parts = [Part(key=part.key, store=landing, rows=part.rows) for part in delivery.parts]
    declared = Declared(source.currency, source.dates, source.format, source.keep_tag_keys)
    bill = open_bill(lake.spark, parts, declared)
    survey = bill.survey()
    period = the_period(delivery, survey)
    found = survey.periods[period]
    _require_manifest_rows(delivery, survey)
    row = dataclasses.replace(
        delivery_row(delivery),
        billing_period=period,
        format=bill.format,
        parts=tuple(
            PartRow(f.key, f.bytes, survey.rows_by_part.get(number, 0), f.etag)
            for number, f in enumerate(files, start=1)
        ),
        rows=survey.rows,
        totals=_ledger_totals(found),
        columns_digest=_columns_digest(bill.columns),
        policy_digest=policy.digest,
        outcome=PUBLISHED,
    )
    lines = bill.lines.withColumn("provider_name", F.coalesce("provider_name", F.lit(source.provider)))
    proven = _write_and_prove(attempt, lines, found.tag_keys, (found.first_day, found.last_day), row)
    check_unchanged(landing, files, delivery)
    return proven


def prove_again(attempt: Attempt, row: LedgerRow) -> Proven:
    """What is published of one delivery, attributed by another policy; its totals cannot move."""
    from weighbridge.billing.attribute import ATTRIBUTION_COLUMNS, present_keys

    lake = attempt.lake
    charges = _published(lake, row).drop(*ATTRIBUTION_COLUMNS)
    lines = charges.drop("x_source", "x_delivery")
    days = charges.agg(
        F.min(F.col("charge_period_start").cast("date")).alias("first"),
        F.max(F.col("charge_period_start").cast("date")).alias("last"),
    ).first()
    again = dataclasses.replace(row, policy_digest=attempt.policy.digest)
    if days is None or days["first"] is None:
        return Proven(again, (), roll_up_by_day(_published(lake, row)), "reattribution")
    proven = _write_and_prove(attempt, lines, present_keys(lines), (days["first"], days["last"]), again)
    return dataclasses.replace(proven, kind="reattribution")


def prove_published(lake: Lake, row: LedgerRow) -> Proven:
    """The days of charges that a run published before it died."""
    daily = roll_up_by_day(_published(lake, row))
    delivered = {(t.currency, t.measure): t.stored for t in row.totals}
    require_equal(
        f"{row.source} {row.billing_period}", "the ledger", delivered, "daily_costs", totals_of(daily)
    )
    return Proven(row, (), daily, "finished")


def the_period(delivery: Delivery, survey: Survey) -> str:
    """The one billing period of a delivery; refused where its rows say several, or another than its manifest."""
    if len(survey.periods) != 1:
        raise BillRefused(
            f"{delivery.manifest} holds several billing periods ({', '.join(sorted(survey.periods))}); "
            "a delivery must hold one: have the provider export each month for itself"
        )
    (period,) = survey.periods
    if delivery.period is not None and delivery.period != period:
        raise BillRefused(
            f"{delivery.manifest} is delivered as {delivery.period}, but its rows belong to {period}; "
            "check the export's settings and have it delivered again"
        )
    return period


def _require_manifest_rows(delivery: Delivery, survey: Survey) -> None:
    for number, part in enumerate(delivery.parts, start=1):
        read = survey.rows_by_part.get(number, 0)
        if part.rows is not None and part.rows != read:
            raise BillRefused(
                f"{part.key} has {read} rows, but {delivery.manifest} says {part.rows}; "
                "it is not whole: have the provider deliver it again"
            )
    if delivery.rows is not None and delivery.rows != survey.rows:
        raise BillRefused(
            f"{delivery.manifest} says {delivery.rows} rows, but its files have {survey.rows}; "
            "it is not whole: have the provider deliver it again"
        )


def _ledger_totals(found: PeriodSurvey) -> tuple[TotalRow, ...]:
    return tuple(
        TotalRow(
            currency,
            measure,
            None if total is None else total.stored,
            None if total is None else plain(total.residual),
            None if total is None else plain(total.exact),
        )
        for currency, measures in sorted(found.totals.items())
        for measure, total in measures.items()
    )


def _columns_digest(columns: Sequence[tuple[str, str]]) -> str:
    return hashlib.sha256(json.dumps(columns).encode()).hexdigest()


def _write_and_prove(
    attempt: Attempt, lines: DataFrame, tag_keys: Iterable[str], days: tuple[date, date], row: LedgerRow
) -> Proven:
    lake, policy, progress = attempt.lake, attempt.policy, attempt.progress
    what = f"{row.source} {row.billing_period}"
    progress.phase("stage", (what,))
    folder = lake.staging_folder(row.source, row.billing_period or "", f"{row.delivery}-{attempt.name}")
    scratch = f"{STAGING}/{row.source}-{row.billing_period}-{row.delivery}-{attempt.name}"
    segments = segment_starts(policy.rules, *days)
    keyed = with_attribution_keys(lines, keys_by_dimension(tag_keys, policy), policy, segments)
    owners_path = lake.store.spark_path(f"{scratch}/owners")
    attribute_sets(attribution_sets(keyed), policy, segments).write.mode("overwrite").parquet(owners_path)
    owners = F.broadcast(lake.spark.read.parquet(owners_path))
    charges = attribute_lines(keyed, owners).withColumn("x_delivery", F.lit(row.delivery))
    inside = [name for name in CHARGES.column_names if name not in CHARGES.partition_by]
    charges.select(*inside).write.mode("overwrite").parquet(lake.store.spark_path(folder))

    progress.phase("prove", (what,))
    files = lake.staged_files(folder)
    written = sum(file.rows for file in files)
    if written != row.rows:
        raise BillRefused(f"{what}: {row.rows} rows were read but {written} written; nothing was published")
    staged = _staged(lake, row, files)
    daily_path = lake.store.spark_path(f"{scratch}/daily")
    roll_up_by_day(staged).coalesce(1).write.mode("overwrite").parquet(daily_path)
    daily = lake.spark.read.parquet(daily_path).select(*DAILY_COSTS.column_names)
    profile = [found.asDict() for found in profile_of(staged).collect()]
    _require_conserved(what, row, totals_in(profile), daily)

    progress.phase("check", (what,))
    expected = Expected(row.billing_period or "", row.rows or 0, row.delivered_at, attempt.history)
    checks = check_delivery(profile, daily, expected)
    if failed(checks, CRITICAL):
        raise Unfit(what, expected.period, checks)
    return Proven(row, tuple(files), daily, checks=checks)


def _require_conserved(what: str, row: LedgerRow, staged: Totals, daily: DataFrame) -> None:
    """Delivered = charges = attributed + unattributed = daily_costs, per currency and measure, exactly."""
    delivered: Totals = {(total.currency, total.measure): total.stored for total in row.totals}
    require_equal(what, "the delivery", delivered, "charges", staged)
    missing = F.col("attribution_state") == "missing"
    attributed, unattributed = totals_of(daily.where(~missing)), totals_of(daily.where(missing))
    require_equal(what, "the delivery", delivered, "attributed + unattributed", add(attributed, unattributed))
    require_equal(what, "the delivery", delivered, "daily_costs", totals_of(daily))
    counted = daily.agg(F.sum("charge_rows").alias("rows")).first()
    if counted is None or counted["rows"] != row.rows:
        raise BillRefused(
            f"{what}: {row.rows} rows were read, daily_costs counts {counted and counted['rows']}"
        )


def _staged(lake: Lake, row: LedgerRow, files: Sequence[StagedFile]) -> DataFrame:
    """The charges just written, as the table will show them."""
    paths = [lake.store.spark_path(f"{CHARGES.name}/{file.path}") for file in files]
    rows = lake.spark.read.option("recursiveFileLookup", "true").parquet(*paths)
    whole = rows.withColumn("x_source", F.lit(row.source)).withColumn(
        "x_billing_period", F.lit(row.billing_period)
    )
    return whole.select(*CHARGES.column_names)


def _published(lake: Lake, row: LedgerRow) -> DataFrame:
    return lake.read(CHARGES.name).where(
        (F.col("x_source") == row.source) & (F.col("x_billing_period") == row.billing_period)
    )


def _prove_nothing(lake: Lake, delivery: Delivery, policy: Policy) -> Proven:
    """A delivery without files: its period becomes empty."""
    if delivery.period is None:
        raise BillRefused(f"{delivery.manifest} lists no file and names no billing period")
    row = dataclasses.replace(
        delivery_row(delivery), parts=(), rows=0, policy_digest=policy.digest, outcome=PUBLISHED
    )
    nothing = lake.spark.createDataFrame([], DAILY_COSTS.ddl)
    return Proven(row, (), nothing)


def clear_scratch(lake: Lake) -> None:
    """Removes what proving wrote beside the tables, also that of a run that died; the caller holds the lease.

    Charges that were never published lie in their table's own folder and are VACUUM's.
    """
    for file in list(lake.store.list(STAGING + "/")):
        lake.store.delete(file.key)


def delivery_row(delivery: Delivery) -> LedgerRow:
    """What the ledger can say of a delivery before it is read; nothing has been decided of it yet."""
    return LedgerRow(
        delivery=delivery.id,
        source=delivery.source,
        billing_period=delivery.period,
        manifest=delivery.manifest,
        manifest_digest=delivery.manifest_digest,
        delivered_at=delivery.delivered_at,
        delivered_at_from=delivery.delivered_at_from,
        parts=tuple(PartRow(part.key, part.bytes or 0, part.rows, "") for part in delivery.parts),
        unlisted_files=delivery.unlisted,
    )


def refused_row(delivery: Delivery, reason: str, policy_digest: str | None) -> LedgerRow:
    """The ledger's row of a delivery that could not be taken."""
    row = delivery_row(delivery)
    return dataclasses.replace(row, outcome=REFUSED, reason=reason, policy_digest=policy_digest)
