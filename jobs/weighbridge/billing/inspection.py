"""What a file or delivery is, in the form of `weighbridge inspect`; nothing is published."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from weighbridge.billing.deliveries import check_parts, find_deliveries
from weighbridge.billing.formats import Declared, Part
from weighbridge.billing.headers import ENDINGS
from weighbridge.billing.reading import Survey, open_bill
from weighbridge.billing.reconcile import exact_sum
from weighbridge.errors import BillRefused, WeighbridgeError
from weighbridge.ports import FileStore
from weighbridge.tables import MEASURES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Most of the time of a small bill goes into Spark's plan, which is made on one core.
AT_ONCE = 2

# A place is a store and the name of a file in it, or None for everything in it.
Place = tuple[FileStore, str | None]


@dataclass(frozen=True)
class Found:
    """One bill that lies at a path: its files, or why it has none that can be read."""

    parts: tuple[Part, ...] = ()
    manifest: str | None = None
    refused: str | None = None


def inspect_all(
    spark: SparkSession, paths: Sequence[str], place: Callable[[str], Place], declared: Declared
) -> list[dict[str, Any]]:
    """One object a path, or one a delivery where a path holds several; a refused one hides no other."""

    def answers(path: str) -> list[dict[str, Any]]:
        try:
            found = list(_bills_at(path, *place(path)))
        except WeighbridgeError as error:
            found = [Found(refused=str(error))]
        return [_inspected(spark, path, bill, declared) for bill in found]

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return [answer for found in pool.map(answers, paths) for answer in found]


def _bills_at(path: str, store: FileStore, name: str | None) -> Iterator[Found]:
    if name is not None:
        yield Found((Part(key=name, store=store),))
        return
    found = find_deliveries(store, "inspected")
    for broken in found.broken:
        yield Found(manifest=broken.manifest, refused=broken.reason)
    for delivery in found.deliveries:
        parts = tuple(Part(key=part.key, store=store, rows=part.rows) for part in delivery.parts)
        try:
            check_parts(store, delivery)
        except BillRefused as error:
            yield Found(manifest=delivery.manifest, refused=str(error))
        else:
            yield Found(parts, delivery.manifest)
    if not found.broken and not found.deliveries:
        yield _without_manifest(path, store)


def _without_manifest(path: str, store: FileStore) -> Found:
    """The bill files that lie directly in a folder, taken together: whether they are all there cannot be told."""
    keys = [file.key for file in store.list() if "/" not in file.key and file.key.lower().endswith(ENDINGS)]
    if not keys:
        raise BillRefused(
            f"{path} holds no manifest of a delivery and no file that ends in {', '.join(ENDINGS)}"
        )
    return Found(tuple(Part(key=key, store=store) for key in keys))


def _inspected(spark: SparkSession, path: str, found: Found, declared: Declared) -> dict[str, Any]:
    named = {"path": path} if found.manifest is None else {"path": path, "manifest": found.manifest}
    if found.refused is not None:
        return named | {"refused": found.refused}
    try:
        bill = open_bill(spark, found.parts, declared)
        survey = bill.survey()
        _require_rows(found.parts, survey)
    except WeighbridgeError as error:
        return named | {"refused": str(error)}
    except (PySparkException, Py4JError) as error:
        return named | {"refused": f"{path} could not be read: {str(error).strip().splitlines()[0]}"}
    return named | {
        "format": bill.format,
        "rows": survey.rows,
        "periods": list(survey.periods),
        "totals": _totals(survey),
        "tags": _tags(survey),
        "files": [part.key for part in found.parts],
    }


def _require_rows(parts: Sequence[Part], survey: Survey) -> None:
    for number, part in enumerate(parts, start=1):
        read = survey.rows_by_part.get(number, 0)
        if part.rows is not None and part.rows != read:
            raise BillRefused(f"{part.name} has {read} rows, but its manifest says {part.rows}")


def _totals(survey: Survey) -> dict[str, dict[str, str | None]]:
    """Currency -> measure -> exact sum over all periods as plain decimal text, None where no row has a value."""
    currencies = sorted({currency for period in survey.periods.values() for currency in period.totals})
    return {
        currency: {
            measure.removesuffix("_cost"): _sum_over_periods(survey, currency, measure)
            for measure in MEASURES
        }
        for currency in currencies
    }


def _sum_over_periods(survey: Survey, currency: str, measure: str) -> str | None:
    totals = [p.totals[currency][measure] for p in survey.periods.values() if currency in p.totals]
    amounts = [total.exact for total in totals if total is not None]
    return short(exact_sum(amounts)) if amounts else None


def short(amount: Decimal) -> str:
    """The number as plain text, without zeros at the end of its decimals."""
    text = format(amount, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _tags(survey: Survey) -> dict[str, dict[str, Any]]:
    """Tag key -> rows that have it, of how many, and the share as text."""
    counted: dict[str, int] = {}
    for period in survey.periods.values():
        for key, rows in period.tag_keys.items():
            counted[key] = counted.get(key, 0) + rows
    return {
        key: {"rows": rows, "of": survey.rows, "coverage": f"{rows / survey.rows:.1%}"}
        for key, rows in sorted(counted.items())
    }


def as_text(answers: Sequence[dict[str, Any]]) -> str:
    """The same for a person."""
    lines: list[str] = []
    for one in answers:
        name = one["path"] if "manifest" not in one else f"{one['path']} ({one['manifest']})"
        if "refused" in one:
            lines += [f"{name}: refused", f"  {one['refused']}"]
            continue
        lines.append(f"{name}: {one['format']}, {one['rows']:,} rows, {', '.join(one['periods'])}")
        for currency, totals in one["totals"].items():
            lines += [f"  {currency} {m:<11} {'not said' if t is None else t:>40}" for m, t in totals.items()]
        lines += [f"  tag {key}: {tag['rows']:,} rows, {tag['coverage']}" for key, tag in one["tags"].items()]
    return "\n".join(lines)
