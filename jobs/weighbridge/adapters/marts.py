"""The marts, built by dbt in this process and its one Spark session; their versions, and the way back."""

from __future__ import annotations

import contextlib
import json
import re
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weighbridge.errors import LeaseLost, Refused, WeighbridgeError
from weighbridge.tables import DAILY_COSTS, DELIVERIES, MARTS, TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DATABASE = "weighbridge"
SOURCE = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
PERIOD = re.compile(r"\d{4}-\d{2}")

# Every commit of the build carries the run's metadata; the mart's own txnAppId is set by its materialization.
METADATA_CONF = "spark.databricks.delta.commitInfo.userMetadata"
ADAPTIVE_CONF = "spark.sql.adaptive.enabled"
TXN_CONFS = ("spark.databricks.delta.write.txnAppId", "spark.databricks.delta.write.txnVersion")


@dataclass(frozen=True)
class MartsResult:
    """What a build came to. `failures` has a line for each model or test that failed, with the first rows."""

    ok: bool
    failures: list[str]
    seconds: float


def build_marts(
    spark: SparkSession,
    lake_root: str,
    project: Path,
    periods: Sequence[tuple[str, str]] | None,
    metadata: str,
    lease: int | None = None,
) -> MartsResult:
    """Builds and tests every mart for these (source, billing period) pairs, or for all where None.

    Each mart becomes one commit with `metadata`; one lease serves one build. No pair at all builds nothing.
    A model or test that fails is in the result; what is not a source's name or a month is Refused; LeaseLost
    where a newer lease has built; what dbt itself cannot do is an error.
    """
    started = time.monotonic()
    if periods is not None and not periods:
        return MartsResult(True, [], 0.0)
    register(spark, lake_root)
    variables = {"lake": spark_place(lake_root), "periods": checked(periods), "lease": lease}
    with _conf(spark, metadata):
        # A night does not prove the models' logic again: their unit tests run with the project's own tests.
        results = run_dbt(project, ["build", "--exclude-resource-type", "unit_test"], variables)
        failures = [
            _failure(spark, result)
            for result in results
            if str(result.status) in ("error", "fail", "runtime error")
        ]
    if lease is not None:
        _refuse_stale_writer(spark, lake_root, lease)
    return MartsResult(not failures, failures, time.monotonic() - started)


def refresh_marts(
    spark: SparkSession,
    lake_root: str,
    project: Path,
    periods: Sequence[tuple[str, str]] | None,
    metadata: str,
    lease: int | None = None,
) -> MartsResult:
    """`build_marts`; where anything fails, every mart is brought back to its version before.

    Not where a newer writer has built: its marts stay as they are.
    """
    if periods is not None and not periods:
        return MartsResult(True, [], 0.0)
    before = mart_versions(spark, lake_root)
    try:
        result = build_marts(spark, lake_root, project, periods, metadata, lease)
    except LeaseLost:
        raise
    except Exception:
        restore_marts(spark, lake_root, before, metadata)
        raise
    if not result.ok:
        restore_marts(spark, lake_root, before, metadata)
    return result


def periods_of(
    spark: SparkSession, lake_root: str, source: str | None, period: str | None
) -> list[tuple[str, str]] | None:
    """The pairs of (source, billing period) with costs or in a mart that match; None where all are meant.

    Refused where nothing matches. A mart counts too: a period without costs has to leave it.
    """
    from delta.tables import DeltaTable

    if source is None and period is None:
        return None
    checked([(source or "any", period or "2000-01")])
    found: set[tuple[str, str]] = set()
    for name in (DAILY_COSTS.name, MARTS[0]):
        place = f"{spark_place(lake_root)}/{name}"
        if DeltaTable.isDeltaTable(spark, place):
            pairs = spark.read.format("delta").load(place).select("source", "billing_period").distinct()
            found |= {(row["source"], row["billing_period"]) for row in pairs.collect()}
    matching = sorted(pair for pair in found if source in (None, pair[0]) and period in (None, pair[1]))
    if not matching:
        known = ", ".join(f"{one} {month}" for one, month in sorted(found)) or "nothing"
        raise Refused(f"no costs of source {source or 'any'}, period {period or 'any'}; there is {known}")
    return matching


def highest_lease(spark: SparkSession, lake_root: str) -> int:
    """The highest lease counter in the ledger, 0 where there is none."""
    from delta.tables import DeltaTable

    place = f"{spark_place(lake_root)}/{DELIVERIES.name}"
    if not DeltaTable.isDeltaTable(spark, place):
        return 0
    row = spark.read.format("delta").load(place).selectExpr("coalesce(max(lease), 0) as lease").first()
    return int(row["lease"]) if row else 0


def mart_versions(spark: SparkSession, lake_root: str) -> dict[str, int | None]:
    """The newest version of every mart; None where it does not exist yet."""
    from delta.tables import DeltaTable

    versions: dict[str, int | None] = {}
    for mart in MARTS:
        place = f"{spark_place(lake_root)}/{mart}"
        exists = DeltaTable.isDeltaTable(spark, place)
        newest = DeltaTable.forPath(spark, place).history(1).select("version").first() if exists else None
        versions[mart] = None if newest is None else int(newest["version"])
    return versions


def restore_marts(
    spark: SparkSession, lake_root: str, versions: Mapping[str, int | None], metadata: str = ""
) -> None:
    """Brings every mart back to these versions, each by one commit; one that did not exist is removed.

    Removed, not emptied: the next build then makes it for all periods, not only for those with news.
    """
    from delta.tables import DeltaTable

    now = mart_versions(spark, lake_root)
    with _conf(spark, metadata):
        for mart in MARTS:
            before = versions.get(mart)
            if now[mart] == before:
                continue
            if before is None:
                _remove(spark, lake_root, mart)
            else:
                DeltaTable.forPath(spark, f"{spark_place(lake_root)}/{mart}").restoreToVersion(before)


def register(spark: SparkSession, lake_root: str) -> None:
    """Makes the tables and marts that lie in the lake known to the session under their names."""
    from delta.tables import DeltaTable

    spark.sql(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
    for name in [table.name for table in TABLES] + list(MARTS):
        place = f"{spark_place(lake_root)}/{name}"
        known = f"{DATABASE}.{name}"
        if not spark.catalog.tableExists(known) and DeltaTable.isDeltaTable(spark, place):
            spark.catalog.createTable(known, path=place, source="delta")


def spark_place(lake_root: str) -> str:
    """The lake's root as Spark names it: `s3a://` for `s3://`, no slash at the end."""
    return re.sub(r"^s3://", "s3a://", lake_root).rstrip("/")


def checked(periods: Sequence[tuple[str, str]] | None) -> list[list[str]] | None:
    """The pairs as dbt's variable, each once; anything but a source's name and a month is Refused."""
    if periods is None:
        return None
    for source, period in periods:
        if not SOURCE.fullmatch(source):
            raise Refused(
                f"'{source}' is not the name of a source: small letters, digits, '-' and '_', 64 at most"
            )
        if not PERIOD.fullmatch(period):
            raise Refused(f"'{period}' is not a billing period: write it as 2026-10")
    return [list(pair) for pair in sorted(set(periods))]


def document_marts(spark: SparkSession, lake_root: str, project: Path, folder: Path) -> Path:
    """Where the page about every mart, its columns and tests is, written under `folder` with its data."""
    register(spark, lake_root)
    run_dbt(project, ["docs", "generate", "--static"], {"lake": spark_place(lake_root)}, folder)
    return folder / "static_index.html"


def run_dbt(
    project: Path, command: Sequence[str], variables: Mapping[str, Any], target: Path | None = None
) -> list[Any]:
    """Runs one dbt command on the project in this process; its results, one a node. Prints nothing.

    What dbt writes goes to `target`, or else to a folder that is gone afterwards; its log always does.
    An error of dbt's own is raised with its words.
    """
    from dbt.cli.main import dbtRunner

    with tempfile.TemporaryDirectory(prefix="weighbridge-dbt-") as folder:
        flags = ["--quiet", "--log-level", "none", "--log-level-file", "info", "--log-path", folder]
        flags += [
            "--no-send-anonymous-usage-stats",
            "--no-version-check",
            "--no-partial-parse",
            "--no-use-colors",
        ]
        places = ["--project-dir", str(project), "--profiles-dir", str(project / "infra" / "dbt")]
        places += ["--target-path", str(target or f"{folder}/target"), "--vars", json.dumps(variables)]
        outcome = dbtRunner().invoke([*flags, *command, *places])
    if outcome.exception is not None:
        raise WeighbridgeError(f"dbt {command[0]}: {outcome.exception}")
    return list(getattr(outcome.result, "results", None) or [])


def _failure(spark: SparkSession, result: Any) -> str:
    """One failed model or test in words; for a test also the first rows that it found."""
    said = re.sub(r"\s+", " ", str(result.message or result.status)).strip()[:500]
    text = f"{result.node.resource_type} {result.node.name}: {said}"
    if str(result.status) == "fail" and result.node.compiled_code:
        found = spark.sql(result.node.compiled_code).limit(3).collect()
        rows = [
            "{" + ", ".join(f"{key}: {value}" for key, value in row.asDict().items()) + "}" for row in found
        ]
        text += "; " + "; ".join(rows)
    return text


def _remove(spark: SparkSession, lake_root: str, mart: str) -> None:
    spark.sql(f"DROP TABLE IF EXISTS {DATABASE}.{mart}")
    jvm: Any = spark._jvm
    place = jvm.org.apache.hadoop.fs.Path(f"{spark_place(lake_root)}/{mart}")
    place.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()).delete(place, True)


def _refuse_stale_writer(spark: SparkSession, lake_root: str, lease: int) -> None:
    """Raises LeaseLost where a mart knows a newer lease: Delta dropped our commit without a word."""
    jvm: Any = spark._jvm
    for mart in MARTS:
        log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(
            spark._jsparkSession, f"{spark_place(lake_root)}/{mart}"
        )
        writers = log.unsafeVolatileSnapshot().transactions()
        if writers.contains(mart) and writers.apply(mart) > lease:
            raise LeaseLost(f"{mart}: a newer writer (lease {writers.apply(mart)}) came before lease {lease}")


@contextlib.contextmanager
def _conf(spark: SparkSession, metadata: str) -> Iterator[None]:
    """Within, every commit of this session carries `metadata`; afterwards the session is as it was.

    On one machine dbt's many small queries also go without adaptive execution, which re-plans each of their
    stages: it took a third of a build's CPU-seconds. On a cluster it stays, to join small partitions.
    """
    wanted = {METADATA_CONF: metadata} if metadata else {}
    if str(spark.sparkContext.master).startswith("local"):
        wanted[ADAPTIVE_CONF] = "false"
    before = {conf: spark.conf.get(conf, None) for conf in (METADATA_CONF, ADAPTIVE_CONF, *TXN_CONFS)}
    try:
        for conf, value in wanted.items():
            spark.conf.set(conf, value)
        yield
    finally:
        for conf, earlier in before.items():
            spark.conf.unset(conf) if earlier is None else spark.conf.set(conf, earlier)
