"""The same deliveries in any order and number give the same tables; what is replaced is replaced alone."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from builders import cur2_row, write_cur2_delivery
from night_lake import PROJECT, NightLake
from weighbridge.billing.night import run_night
from weighbridge.billing.runs import RunRecord
from weighbridge.tables import MARTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PERIOD = "2026-11"
MARTS_BY_LINE = tuple(mart for mart in MARTS if mart != "tag_coverage")
TABLES = ("daily_costs", *MARTS_BY_LINE)
DAYS = ("2026-12-03", "2026-12-05", "2026-12-07")
ADS = {"user_business_unit": "ads"}

# Three deliveries of one period; the last one holds no Advertising any more.
CONTENT = (
    [cur2_row(), cur2_row(resource_tags=ADS, line_item_unblended_cost=2.5)],
    [
        cur2_row(line_item_unblended_cost=5.0),
        cur2_row(resource_tags=ADS),
        cur2_row(resource_tags={}, line_item_unblended_cost=0.1),
    ],
    [cur2_row(line_item_unblended_cost=7.000000001), cur2_row(), cur2_row()],
)

# Which of them land before each of three nights. A repeated one is written anew, with another time.
ARRIVALS = {
    "in-order": ([0], [1], [2, 0]),
    "backwards": ([2], [1], [0]),
    "at-once": ([], [0, 1], [1, 2, 0, 0]),
}
# A source whose export overwrites its files: in October with fewer files, in November with one row more.
OTHER = "overwritten"
FEWER, LATE, EMPTIED = "2026-10", "2026-11", "2026-12"


@dataclass
class Seen:
    """What a night said, and what stood in the lake after it."""

    record: RunRecord
    versions: dict[str, int]
    billed: dict[str, dict[tuple[str, str], dict[str, Decimal]]]  # table -> (source, period) -> business line
    ledger: list[dict[str, Any]]
    changed: dict[str, set[tuple[str, str]]] = field(default_factory=dict)


@dataclass
class Story:
    """Three nights on one lake."""

    home: NightLake
    seen: list[Seen] = field(default_factory=list)

    def night(self, project: Path) -> None:
        """One night with marts from this dbt project."""
        before = self.home.lake.versions()
        name = f"night-{len(self.seen) + 1}"
        record = run_night(self.home.night(name, build_marts=self.home.marts(project)))
        seen = Seen(
            record,
            self.home.lake.versions(),
            {table: self.home.billed_by_period(table) for table in TABLES},
            self.home.rows("deliveries"),
        )
        for table in ("charges", "daily_costs", *MARTS):
            seen.changed[table] = self.home.changed(table, before[table]) if table in before else set()
        self.seen.append(seen)

    def arrive(self, source: str, number: int) -> None:
        """One of the three deliveries lands; what lay there of it is gone before."""
        execution = f"{DAYS[number]}T04:30:00.000Z-{number}1111111-daaa-439c-92f1-afc727f1e0a3"
        for old in self.home.landing(source).rglob(f"*{execution}*"):
            shutil.rmtree(old)
        write_cur2_delivery(self.home.landing(source), CONTENT[number], PERIOD, execution=execution, parts=2)

    def overwrite(self, period: str, rows: Sequence[Any], parts: int = 1) -> Path:
        """An overwriting export's delivery under its fixed names; its manifest."""
        return write_cur2_delivery(self.home.landing(OTHER), rows, period, execution=None, parts=parts)

    def recorded(self, period: str) -> list[dict[str, Any]]:
        """What the ledger says in the end of the overwriting source's deliveries of a period."""
        rows = self.seen[-1].ledger
        return [row for row in rows if (row["source"], row["billing_period"]) == (OTHER, period)]


def failing_project(folder: Path) -> Path:
    """A copy of the dbt project with a test that no mart can pass."""
    for name in ("models", "sql", "infra/dbt", "tests/dbt"):
        shutil.copytree(PROJECT / name, folder / name)
    shutil.copy(PROJECT / "dbt_project.yml", folder)
    test = "select source from {{ ref('monthly_cost') }} where {{ in_periods() }}"
    (folder / "tests" / "dbt" / "assert_nothing_costs.sql").write_text(test)
    return folder


@pytest.fixture(scope="module")
def story(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Story:
    """A night, a night whose marts fail, and the night after that."""
    home = NightLake(spark, tmp_path_factory.mktemp("redelivery"), *ARRIVALS, OTHER)
    story = Story(home)
    for source, nights in ARRIVALS.items():
        for number in nights[0]:
            story.arrive(source, number)
    ads = cur2_row(FEWER, resource_tags=ADS)
    story.overwrite(FEWER, [cur2_row(FEWER), ads, ads], parts=3)
    story.overwrite(LATE, [cur2_row(LATE)])
    emptied = story.overwrite(EMPTIED, [cur2_row(EMPTIED)])
    story.night(PROJECT)

    for source, nights in ARRIVALS.items():
        for number in nights[1]:
            story.arrive(source, number)
    story.overwrite(FEWER, [cur2_row(FEWER), cur2_row(FEWER)], parts=2)
    late_row = cur2_row(LATE, line_item_usage_start_date=datetime(2026, 11, 30, 23, tzinfo=UTC))
    story.overwrite(LATE, [cur2_row(LATE), late_row], parts=2)
    shutil.rmtree(home.landing(OTHER) / "cur2" / "data" / f"BILLING_PERIOD={EMPTIED}")
    emptied.write_text(emptied.read_text().replace(listed(emptied), "[]"))
    story.night(failing_project(tmp_path_factory.mktemp("project")))

    for source, nights in ARRIVALS.items():
        for number in nights[2]:
            story.arrive(source, number)
    story.night(PROJECT)
    return story


def listed(manifest: Path) -> str:
    """The list of files of a manifest as it stands there."""
    text = manifest.read_text()
    begin = text.index("[", text.index('"dataFiles"'))
    return text[begin : text.index("]", begin) + 1]


def test_three_deliveries_in_any_order_and_number_give_the_same_tables(story: Story) -> None:
    first = "in-order"
    assert story.home.billed(first) == {"Search": Decimal("9.424000001")}
    for table, own in {
        "charges": ("x_source", "x_delivery"),
        "daily_costs": ("source", "delivery"),
        **dict.fromkeys(MARTS, ("source",)),
    }.items():
        expected = story.home.dump(table, first, without=own)
        assert expected
        for source in ARRIVALS:
            assert story.home.dump(table, source, without=own) == expected, (table, source)


def test_only_the_ledger_tells_the_order(story: Story) -> None:
    outcome = {DAYS[0]: "superseded", DAYS[1]: "superseded", DAYS[2]: "published"}
    runs = {}
    for source in ARRIVALS:
        assert story.home.outcomes(source) == outcome
        rows = [row for row in story.seen[-1].ledger if row["source"] == source]
        (runs[source],) = {row["run"] for row in rows if row["outcome"] == "published"}
    assert runs == {"in-order": "night-3", "backwards": "night-1", "at-once": "night-3"}


def test_a_delivery_with_fewer_files_leaves_the_longer_old_file_out_and_counts_it(story: Story) -> None:
    found = {(row["outcome"], len(row["parts"]), row["unlisted_files"]) for row in story.recorded(FEWER)}
    assert found == {("superseded", 3, 0), ("published", 2, 1)}
    parts = [row["x_part"] for row in story.home.rows("charges", OTHER) if row["x_billing_period"] == FEWER]
    assert sorted(parts) == [1, 2]


def test_a_business_line_that_vanishes_from_the_bill_is_gone_from_every_table(story: Story) -> None:
    first, last = story.seen[0].billed, story.seen[-1].billed
    for table in TABLES:
        assert first[table][OTHER, FEWER] == {"Search": Decimal("1.212"), "Advertising": Decimal("2.424")}
        assert last[table][OTHER, FEWER] == {"Search": Decimal("2.424")}


def test_one_late_row_changes_the_files_of_its_own_month_alone(story: Story) -> None:
    second = story.seen[1]
    news = {("in-order", PERIOD), ("at-once", PERIOD), (OTHER, FEWER), (OTHER, LATE), (OTHER, EMPTIED)}
    assert second.changed["charges"] == second.changed["daily_costs"] == news
    rows = [row for row in story.home.rows("monthly_cost", OTHER) if row["billing_period"] == LATE]
    assert [row["charge_rows"] for row in rows] == [2]


def test_a_night_touches_no_file_of_a_period_without_news(story: Story) -> None:
    third = story.seen[2]
    news = {("in-order", PERIOD), ("at-once", PERIOD)}
    assert third.changed["charges"] == news
    finished = {(OTHER, FEWER), (OTHER, LATE)}
    for table in ("daily_costs", *MARTS):
        assert third.changed[table] - {(OTHER, EMPTIED)} == news | finished, table


def test_a_period_can_be_replaced_down_to_nothing(story: Story) -> None:
    assert story.seen[0].billed["daily_costs"][OTHER, EMPTIED] == {"Search": Decimal("1.212")}
    assert (OTHER, EMPTIED) not in {place for table in story.seen[-1].billed.values() for place in table}
    assert {row["x_billing_period"] for row in story.home.rows("charges", OTHER)} == {FEWER, LATE}
    found = {(row["outcome"], row["rows"]) for row in story.recorded(EMPTIED)}
    assert found == {("superseded", 1), ("published", 0)}


def test_marts_that_fail_are_brought_back_and_the_night_is_refused(story: Story) -> None:
    first, second, _ = story.seen
    assert (first.record.outcome, second.record.outcome) == ("published", "refused")
    reasons = {note.reason for note in second.record.refused}
    assert all("brought back to their version before" in reason for reason in reasons)
    assert all("assert_nothing_costs" in reason for reason in reasons)
    assert second.versions["monthly_cost"] > first.versions["monthly_cost"] + 1  # built, then brought back
    for mart in MARTS_BY_LINE:
        assert second.billed[mart] == first.billed[mart]
    assert {(note.source, note.period) for note in second.record.refused} == second.changed["charges"]
    known = {(row["delivery"], row["billing_period"]) for row in second.ledger}
    assert not known & {(note.delivery, note.period) for note in second.record.refused}


def test_the_night_after_finishes_what_the_marts_held_up(story: Story) -> None:
    third = story.seen[2]
    assert third.record.outcome == "published"
    waited = {(note.source, note.period): note.delivery for note in story.seen[1].record.refused}
    published = {(note.source, note.period): note.delivery for note in third.record.published}
    assert waited.keys() == published.keys()
    for period in (FEWER, LATE, EMPTIED):  # the others were replaced once more in the same night
        assert published[OTHER, period] == waited[OTHER, period]
    for mart in MARTS_BY_LINE:
        assert third.billed[mart] == third.billed["daily_costs"]
