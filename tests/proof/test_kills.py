"""kill -9 of the driver at every phase and after every Delta commit: one more night gives the same tables.

The night that dies is a process of its own; the one after it goes through the same command in the Spark session
of the test run, which knows nothing of that lake.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from proof import nights, tables
from weighbridge.tables import MARTS

if TYPE_CHECKING:
    from proof.nights import Answered, Process
    from proof.report import Report

pytestmark = pytest.mark.proof

PHASES = (
    "look",
    "read",
    "stage",
    "prove",
    "check",
    "archive",
    "commit charges",
    "commit daily_costs",
    "commit marts",
    "commit checks",
    "commit ledger",
)
COMMITS = ("charges", "daily_costs", *MARTS, "check_results", "deliveries")


def test_the_phases_and_commits_of_a_night_are_those_that_are_killed(undisturbed: Any) -> None:
    assert sorted(undisturbed.said.phases) == sorted(PHASES)
    before, after = undisturbed.versions_before, undisturbed.versions
    assert sorted(table for table in after if after[table] > before[table]) == sorted(COMMITS)


@pytest.mark.parametrize("phase", PHASES)
def test_a_night_killed_at_a_phase_is_made_good_by_one_more(
    phase: str,
    place: Any,
    undisturbed: Any,
    start: Callable[..., Process],
    report: Report,
) -> None:
    with report.case(f"killed at the phase *{phase}*") as row:
        night = start(place.env, "night", "--run", "killed")
        night.wait_for_phase(phase)
        killed(night)
        retried(place, undisturbed, row)


@pytest.mark.parametrize("table", COMMITS)
def test_a_night_killed_after_a_commit_is_made_good_by_one_more(
    table: str, place: Any, undisturbed: Any, start: Callable[..., Process], report: Report
) -> None:
    with report.case(f"killed right after its commit to `{table}`") as row:
        commit = tables.commit_file(place.lake, table, undisturbed.versions_before[table] + 1)
        night = start(place.env, "night", "--run", "killed")
        night.wait_until(commit.exists, f"its commit to {table}")
        killed(night)
        assert commit.exists()
        retried(place, undisturbed, row)


def killed(night: Process) -> None:
    """The driver is dead: Python and its JVM, both."""
    assert len(night.kill()) >= 2, "only Python or only its JVM was there to kill"


def retried(place: Any, undisturbed: Any, row: Any) -> None:
    """One night more, exactly one, and then everything is as if nothing had happened."""
    said = nights.night_in_this_process(place.env, "retry")
    assert said.code == 0, said.err[-2000:]
    row.then = what_it_did(said)
    row.identical = undisturbed.same_as(place.lake)
    assert tables.digests(str(place.lake)) == undisturbed.digests
    assert tables.ledger(str(place.lake)) == undisturbed.ledger
    assert row.identical
    assert sorted(tables.outcomes(str(place.lake)).values()) == ["published", "published", "superseded"]


def what_it_did(said: Answered) -> str:
    """The retry in a word, by what it says itself."""
    if any(line.startswith("finishing ") for line in said.err.splitlines()):
        return "finished what was published"
    return {"published": "took the delivery anew", "nothing_new": "found nothing left to do"}[
        said.data["outcome"]
    ]
