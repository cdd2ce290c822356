"""What the night asks of the lake, in its own words; `adapters.lake` does it with Delta."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from weighbridge.billing.ledger import LedgerRow
from weighbridge.ports import FileStore
from weighbridge.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Commit:
    """One commit of a table that carries our metadata."""

    table: str
    version: int
    metadata: Mapping[str, Any]


@dataclass(frozen=True)
class StagedFile:
    """One Parquet file written under the charges table's folder and not yet part of it."""

    path: str
    bytes: int
    modified_ms: int
    rows: int


class Lake(Protocol):
    """The tables under one root, read and written in one Spark session."""

    spark: SparkSession
    store: FileStore

    def read(self, table: str, version: int | None = None) -> DataFrame:
        """A table as it is now, or at a version."""

    def version(self, table: str) -> int | None:
        """The table's newest version, or None where there is none yet."""

    def versions(self) -> dict[str, int]:
        """The newest version of every table and mart that exists."""

    def commits_after(self, table: str, version: int) -> list[Commit]:
        """Our commits of a table after a version, oldest first."""

    def ledger(self) -> list[LedgerRow]:
        """Every row of the ledger."""

    def staging_folder(self, source: str, period: str, attempt: str) -> str:
        """Key of the folder in which one attempt writes charges of (source, period), unpublished."""

    def staged_files(self, folder: str) -> list[StagedFile]:
        """The Parquet files that were written there, with the row counts of their footers."""

    def publish_charges(
        self, source: str, period: str, files: Sequence[StagedFile], metadata: Mapping[str, Any], lease: int
    ) -> int:
        """One metadata-only commit that swaps the files of (source, period); returns its version."""

    def replace_period(
        self, table: Table, rows: DataFrame, source: str, period: str, metadata: Mapping[str, Any], lease: int
    ) -> int:
        """Replaces the rows of (source, period) in one commit, also down to nothing; returns its version."""

    def record_checks(
        self,
        run: str,
        deliveries: Sequence[str],
        rows: Sequence[tuple[Any, ...]],
        metadata: Mapping[str, Any],
        lease: int,
    ) -> int:
        """Writes results of checks in one commit, in place of those of the same run and deliveries."""

    def record(self, rows: Sequence[LedgerRow], metadata: Mapping[str, Any], lease: int) -> int | None:
        """Writes ledger rows in one commit, each replacing the row of its delivery and period."""
