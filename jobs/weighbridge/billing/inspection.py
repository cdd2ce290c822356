"""What a file or delivery is, in the form of `weighbridge inspect`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from weighbridge.billing.deliveries import check_parts, find_deliveries
from weighbridge.billing.formats import Declared, Part
from weighbridge.billing.reading import Survey, open_bill
from weighbridge.billing.reconcile import exact_sum, plain
from weighbridge.errors import BillRefused, WeighbridgeError
from weighbridge.ports import FileStore
from weighbridge.tables import MEASURES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A place is a store and the name of a file in it, or None for everything in it.
Place = tuple[FileStore, str | None]


def inspect_all(
    spark: SparkSession, paths: Sequence[str], place: Callable[[str], Place], declared: Declared
) -> list[dict[str, Any]]:
    """One object a path, or one a delivery where a path holds several; a refused one hides no other."""
    found: list[dict[str, Any]] = []
    for path in paths:
        try:
            store, name = place(path)
            bills = [[Part(key=name, store=store)]] if name is not None else _deliveries(store, path)
        except WeighbridgeError as error:
            found.append({"path": path, "refused": str(error)})
            continue
        for parts in bills:
            if isinstance(parts, str):
                found.append({"path": path, "refused": parts})
            else:
                found.append(_inspected(spark, path, parts, declared))
    return found


def _deliveries(store: FileStore, path: str) -> list[list[Part] | str]:
    found = find_deliveries(store, "inspected")
    bills: list[list[Part] | str] = [one.reason for one in found.broken]
    for delivery in found.deliveries:
        try:
            check_parts(store, delivery)
            bills.append([Part(key=part.key, store=store, rows=part.rows) for part in delivery.parts])
        except BillRefused as error:
            bills.append(str(error))
    if not bills:
        raise BillRefused(f"{path} holds no manifest of a delivery; name its files one by one")
    return bills


def _inspected(spark: SparkSession, path: str, parts: list[Part], declared: Declared) -> dict[str, Any]:
    try:
        if not parts:
            raise BillRefused("the delivery lists no file")
        bill = open_bill(spark, parts, declared)
        survey = bill.survey()
    except WeighbridgeError as error:
        return {"path": path, "refused": str(error)}
    return {
        "path": path,
        "format": bill.format,
        "rows": survey.rows,
        "periods": list(survey.periods),
        "totals": _totals(survey),
        "tags": _tags(survey),
        "files": [part.key for part in parts],
    }


def _totals(survey: Survey) -> dict[str, dict[str, str | None]]:
    found: dict[str, dict[str, str | None]] = {}
    currencies = sorted({currency for period in survey.periods.values() for currency in period.totals})
    for currency in currencies:
        for measure in MEASURES:
            all_totals = [
                p.totals[currency][measure] for p in survey.periods.values() if currency in p.totals
            ]
            amounts = [total.exact for total in all_totals if total is not None]
            text = plain(exact_sum(amounts)) if amounts else None
            if text is not None and "." in text:
                text = text.rstrip("0").rstrip(".")
            found.setdefault(currency, {})[measure.removesuffix("_cost")] = text
    return found


def _tags(survey: Survey) -> dict[str, dict[str, Any]]:
    counted: dict[str, int] = {}
    for period in survey.periods.values():
        for key, rows in period.tag_keys.items():
            counted[key] = counted.get(key, 0) + rows
    return {key: {"rows": rows, "of": survey.rows} for key, rows in sorted(counted.items())}


def as_text(found: Sequence[dict[str, Any]]) -> str:
    """The same for a person."""
    lines: list[str] = []
    for one in found:
        if "refused" in one:
            lines += [f"{one['path']}: refused", f"  {one['refused']}"]
            continue
        lines.append(f"{one['path']}: {one['format']}, {one['rows']} rows, {', '.join(one['periods'])}")
        for currency, totals in one["totals"].items():
            lines += [
                f"  {currency} {name:<11} {amount or 'not said':>40}" for name, amount in totals.items()
            ]
        lines += [f"  tag {key}: {tag['rows']} of {tag['of']} rows" for key, tag in one["tags"].items()]
    return "\n".join(lines)
