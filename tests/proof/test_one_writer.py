"""One writer per lake in a folder: two nights at once, and a night that stands still."""

from __future__ import annotations

import getpass
import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from proof import nights, tables

if TYPE_CHECKING:
    from proof.nights import Answered, Process
    from proof.report import Report

pytestmark = pytest.mark.proof


def test_of_two_nights_at_once_one_commits_and_the_other_names_it(
    place: Any, undisturbed: Any, start: Callable[..., Process], report: Report
) -> None:
    with report.case("two nights at once") as row:
        both = {name: start(place.env, "night", "--run", name, "--json") for name in ("one", "two")}
        said = {name: night.answer() for name, night in both.items()}
        (winner,) = [name for name in said if said[name].code == 0]
        (loser,) = [name for name in said if said[name].code == 1]
        assert says_who_holds_it(said[loser], winner, both[winner].pid)
        for table in ("charges", "daily_costs", "deliveries"):
            before = undisturbed.versions_before[table]
            assert tables.runs_of(str(place.lake), table, before) == [winner]
        row.then = f"one published; the other ended with 1 and said: {last_line(said[loser])}"
        row.identical = undisturbed.same_as(place.lake)
        assert row.identical


def test_a_night_that_stands_still_keeps_the_lake_and_is_named_with_its_begin(
    place: Any, undisturbed: Any, start: Callable[..., Process], report: Report
) -> None:
    with report.case("stopped (SIGSTOP) at *stage*, a second night comes, then SIGCONT") as row:
        still = start(place.env, "night", "--run", "stands-still", "--json")
        still.wait_for_phase("stage")
        still.stop()
        since = json.loads((place.lake / "_weighbridge/writer.json").read_text())["since"]
        second = nights.weighbridge(place.env, "night", "--run", "second", "--json")
        assert second.code == 1, second.err
        assert says_who_holds_it(second, "stands-still", still.pid)
        assert since in second.err
        assert tables.versions(str(place.lake)) == undisturbed.versions_before
        still.go_on()
        first = still.answer()
        assert first.code == 0, first.err
        row.then = f"ended with 1 and said: {last_line(second)}; the first went on and published"
        row.identical = undisturbed.same_as(place.lake)
        assert row.identical


def says_who_holds_it(said: Answered, run: str, pid: int) -> bool:
    """Whether a night that had to leave names the holder, its run and process, and since when."""
    wanted = rf"is being written by {re.escape(getpass.getuser())}, run {run} \(pid {pid} on [^)]+\), since \d{{4}}-"
    return re.search(wanted, said.data["error"]) is not None and re.search(wanted, said.err) is not None


def last_line(said: Answered) -> str:
    """Who wrote and since when, without places and ids of this machine."""
    found = re.search(r"is being written by .*?(?=; wait)", said.err)
    return re.sub(r" \(pid [^)]*\)", "", found[0]) if found else "?"
