"""The lake: Delta tables at fixed places, their commits and versions; charges are published by pointer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from deltalake.transaction import AddAction

from weighbridge.adapters.files import local_copy
from weighbridge.billing.frames import few_rows
from weighbridge.billing.lake import Commit, StagedFile
from weighbridge.billing.ledger import LedgerRow
from weighbridge.errors import LakeTooNew, Unavailable
from weighbridge.ports import FileStore
from weighbridge.tables import CHARGES, CHECK_RESULTS, DELIVERIES, LAKE_FORMAT, MARTS, TABLES, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MARKER = "_weighbridge/lake.json"
DATABASE = "weighbridge"


class DeltaLake:
    """The tables of `tables.py` under one root, for one Spark session."""

    def __init__(self, spark: SparkSession, store: FileStore, storage_options: Mapping[str, str]) -> None:
        self.spark = spark
        self.store = store
        self._options = dict(storage_options)

    # -- opening ---------------------------------------------------------------------------------

    def open(self) -> None:
        """Makes what is missing and registers every table and mart. A newer lake is refused untouched."""
        marker = self.store.stat(MARKER)
        if marker is not None:
            found = int(json.loads(self.store.read(MARKER))["format"])
            if found > LAKE_FORMAT:
                raise LakeTooNew(
                    f"the lake at {self.store.root} has format {found}, this program knows up to {LAKE_FORMAT}; "
                    "upgrade weighbridge"
                )
        self.spark.sql(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
        for table in TABLES:
            self._register(table)
        for mart in MARTS:
            self.register_mart(mart)
        if marker is None:
            self.store.write(MARKER, json.dumps({"format": LAKE_FORMAT}).encode())

    def _register(self, table: Table) -> None:
        if self.version(table.name) is None:
            self._create(table)
        elif not self.spark.catalog.tableExists(f"{DATABASE}.{table.name}"):
            self.spark.catalog.createTable(
                f"{DATABASE}.{table.name}", path=self.path(table.name), source="delta"
            )

    def _create(self, table: Table) -> None:
        from delta.tables import DeltaTable as SparkDeltaTable

        builder = (
            SparkDeltaTable.createIfNotExists(self.spark)
            .tableName(f"{DATABASE}.{table.name}")
            .location(self.path(table.name))
            .comment(table.grain)
        )
        for column in table.columns:
            builder = builder.addColumn(
                column.name, column.type, nullable=column.nullable, comment=column.says
            )
        if table.partition_by:
            builder = builder.partitionedBy(*table.partition_by)
        for key, value in table_properties(table).items():
            builder = builder.property(key, value)
        builder.execute()

    def register_mart(self, mart: str) -> None:
        """Makes a mart that exists in the lake known to the session."""
        if self.version(mart) is not None and not self.spark.catalog.tableExists(f"{DATABASE}.{mart}"):
            self.spark.catalog.createTable(f"{DATABASE}.{mart}", path=self.path(mart), source="delta")

    # -- reading ---------------------------------------------------------------------------------

    def path(self, table: str) -> str:
        """Where a table is, as Spark names the place."""
        return self.store.spark_path(table)

    def read(self, table: str, version: int | None = None) -> DataFrame:
        """A table as it is now, or at a version."""
        reader = self.spark.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", version)
        return reader.load(self.path(table))

    def _delta(self, table: str) -> DeltaTable | None:
        uri = self.path(table).replace("s3a://", "s3://", 1)
        try:
            return DeltaTable(uri, storage_options=self._options or None)
        except TableNotFoundError:
            return None
        except OSError as error:
            raise Unavailable(f"{table} in {self.store.root} cannot be read: {error}") from error

    def version(self, table: str) -> int | None:
        """The table's newest version, or None where there is no such table yet."""
        found = self._delta(table)
        return None if found is None else int(found.version())

    def versions(self) -> dict[str, int]:
        """The newest version of every table and mart that exists."""
        names = [table.name for table in TABLES] + list(MARTS)
        return {name: found for name in names if (found := self.version(name)) is not None}

    def commits_after(self, table: str, version: int) -> list[Commit]:
        """Our commits of a table after a version, oldest first; commits without our metadata are left out."""
        found = self._delta(table)
        if found is None or found.version() <= version:
            return []
        commits = []
        for info in found.history(int(found.version()) - version):
            metadata = our_metadata(info)
            if metadata is not None and info["version"] > version:
                commits.append(Commit(table, int(info["version"]), metadata))
        return sorted(commits, key=lambda commit: commit.version)

    def ledger(self) -> list[LedgerRow]:
        """Every row of the ledger."""
        return [LedgerRow.from_columns(row) for row in self._rows(DELIVERIES)]

    def _rows(self, table: Table, where: list[tuple[str, str, Any]] | None = None) -> list[dict[str, Any]]:
        """Rows of a small table. A night asks for some several times: delta-rs answers at once, Spark in seconds."""
        found = self._delta(table.name)
        if found is None:
            raise Unavailable(f"the table {table.name} vanished from {self.store.root}")
        rows = found.to_pyarrow_table(columns=table.column_names, filters=where)
        return [dict(row) for row in rows.to_pylist()]

    # -- writing ---------------------------------------------------------------------------------

    def staging_folder(self, source: str, period: str, attempt: str) -> str:
        """Key of the folder in which one attempt writes the charges of (source, period), unpublished."""
        return f"{CHARGES.name}/x_source={source}/x_billing_period={period}/{attempt}"

    def staged_files(self, folder: str) -> list[StagedFile]:
        """The Parquet files that were written there, with the row counts of their footers."""
        import pyarrow.parquet as pq

        staged = []
        for file in self.store.list(folder + "/"):
            if not file.key.endswith(".parquet"):
                continue
            with local_copy(self.store, file.key) as copy:
                rows = pq.ParquetFile(copy).metadata.num_rows
            relative = file.key.removeprefix(CHARGES.name + "/")
            staged.append(StagedFile(relative, file.bytes, int(file.modified.timestamp() * 1000), rows))
        return staged

    def publish_charges(
        self, source: str, period: str, files: Sequence[StagedFile], metadata: Mapping[str, Any], lease: int
    ) -> int:
        """One metadata-only commit that swaps the files of (source, period); returns its version.

        An empty list empties the period. A writer whose lease counter is not newer than the last commit's
        changes nothing and is told so: delta-rs records `txn` but does not enforce it.
        """
        table = self._delta(CHARGES.name)
        if table is None:
            raise Unavailable(f"the table {CHARGES.name} vanished from {self.store.root}")
        app_id = transaction_id(CHARGES.name, source, period)
        last = table.transaction_version(app_id)
        if last is not None and last >= lease:
            raise Unavailable(
                f"{app_id}: a newer writer (lease {last}) has committed; this one holds {lease}"
            )
        values = {"x_source": source, "x_billing_period": period}
        adds = [
            AddAction(
                file.path, file.bytes, values, file.modified_ms, True, json.dumps({"numRecords": file.rows})
            )
            for file in files
        ]
        properties = CommitProperties(
            custom_metadata={"userMetadata": json.dumps(metadata, sort_keys=True)},
            app_transactions=[Transaction(app_id, lease)],
            max_commit_retries=0,
        )
        try:
            table.create_write_transaction(
                adds,
                "overwrite",
                table.schema(),
                list(CHARGES.partition_by),
                [(name, "=", value) for name, value in values.items()],
                commit_properties=properties,
            )
        except CommitFailedError as error:
            raise Unavailable(
                f"charges of {source} {period}: another writer committed first ({error})"
            ) from error
        return self._own_commit(CHARGES.name, metadata)

    def replace_period(
        self,
        table: Table,
        rows: DataFrame,
        source: str,
        period: str,
        metadata: Mapping[str, Any],
        lease: int,
    ) -> int:
        """Replaces the rows of (source, period) in one commit, also down to nothing; returns its version."""
        if rows.columns != table.column_names:
            raise ValueError(f"{table.name} has the columns {table.column_names}, not {rows.columns}")
        (
            rows.write.format("delta")
            .mode("overwrite")
            .option("replaceWhere", f"source = '{source}' AND billing_period = '{period}'")
            .option("userMetadata", json.dumps(metadata, sort_keys=True))
            .option("txnAppId", transaction_id(table.name, source, period))
            .option("txnVersion", str(lease))
            .save(self.path(table.name))
        )
        return self._own_commit(table.name, metadata)

    def record(self, rows: Sequence[LedgerRow], metadata: Mapping[str, Any], lease: int) -> int | None:
        """Writes ledger rows in one commit, each replacing the row of its delivery and period."""
        if not rows:
            return None
        keep = [
            old
            for old in self.ledger()
            if old.delivery in {row.delivery for row in rows}
            and (old.delivery, old.source, old.billing_period)
            not in {(row.delivery, row.source, row.billing_period) for row in rows}
        ]
        values = [tuple(row.to_columns().values()) for row in (*keep, *rows)]
        self._replace_deliveries(DELIVERIES, {row.delivery for row in rows}, values, metadata, lease)
        return self._own_commit(DELIVERIES.name, metadata)

    def record_checks(
        self,
        run: str,
        deliveries: Sequence[str],
        rows: Sequence[tuple[Any, ...]],
        metadata: Mapping[str, Any],
        lease: int,
    ) -> int:
        """Writes results of checks in one commit, in place of those of the same run and deliveries."""
        others = [("delivery", "in", list(deliveries)), ("run", "!=", run)]
        kept = [tuple(row.values()) for row in self._rows(CHECK_RESULTS, others)]
        self._replace_deliveries(CHECK_RESULTS, deliveries, [*kept, *rows], metadata, lease)
        return self._own_commit(CHECK_RESULTS.name, metadata)

    def _replace_deliveries(
        self,
        table: Table,
        deliveries: Iterable[str],
        rows: Sequence[tuple[Any, ...]],
        metadata: Mapping[str, Any],
        lease: int,
    ) -> None:
        columns = [dict(zip(table.column_names, row, strict=True)) for row in rows]
        writer = few_rows(self.spark, columns, table.ddl).coalesce(1).write.format("delta").mode("append")
        # Looking for what to replace takes Delta longer than the write: most deliveries are new.
        if self._rows(table, [("delivery", "in", list(deliveries))]):
            # A delivery's key is made of hex digits by us; nothing else may get into a condition.
            ids = ", ".join(f"'{int(delivery, 16):016x}'" for delivery in sorted(set(deliveries)))
            writer = writer.mode("overwrite").option("replaceWhere", f"delivery IN ({ids})")
        writer = writer.option("userMetadata", json.dumps(metadata, sort_keys=True))
        writer.option("txnAppId", table.name).option("txnVersion", str(lease)).save(self.path(table.name))

    def _own_commit(self, table: str, metadata: Mapping[str, Any]) -> int:
        """The version that carries exactly this metadata; Delta drops a stale writer's commit without a word."""
        found = self._delta(table)
        for info in found.history(20) if found is not None else []:
            if our_metadata(info) == metadata:
                return int(info["version"])
        raise Unavailable(f"{table}: this run's commit is not there; a newer writer came first")


def our_metadata(info: Mapping[str, Any]) -> dict[str, Any] | None:
    """What we wrote into a commit, or None where it is somebody else's."""
    text = info.get("userMetadata")
    if not text:
        return None
    try:
        found = json.loads(text)
    except json.JSONDecodeError:
        return None
    return found if isinstance(found, dict) and "run" in found else None


def transaction_id(table: str, source: str, period: str) -> str:
    """Delta's txnAppId: one sequence of writers per table, source and billing period."""
    return f"{table}/{source}/{period}"


def table_properties(table: Table) -> dict[str, str]:
    """Delta properties of one of our tables: retention, and nothing delta-rs could not write."""
    days = table.keep_versions_days
    return {
        "delta.logRetentionDuration": f"interval {days} days",
        "delta.deletedFileRetentionDuration": f"interval {days} days",
        "delta.enableDeletionVectors": "false",
        "delta.dataSkippingNumIndexedCols": "3",
        "weighbridge.key": ",".join(table.key),
    }
