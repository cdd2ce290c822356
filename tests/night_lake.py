"""A lake in which nights run on hand-made deliveries, and what then stands in it, read without Spark."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import shutil
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weighbridge.adapters.files import FolderStore
from weighbridge.adapters.lake import DeltaLake
from weighbridge.adapters.lease import hold
from weighbridge.billing.archive import Below
from weighbridge.billing.night_context import Night
from weighbridge.policies import LineRule, Policy, Source, TagMeaning, TagPolicy
from weighbridge.tables import CHARGES
from weighbridge.wiring import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROJECT = Path(__file__).parents[1]

TAGS = TagPolicy(
    meanings=(
        TagMeaning("business_line", ("business_unit",)),
        TagMeaning("model_version", ("model_version",)),
        TagMeaning("environment", ("environment",)),
        TagMeaning("tenant", ("tenant",)),
    ),
    prefixes=("user_",),
    spellings={},
)
RULES = (LineRule("search", "tag", "search", "Search"), LineRule("ads", "tag", "ads", "Advertising"))


class Died(Exception):
    """Stands for the process that is no more."""


@dataclasses.dataclass
class Watched:
    """Progress that can end the run at a phase."""

    dies_at: str | None = None

    def say(self, text: str) -> None:
        """Nothing."""

    def phase(self, name: str, of: Sequence[str] = ()) -> None:
        """Ends the run where it was told to."""
        if name == self.dies_at:
            raise Died(name)


class NightLake:
    """A fresh lake, registered in the session, with one landing place for each named source."""

    def __init__(self, spark: SparkSession, home: Path, *sources: str) -> None:
        """The lake is empty; every source is AWS with CUR 2.0 until `formats` says otherwise."""
        self.home, self.sources = home, sources
        self.formats: dict[str, str] = {}
        root = home / "lake"
        root.mkdir(parents=True)
        for source in sources:
            self.landing(source).mkdir(parents=True)
        # The tables are external: the catalog forgets them, the files of another test's lake stay.
        spark.sql("DROP DATABASE IF EXISTS weighbridge CASCADE")
        self.lake = DeltaLake(spark, FolderStore(str(root)), {})
        self.lake.open()

    @property
    def root(self) -> str:
        """The lake's folder."""
        return self.lake.store.root

    def landing(self, source: str) -> Path:
        """Where deliveries of a source land."""
        return self.home / "landing" / source

    def empty_landing(self, source: str) -> None:
        """What lay there is gone."""
        shutil.rmtree(self.landing(source))
        self.landing(source).mkdir()

    def policy(self, *rules: LineRule, digest: str = "first") -> Policy:
        """Who pays: Search and Advertising by their tags, unless other rules are given."""
        made = tuple(self._source(name) for name in self.sources)
        return Policy(made, TAGS, rules or RULES, digest)

    def _source(self, name: str) -> Source:
        place = str(self.landing(name))
        if self.formats.get(name, "cur-2.0") == "cur-2.0":
            return Source(name, "AWS", place, "100000000001", "cur-2.0")
        return Source(name, "Microsoft", place, "8a1b2c3d", self.formats[name])

    def night(self, run: str, **changes: Any) -> Night:
        """A night without marts on a day long after the month, unless told otherwise."""
        settings = Settings()

        def lease(at_least: int) -> contextlib.AbstractContextManager[Any]:
            return hold(self.root, settings, run, "tester", at_least=at_least)

        made = Night(
            run=run,
            day=date(2027, 6, 1),
            lake=self.lake,
            policy=self.policy(),
            landing=lambda source: FolderStore(source.landing),
            lease=lease,
            build_marts=lambda places, metadata, counter: [],
            archive=Below(self.lake.store, "_archive/"),
            keep_page=lambda html: "page",
            now=lambda: datetime.now(UTC),
            progress=Watched(),
        )
        return dataclasses.replace(made, **changes)

    def marts(self, project: Path = PROJECT) -> Callable[..., list[str]]:
        """What builds the marts in a night, from this dbt project."""
        from weighbridge.adapters.marts import refresh_marts

        def build(places: Sequence[tuple[str, str]], metadata: str, counter: int) -> list[str]:
            spark, root = self.lake.spark, self.root
            return list(refresh_marts(spark, root, project, places, metadata, counter).failures)

        return build

    def rows(self, table: str, source: str | None = None) -> list[dict[str, Any]]:
        """The rows of a table, or those of one source; none where the table does not exist."""
        from deltalake import DeltaTable

        place = f"{self.root}/{table}"
        if not DeltaTable.is_deltatable(place):
            return []
        name = "x_source" if table == CHARGES.name else "source"
        only = None if source is None else [(name, "=", source)]
        found: list[dict[str, Any]] = DeltaTable(place).to_pyarrow_table(partitions=only).to_pylist()
        return found

    def dump(self, table: str, source: str, without: Sequence[str] = ()) -> str:
        """Every row of a source as one line of text, sorted: equal rows in any order give equal bytes."""
        lines = [
            json.dumps({k: v for k, v in row.items() if k not in without}, default=str, sort_keys=True)
            for row in self.rows(table, source)
        ]
        return "\n".join(sorted(lines))

    def billed(self, source: str, table: str = "daily_costs") -> dict[str, Decimal]:
        """What each business line of a source is billed."""
        name = "x_business_line" if table == CHARGES.name else "business_line"
        found: dict[str, Decimal] = {}
        for row in self.rows(table, source):
            found[row[name]] = found.get(row[name], Decimal(0)) + row["billed_cost"]
        return {line: amount.normalize() for line, amount in found.items()}

    def billed_by_period(self, table: str) -> dict[tuple[str, str], dict[str, Decimal]]:
        """The same for every (source, billing period) of daily_costs or a mart that has rows."""
        found: dict[tuple[str, str], dict[str, Decimal]] = {}
        for row in self.rows(table):
            lines = found.setdefault((row["source"], row["billing_period"]), {})
            line = row["business_line"]
            lines[line] = lines.get(line, Decimal(0)) + row["billed_cost"]
        return {place: {k: v.normalize() for k, v in lines.items()} for place, lines in found.items()}

    def outcomes(self, source: str) -> dict[str, str]:
        """What became of each delivery of a source, by the day that its manifest's folder names."""
        rows = [row for row in self.rows("deliveries") if row["source"] == source]
        return {row["manifest"].split("/")[-2][:10]: row["outcome"] for row in rows}

    def actions(self, table: str, version: int) -> list[dict[str, Any]]:
        """What one commit of a table did, from Delta's log."""
        log = Path(self.root, table, "_delta_log", f"{version:020}.json").read_text()
        return [json.loads(line) for line in log.splitlines()]

    def changed(self, table: str, since: int) -> set[tuple[str, str]]:
        """The (source, period) of every file that commits after a version added or removed."""
        newest = self.lake.version(table) or 0
        keys = CHARGES.partition_by if table == CHARGES.name else ("source", "billing_period")
        return {
            (action["partitionValues"][keys[0]], action["partitionValues"][keys[1]])
            for version in range(since + 1, newest + 1)
            for line in self.actions(table, version)
            for kind, action in line.items()
            if kind in ("add", "remove")
        }
