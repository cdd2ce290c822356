"""What a night does with the checks of its deliveries, and what it tells when it is tried again."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from builders import HOUR, cur2_row, month, write_cur2_delivery
from night_lake import NightLake
from weighbridge.billing.night import run_night
from weighbridge.billing.proving import STAGING
from weighbridge.billing.runs import RunRecord

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OCTOBER = "2026-11-03T04:30:00.000Z-11111111-daaa-439c-92f1-afc727f1e0a3"
NOVEMBER = "2026-12-03T04:30:00.000Z-22222222-daaa-439c-92f1-afc727f1e0a3"


def last_day(period: str, **changes: Any) -> dict[str, Any]:
    """A bill line of the month's last hour, so that nobody asks where the month's usage is."""
    hour = month(period)[1] - HOUR
    ends = {"line_item_usage_start_date": hour, "line_item_usage_end_date": hour + HOUR}
    return cur2_row(period, **ends | changes)


class Checked:
    """Two months of a good source and one delivery that fails a critical check, in three nights."""

    def __init__(self, spark: SparkSession, home: NightLake) -> None:
        self.home = home
        self.pages: list[str] = []
        write_cur2_delivery(home.landing("good"), [last_day("2026-10")], "2026-10", execution=OCTOBER)
        bad = last_day("2026-10", line_item_currency_code="usd")
        write_cur2_delivery(home.landing("bad"), [bad], "2026-10", execution=OCTOBER)
        self.first = self.night("first")
        row = last_day("2026-11", product_region_code="mars-1")
        write_cur2_delivery(home.landing("good"), [row], "2026-11", execution=NOVEMBER)
        self.second = self.night("second")
        self.retried = self.night("second")

    def night(self, run: str) -> RunRecord:
        """One night of 2026-12-06, whose page is kept."""

        def keep(html: str) -> str:
            self.pages.append(html)
            return f"page {len(self.pages)}"

        at = datetime(2026, 12, 6, tzinfo=UTC)
        return run_night(self.home.night(run, keep_page=keep, now=lambda: at))


@pytest.fixture(scope="module")
def checked(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Checked:
    """The three nights."""
    return Checked(spark, NightLake(spark, tmp_path_factory.mktemp("checks"), "good", "bad"))


def test_a_critical_check_stops_its_delivery_alone_and_says_what_was_found(checked: Checked) -> None:
    assert checked.first.outcome == "refused"
    (refused,) = checked.first.refused
    assert refused.source == "bad"
    assert "currencies are ISO 4217 codes (billing_currency)" in refused.reason
    assert "usd" in refused.reason
    assert [note.source for note in checked.first.published] == ["good"]
    assert checked.home.rows("charges", "bad") == []
    assert checked.home.billed("good") != {}


def test_a_warning_is_published_and_told(checked: Checked) -> None:
    assert "good 2026-11" in checked.second.warnings[0]
    assert "mars-1" in checked.second.warnings[0]
    assert ("good", "2026-11") in [(note.source, note.period) for note in checked.second.published]
    assert checked.first.warnings == ()  # nothing came before, so nothing is new


def test_every_result_stands_in_the_lake_once_also_when_the_run_is_tried_again(checked: Checked) -> None:
    rows = checked.home.rows("check_results")
    keys = [(r["run"], r["delivery"], r["suite"], r["check_name"], r["column_name"]) for r in rows]
    assert len(keys) == len(set(keys))
    failed = {(r["run"], r["source"], r["severity"], r["column_name"]) for r in rows if not r["success"]}
    assert failed == {
        ("first", "bad", "critical", "billing_currency"),
        ("second", "bad", "critical", "billing_currency"),
        ("second", "good", "warning", "region_id"),
    }
    assert {r["billing_period"] for r in rows if r["source"] == "bad"} == {"2026-10"}


def test_the_page_shows_the_run_and_its_place_is_in_the_record(checked: Checked) -> None:
    assert checked.second.page == "page 2"
    assert "mars-1" in checked.pages[1]
    assert "Checks of second" in checked.pages[1]


def test_a_run_that_is_tried_again_still_tells_what_it_published(checked: Checked) -> None:
    assert [(note.source, note.period) for note in checked.retried.published] == [("good", "2026-11")]


def test_a_source_without_a_recent_delivery_is_late(checked: Checked) -> None:
    assert "good last delivered 2026-12-03 04:30 UTC" in checked.retried.late[0]
    assert "bad has delivered nothing yet" in checked.retried.late[1]


def test_nothing_is_left_beside_the_tables(checked: Checked) -> None:
    assert list(checked.home.lake.store.list(STAGING + "/")) == []
