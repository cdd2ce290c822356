"""In any order and number, the same deliveries lead to the same published one."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from weighbridge.billing.deliveries import BrokenDelivery, Delivery
from weighbridge.billing.order import Known, decide, replaced, still_broken

DAY = datetime(2024, 9, 1, tzinfo=UTC)


def delivery(name: str, age: int = 0, source: str = "s", period: str = "2024-09") -> Delivery:
    return Delivery(
        source=source,
        id=name,
        manifest=f"{name}/manifest.json",
        manifest_digest=name,
        period=period,
        delivered_at=DAY + timedelta(hours=age),
        delivered_at_from="manifest",
        parts=(),
        unlisted=0,
        declared_columns=None,
        layout="azure-exports",
    )


def known(one: Delivery, outcome: str) -> Known:
    return Known(one.id, one.source, one.period, one.delivered_at, outcome)


def ids(deliveries: Iterable[Delivery]) -> list[str]:
    return [one.id for one in deliveries]


OLD, NEW = delivery("old", 1), delivery("new", 2)


def test_the_newest_delivery_of_each_period_is_taken() -> None:
    other = delivery("other", 0, period="2024-10")
    third = delivery("third", 0, source="t")
    plan = decide([NEW, third, OLD, other], [])
    assert ids(plan.take) == ["new", "other", "third"]
    assert ids(plan.waiting) == ["old"]
    assert plan.superseded == plan.refused == ()


def test_an_older_delivery_after_a_newer_one_is_recorded_and_changes_nothing() -> None:
    plan = decide([OLD, NEW], [known(NEW, "published")])
    assert plan.take == ()
    assert plan.superseded == ((OLD, "new"),)


def test_a_known_delivery_is_not_taken_again() -> None:
    for outcome in ("published", "superseded", "dismissed"):
        plan = decide([NEW], [known(NEW, outcome)])
        assert (plan.take, plan.superseded, plan.refused) == ((), (), ())


def test_a_refused_delivery_is_tried_again_until_a_newer_one_is_published() -> None:
    assert ids(decide([OLD], [known(OLD, "refused")]).take) == ["old"]
    after = [known(OLD, "refused"), known(NEW, "published")]
    assert decide([OLD, NEW], after).superseded == ((OLD, "new"),)
    assert replaced(after) == (after[0],)
    assert replaced([known(OLD, "refused")]) == ()
    assert replaced([known(NEW, "refused"), known(OLD, "published")]) == ()


def test_a_refused_newest_lets_an_older_unseen_one_count() -> None:
    plan = decide([OLD, NEW], [], refused_now={"new"})
    assert ids(plan.take) == ["old"]
    plan = decide([OLD, NEW], [known(OLD, "published"), known(NEW, "refused")], refused_now={"new"})
    assert (plan.take, plan.superseded) == ((), ())


def test_two_deliveries_of_one_age_are_both_refused_until_one_is_dismissed() -> None:
    twin = delivery("twin", 2)
    plan = decide([NEW, twin], [])
    assert plan.take == ()
    assert {one.id for one, _ in plan.refused} == {"new", "twin"}
    assert "of the same age" in plan.refused[0][1]
    assert "dismiss one" in plan.refused[0][1]
    rows = [known(NEW, "refused"), known(twin, "refused")]
    assert decide([NEW, twin], rows).take == ()
    assert ids(decide([NEW, twin], [rows[0], known(twin, "dismissed")]).take) == ["new"]


def test_a_delivery_as_old_as_the_published_one_is_refused() -> None:
    plan = decide([delivery("twin", 2)], [known(NEW, "published")])
    assert plan.take == ()
    assert "new (published)" in plan.refused[0][1]


def test_the_same_age_in_two_periods_or_sources_is_no_tie() -> None:
    plan = decide([NEW, delivery("a", 2, period="2024-10"), delivery("b", 2, source="t")], [])
    assert len(plan.take) == 3


def test_a_broken_manifest_is_named_until_dismissed_or_replaced() -> None:
    bad = BrokenDelivery("s", "bad", "m", "d", "2024-09", DAY + timedelta(hours=2), "why")
    assert still_broken([bad], [known(OLD, "published")]) == [bad]
    assert still_broken([bad], [known(delivery("later", 3), "published")]) == []
    assert still_broken([bad], [known(delivery("bad", 2), "dismissed")]) == []


def night(found: Sequence[Delivery], ledger: dict[str, Known], damaged: set[str]) -> None:
    """One night over what lies there: as the recipe does it, without Spark."""
    tried: set[str] = set()
    while (plan := decide(found, list(ledger.values()), tried)).take:
        for one in plan.take:
            if one.id in damaged:
                tried.add(one.id)
            ledger[one.id] = known(one, "refused" if one.id in damaged else "published")
    for one, _ in plan.superseded:
        ledger[one.id] = known(one, "superseded")
    for one, _ in plan.refused:
        ledger[one.id] = known(one, "refused")
    for row in replaced(list(ledger.values())):
        ledger[row.delivery] = Known(row.delivery, row.source, row.period, row.delivered_at, "superseded")


def current(ledger: dict[str, Known]) -> dict[tuple[str, str | None], str]:
    newest: dict[tuple[str, str | None], Known] = {}
    for row in ledger.values():
        place = (row.source, row.period)
        if row.outcome == "published" and (
            place not in newest or newest[place].delivered_at < row.delivered_at
        ):
            newest[place] = row
    return {place: row.delivery for place, row in newest.items()}


@given(st.data())
def test_any_order_and_number_of_nights_publishes_the_newest_good_delivery(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 8))
    everything = [
        delivery(
            f"d{n}", n, data.draw(st.sampled_from("st")), data.draw(st.sampled_from(["2024-09", "2024-10"]))
        )
        for n in range(count)
    ]
    damaged = set(data.draw(st.lists(st.sampled_from(ids(everything)), unique=True)))
    arrivals = data.draw(st.permutations(everything))
    ledger: dict[str, Known] = {}
    there: list[Delivery] = []
    while len(there) < count:
        there = list(arrivals[: len(there) + data.draw(st.integers(1, 3))])
        shuffled = list(there)
        random.Random(len(there)).shuffle(shuffled)
        for _ in range(data.draw(st.integers(1, 2))):
            night(shuffled, ledger, damaged)
    expected: dict[tuple[str, str | None], str] = {}
    for one in everything:  # by age
        if one.id not in damaged:
            expected[one.source, one.period] = one.id
    assert current(ledger) == expected
    # What is left refused is exactly what is damaged and newer than the published one.
    assert {row.delivery for row in ledger.values() if row.outcome == "refused"} == {
        one.id
        for one in everything
        if one.id in damaged and int(one.id[1:]) > int(expected.get((one.source, one.period), "d-1")[1:])
    }
