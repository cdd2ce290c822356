"""Nights on a real lake: what is published, what is refused, and what a night that died leaves behind."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from builders import cur2_row, write_cur2_delivery
from night_lake import Died, NightLake, Watched
from weighbridge.billing.night import run_night
from weighbridge.billing.totals import Layers, layers
from weighbridge.policies import LineRule

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST = "2026-12-03T04:30:00.000Z-11111111-daaa-439c-92f1-afc727f1e0a3"
SECOND = "2026-12-05T04:30:00.000Z-22222222-daaa-439c-92f1-afc727f1e0a3"
PERIOD = "2026-11"
DEATHS = ("commit charges", "commit daily_costs", "commit marts", "commit ledger")


@dataclass
class Seen:
    """What a night said and what stood in the lake after it."""

    outcome: str
    refused: dict[str, str]
    billed: dict[str, dict[str, Decimal]]
    charges: dict[str, dict[str, Decimal]]
    outcomes: dict[str, dict[str, str]]
    versions: dict[str, int]


class Story:
    """Nights in a row on one lake, and what was seen after each, by the night's name."""

    def __init__(self, home: NightLake) -> None:
        self.home = home
        self.seen: dict[str, Seen] = {}
        self.layers: Layers | None = None

    def night(self, name: str, **changes: object) -> None:
        """One night that lives to its end."""
        record = run_night(self.home.night(name, **changes))
        sources = self.home.sources
        self.seen[name] = Seen(
            record.outcome,
            {note.source: note.reason for note in record.refused},
            {source: self.home.billed(source) for source in sources},
            {source: self.home.billed(source, "charges") for source in sources},
            {source: self.home.outcomes(source) for source in sources},
            self.home.lake.versions(),
        )


@pytest.fixture(scope="module")
def story(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Story:
    """Everything that happens to the sources; a later night leaves alone what an earlier one is asked for."""
    home = NightLake(spark, tmp_path_factory.mktemp("nights"), "whole", "newer", "broken", "open", "dead")
    story = Story(home)
    rows = [cur2_row(), cur2_row(), cur2_row(resource_tags={}, line_item_unblended_cost=0.1)]
    write_cur2_delivery(home.landing("whole"), rows, PERIOD, execution=FIRST, parts=2)
    write_cur2_delivery(
        home.landing("newer"), [cur2_row(line_item_unblended_cost=5.0)], PERIOD, execution=SECOND
    )
    write_cur2_delivery(home.landing("broken"), [cur2_row()], PERIOD, execution=FIRST)
    write_cur2_delivery(home.landing("open"), [cur2_row("2027-05")], "2027-05", execution=FIRST)
    story.night("first")
    story.layers = layers(home.lake, "whole", PERIOD)
    story.night("again")

    write_cur2_delivery(home.landing("newer"), [cur2_row()], PERIOD, execution=FIRST)
    write_cur2_delivery(home.landing("broken"), [cur2_row(), cur2_row()], PERIOD, execution=SECOND, parts=2)
    gone = sorted(home.landing("broken").rglob(f"*{SECOND}*/*00002*"))[0]
    kept = home.home / gone.name
    shutil.move(gone, kept)
    story.night("a part is missing")
    story.night("it still is")
    shutil.move(kept, gone)
    changed = home.policy(LineRule("search", "tag", "search", "Discovery"), digest="second")
    story.night("it is back")
    story.night("other policy", policy=changed)

    write_cur2_delivery(home.landing("dead"), [cur2_row()], PERIOD, execution=FIRST)
    for phase in DEATHS:
        with pytest.raises(Died, match=phase):
            run_night(home.night(f"dies at {phase}", policy=changed, progress=Watched(phase)))
    story.night("after the deaths", policy=changed)
    story.night("and after", policy=changed)
    return story


def test_a_delivery_is_published_and_equals_the_bill(story: Story) -> None:
    seen, found = story.seen["first"], story.layers
    assert seen.outcome == "published"
    assert seen.billed["whole"] == {"Search": Decimal("2.424"), "unattributed": Decimal("0.1")}
    assert seen.charges["whole"] == seen.billed["whole"]
    assert found is not None
    assert [name for name in found.behind if name in ("ledger", "charges", "daily_costs")] == []
    assert found.to_data()["delivered"]["USD"]["billed"] == "2.524"


def test_a_known_delivery_commits_to_no_table(story: Story) -> None:
    assert story.seen["again"].outcome == "nothing_new"
    assert story.seen["again"].versions == story.seen["first"].versions


def test_a_newer_delivery_replaces_the_period_and_an_older_one_changes_nothing(story: Story) -> None:
    before, after = story.seen["first"], story.seen["a part is missing"]
    assert after.outcomes["newer"] == {SECOND[:10]: "published", FIRST[:10]: "superseded"}
    assert after.billed["newer"] == before.billed["newer"] == {"Search": Decimal(5)}
    for table in ("charges", "daily_costs"):
        assert after.versions[table] == before.versions[table]


def test_a_missing_part_refuses_the_delivery_and_the_old_data_stays(story: Story) -> None:
    for name in ("a part is missing", "it still is"):
        seen = story.seen[name]
        assert seen.outcome == "refused"
        assert list(seen.refused) == ["broken"]
        assert "00002.snappy.parquet is not there" in seen.refused["broken"]
        assert seen.billed["broken"] == {"Search": Decimal("1.212")}
    assert story.seen["it is back"].outcome == "published"
    assert story.seen["it is back"].billed["broken"] == {"Search": Decimal("2.424")}
    assert story.seen["it is back"].outcomes["broken"] == {FIRST[:10]: "superseded", SECOND[:10]: "published"}


def test_a_changed_policy_attributes_an_open_period_anew_and_leaves_a_past_one(story: Story) -> None:
    seen = story.seen["other policy"]
    assert seen.outcome == "published"
    assert seen.billed["open"] == seen.charges["open"] == {"Discovery": Decimal("1.212")}
    for source in ("whole", "newer", "broken"):
        assert seen.billed[source] == story.seen["it is back"].billed[source]


def test_a_night_that_died_at_any_commit_is_finished_by_the_next(story: Story) -> None:
    seen = story.seen["after the deaths"]
    assert seen.outcome == "published"
    assert seen.billed["dead"] == seen.charges["dead"] == {"Discovery": Decimal("1.212")}
    assert seen.outcomes["dead"] == {FIRST[:10]: "published"}
    assert story.seen["and after"].outcome == "nothing_new"
    assert story.seen["and after"].versions == seen.versions
