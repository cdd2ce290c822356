"""The marts that by_hand.csv and the bill's files add up to, as CSV under expected/. Uses nothing of Weighbridge.

python tests/golden/one_bill/add_up.py
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

HERE = Path(__file__).parent
STORED = Decimal("1E-18")
PLACE = (
    "usage_month",
    "business_line",
    "model_version",
    "environment",
    "tenant",
    "region_id",
    "charge_category",
)
COSTS = ("billed_cost", "effective_cost", "list_cost")


def lines() -> list[dict[str, str]]:
    """The bill's lines, each with what by_hand.csv says of it."""
    by_hand = {row["line"]: row for row in csv.DictReader((HERE / "by_hand.csv").open(newline=""))}
    found = []
    for path in sorted(HERE.glob("bills/cur2/data/*/*.csv")):
        for row in csv.DictReader(path.open(newline="")):
            said = by_hand.pop(row["identity_line_item_id"])
            costs = {"billed_cost": row["line_item_unblended_cost"]}
            costs |= {"effective_cost": said["effective"], "list_cost": said["list"]}
            found.append({**{name: said[name] for name in PLACE}, **costs})
    assert not by_hand, f"no line of the bill: {sorted(by_hand)}"
    return found


def added(key: Sequence[str]) -> list[dict[str, str]]:
    """One row per key: each cost rounded once per line, then summed; empty where no line states it."""
    groups: dict[tuple[str, ...], list[dict[str, str]]] = defaultdict(list)
    for line in lines():
        groups[tuple(line[name] for name in key)].append(line)
    rows = []
    for values, members in sorted(groups.items()):
        row = dict(zip(key, values, strict=True))
        for cost in COSTS:
            stated = [Decimal(line[cost]).quantize(STORED, ROUND_HALF_UP) for line in members if line[cost]]
            row[cost] = format(sum(stated), "f") if stated else ""
        rows.append(row | {"charge_rows": str(len(members))})
    return rows


def table(key: Sequence[str]) -> list[list[str]]:
    """The same as a header and rows of text."""
    return [[*key, *COSTS, "charge_rows"], *[list(row.values()) for row in added(key)]]


MARTS = {
    "monthly_cost": PLACE,
    "cost_by_business_line": ("usage_month", "business_line", "charge_category"),
    "cost_by_region": ("usage_month", "region_id", "business_line"),
}


if __name__ == "__main__":
    for mart, key in MARTS.items():
        with (HERE / "expected" / f"{mart}.csv").open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(table(key))
