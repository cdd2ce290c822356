"""Nights on a real lake: what is published, what is refused, and what a night that died leaves behind."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from builders import cur2_row, write_cur2_delivery
from weighbridge.adapters.files import FolderStore
from weighbridge.adapters.lake import DeltaLake
from weighbridge.adapters.lease import hold
from weighbridge.billing.archive import Below
from weighbridge.billing.night import Night, run_night
from weighbridge.billing.totals import layers
from weighbridge.policies import LineRule, Policy, Source, TagMeaning, TagPolicy
from weighbridge.wiring import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


FIRST = "2026-12-03T04:30:00.000Z-11111111-daaa-439c-92f1-afc727f1e0a3"
SECOND = "2026-12-05T04:30:00.000Z-22222222-daaa-439c-92f1-afc727f1e0a3"
PERIOD = "2026-11"

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


class Died(Exception):
    """Stands for the process that is no more."""


class Watched:
    """Progress that can end the run at a phase."""

    def __init__(self, dies_at: str | None = None) -> None:
        self.dies_at = dies_at

    def say(self, text: str) -> None:
        """Nothing."""

    def phase(self, name: str, of: Sequence[str] = ()) -> None:
        """Ends the run where it was told to."""
        if name == self.dies_at:
            raise Died(name)


def policy(landing: Path, *rules: LineRule, digest: str = "first") -> Policy:
    """A policy with one source."""
    source = Source("aws-main", "AWS", str(landing), "100000000001", "cur-2.0")
    return Policy((source,), TAGS, rules or (LineRule("search", "tag", "search", "Search"),), digest)


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    """Where deliveries land."""
    place = tmp_path / "landing"
    place.mkdir()
    return place


@pytest.fixture
def make_night(spark: SparkSession, tmp_path: Path, landing: Path) -> Iterator[Callable[..., Night]]:
    """Makes nights on one lake, without marts, on a day long after the month unless told otherwise."""
    root = tmp_path / "lake"
    root.mkdir()
    spark.sql("DROP DATABASE IF EXISTS weighbridge CASCADE")
    lake = DeltaLake(spark, FolderStore(str(root)), {})
    lake.open()
    settings = Settings()

    def lease(at_least: int) -> contextlib.AbstractContextManager[Any]:
        return hold(str(root), settings, "test", "tester", at_least=at_least)

    def make(run: str, **changes: Any) -> Night:
        made = Night(
            run=run,
            day=date(2027, 6, 1),
            lake=lake,
            policy=policy(landing),
            landing=lambda source: FolderStore(source.landing),
            lease=lease,
            build_marts=lambda places, metadata, counter: [],
            archive=Below(lake.store, "_archive/"),
            now=lambda: datetime.now(UTC),
            progress=Watched(),
        )
        return dataclasses.replace(made, **changes)

    yield make
    spark.sql("DROP DATABASE IF EXISTS weighbridge CASCADE")


def billed(night: Night, table: str = "daily_costs") -> dict[str, Decimal]:
    """What each business line is billed."""
    line = "x_business_line" if table == "charges" else "business_line"
    rows = night.lake.read(table).groupBy(line).sum("billed_cost").collect()
    return {row[0]: row[1].normalize() for row in rows}


def outcomes(night: Night) -> dict[str, str]:
    """The ledger's outcome by execution folder, or by delivery."""
    return {row.manifest.split("/")[-2][:10]: row.outcome for row in night.lake.ledger() if row.manifest}


def versions(night: Night) -> dict[str, int]:
    """Version of each table."""
    return night.lake.versions()


def test_a_delivery_is_published_and_equals_the_bill(make_night: Any, landing: Path) -> None:
    rows = [cur2_row(), cur2_row(), cur2_row(resource_tags={}, line_item_unblended_cost=0.1)]
    write_cur2_delivery(landing, rows, PERIOD, execution=FIRST, parts=2)
    night = make_night("one")
    record = run_night(night)
    assert record.outcome == "published"
    assert billed(night) == {"Search": Decimal("2.424"), "unattributed": Decimal("0.1")}
    assert billed(night, "charges") == billed(night)
    found = layers(night.lake, "aws-main", PERIOD)
    assert [name for name in found.behind if name in ("ledger", "charges", "daily_costs")] == []
    assert found.to_data()["delivered"]["USD"]["billed"] == "2.524"


def test_a_known_delivery_commits_to_no_table(make_night: Any, landing: Path) -> None:
    write_cur2_delivery(landing, [cur2_row()], PERIOD, execution=FIRST)
    run_night(make_night("one"))
    before = versions(make_night("-"))
    record = run_night(make_night("two"))
    assert record.outcome == "nothing_new"
    assert versions(make_night("-")) == before


def test_a_newer_delivery_replaces_the_period_and_an_older_one_changes_nothing(
    make_night: Any, landing: Path, tmp_path: Path
) -> None:
    write_cur2_delivery(landing, [cur2_row(line_item_unblended_cost=5.0)], PERIOD, execution=SECOND)
    run_night(make_night("one"))
    write_cur2_delivery(landing, [cur2_row()], PERIOD, execution=FIRST)
    night = make_night("two")
    assert run_night(night).outcome == "nothing_new"
    assert billed(night) == {"Search": Decimal(5)}
    assert outcomes(night) == {SECOND[:10]: "published", FIRST[:10]: "superseded"}


def test_a_missing_part_refuses_the_delivery_and_the_old_data_stays(make_night: Any, landing: Path) -> None:
    write_cur2_delivery(landing, [cur2_row()], PERIOD, execution=FIRST)
    run_night(make_night("one"))
    write_cur2_delivery(landing, [cur2_row(), cur2_row()], PERIOD, execution=SECOND, parts=2)
    gone = sorted((landing).rglob(f"*{SECOND}*/*00002*"))[0]
    kept = landing.parent / "kept"
    shutil.move(gone, kept)
    night = make_night("two")
    record = run_night(night)
    assert record.outcome == "refused"
    assert gone.name in record.refused[0].reason
    assert billed(night) == {"Search": Decimal("1.212")}
    assert run_night(make_night("three")).outcome == "refused"
    shutil.move(kept, gone)
    assert run_night(make_night("four")).outcome == "published"
    assert billed(night) == {"Search": Decimal("2.424")}
    assert outcomes(night) == {FIRST[:10]: "superseded", SECOND[:10]: "published"}


@pytest.mark.parametrize("phase", ["commit charges", "commit daily_costs", "commit marts", "commit ledger"])
def test_a_night_that_died_is_finished_by_the_next(make_night: Any, landing: Path, phase: str) -> None:
    write_cur2_delivery(landing, [cur2_row()], PERIOD, execution=FIRST)
    with pytest.raises(Died):
        run_night(make_night("one", progress=Watched(phase)))
    night = make_night("two")
    assert run_night(night).outcome == "published"
    assert billed(night) == billed(night, "charges") == {"Search": Decimal("1.212")}
    assert outcomes(night) == {FIRST[:10]: "published"}
    assert run_night(make_night("three")).outcome == "nothing_new"


def test_a_changed_policy_attributes_an_open_period_anew_and_leaves_a_past_one(
    make_night: Any, landing: Path
) -> None:
    write_cur2_delivery(landing, [cur2_row()], PERIOD, execution=FIRST)
    run_night(make_night("one"))
    changed = policy(landing, LineRule("search", "tag", "search", "Discovery"), digest="second")
    later = make_night("two", policy=changed)
    assert run_night(later).outcome == "nothing_new"
    assert billed(later) == {"Search": Decimal("1.212")}
    still_open = make_night("three", policy=changed, day=date(2026, 12, 6))
    assert run_night(still_open).outcome == "published"
    assert billed(still_open) == {"Discovery": Decimal("1.212")}
