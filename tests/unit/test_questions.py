"""Finance questions as files, their parameters, and the night that stands for a date."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from weighbridge.errors import Refused
from weighbridge.finance.as_of import Night, night_for
from weighbridge.finance.questions import described, find, given_parameters, parse, questions

FOLDER = Path(__file__).parents[2] / "sql" / "queries"

ASKED = """-- Who spends most?
--
-- :period month        month of the bill
-- :since  date = 2026-01-01  first day
-- :source text = any   only this source
-- :rows   number = 20  how many lines
select * from monthly_cost -- not from charges
where billing_period = :period
"""


def test_every_question_is_asked_in_words_and_names_its_tables() -> None:
    known = questions(FOLDER)
    assert {
        "who_spends_most",
        "what_grew",
        "cost_per_model_version_per_region",
        "unattributed_and_why",
        "as_it_stood",
        "list_against_effective",
        "open_one_number",
        "monthly_cost_by_business_line",
    } <= set(known)
    for question in known.values():
        assert "?" in question.asks
        assert question.tables
        for parameter in question.parameters:
            assert f":{parameter.name}" in question.sql.split("\nselect", 1)[-1] or "with" in question.sql
        assert question.name in described(known)


def test_parameters_take_their_default_and_any_is_null() -> None:
    question = parse("q", ASKED)
    assert question.tables == ("monthly_cost",)
    assert question.bind({"period": "2026-10"}) == {
        "period": "2026-10",
        "since": datetime.date(2026, 1, 1),
        "source": None,
        "rows": 20,
    }
    assert question.bind({"period": "2026-10", "source": "a' or 'x'='x"})["source"] == "a' or 'x'='x"


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({}, "period"),
        ({"period": "2026-13"}, "2026-13"),
        ({"period": "any"}, "any"),
        ({"period": "2026-10", "rows": "ten"}, "ten"),
        ({"period": "2026-10", "since": "yesterday"}, "yesterday"),
        ({"period": "2026-10", "sources": "aws"}, "period, since, source, rows"),
    ],
)
def test_what_a_question_cannot_take_is_refused_by_name(given: dict[str, str], named: str) -> None:
    with pytest.raises(Refused, match=named):
        parse("q", ASKED).bind(given)


def test_an_unknown_question_is_refused_with_those_there_are() -> None:
    with pytest.raises(Refused, match="who_spends_most"):
        find(FOLDER, "../who_spends_least")


@pytest.mark.parametrize("pairs", [["period"], ["period=1", "period=2"]])
def test_parameters_are_written_once_as_name_and_value(pairs: list[str]) -> None:
    with pytest.raises(Refused):
        given_parameters(pairs)
    assert given_parameters(["a=b=c", "d="]) == {"a": "b=c", "d": ""}


def night(delivery: str, day: int, hour: int = 3, version: int | None = 1) -> Night:
    """A night in October 2026."""
    versions = {} if version is None else {"charges": version}
    return Night(delivery, datetime.datetime(2026, 10, day, hour, tzinfo=datetime.UTC), versions)


NIGHTS = [night("d3", 7, 3, 3), night("d1", 5, 23, 1), night("d2", 5, 23, 2), night("dead", 9, 3, None)]


def test_a_date_means_its_end_and_a_delivery_its_own_night() -> None:
    assert night_for("2026-10-05", NIGHTS).versions["charges"] in (1, 2)
    assert night_for("2026-10-06", NIGHTS).day == datetime.date(2026, 10, 5)
    assert night_for("2026-10-07", NIGHTS).delivery == "d3"
    assert night_for("2026-12-31", NIGHTS).delivery == "d3"
    assert night_for("d1", NIGHTS).versions == {"charges": 1}


@pytest.mark.parametrize(
    ("as_of", "named"),
    [
        ("2026-10-04", "2026-10-05"),
        ("2026-02-30", "calendar"),
        ("dead", "no night that published"),
        ("d9", "neither"),
    ],
)
def test_a_date_or_delivery_that_cannot_be_had_is_refused(as_of: str, named: str) -> None:
    with pytest.raises(Refused, match=named):
        night_for(as_of, NIGHTS)


def test_nothing_stands_for_a_date_before_the_first_night() -> None:
    with pytest.raises(Refused, match="no night was ever completed"):
        night_for("2026-10-07", [NIGHTS[-1]])
