"""The formats of bills that can be read: one row of FORMATS and one file each."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from pyspark.sql import Column

from weighbridge.billing.fields import Fields
from weighbridge.billing.formats import cur2, focus
from weighbridge.billing.money import Numbers
from weighbridge.errors import BillRefused
from weighbridge.ports import FileStore


@dataclass(frozen=True)
class Declared:
    """What a source declares where the bill leaves it open: ISO 4217 currency, form of dates, format, tag keys."""

    currency: str | None = None
    dates: str | None = None
    format: str | None = None
    keep_tag_keys: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Part:
    """One file of a delivery, where it lies, and the rows its manifest says."""

    key: str
    store: FileStore
    rows: int | None = None

    @property
    def name(self) -> str:
        """The file as messages name it."""
        return f"{self.store.root}/{self.key}"


@dataclass(frozen=True)
class BillFormat:
    """One family of formats: how it is recognised, and how its columns become ours.

    `needs`: the columns that tell it. `reads`: every column it can read, all others are left alone.
    `costs(fields, numbers, net)` gives the four costs and `others(fields, numbers, currency)` the rest of
    charges; `numbers` are stored amounts or residuals. `has_net` is true for a row that has a cost after
    discounts, None for a format without such costs: where rows of a billing period have it, `costs` is
    asked with net=True for that period.
    """

    family: str
    needs: tuple[str, ...]
    reads: tuple[str, ...]
    costs_read: tuple[str, ...]
    quantities_read: tuple[str, ...]
    tags: tuple[str, ...]
    currency: str
    category: str
    starts: tuple[str, str]
    ends: tuple[str, str]
    version: Callable[[Collection[str]], str]
    costs: Callable[[Fields, Numbers, bool], dict[str, Column]]
    has_net: Callable[[Fields, Numbers], Column | None]
    others: Callable[[Fields, Numbers, str | None], dict[str, Column]]


FORMATS: tuple[BillFormat, ...] = (
    BillFormat(
        family="focus",
        needs=focus.NEEDS,
        reads=focus.READS,
        costs_read=focus.COSTS,
        quantities_read=focus.QUANTITIES,
        tags=focus.TAGS,
        currency=focus.CURRENCY,
        category="ChargeCategory",
        starts=("BillingPeriodStart", "ChargePeriodStart"),
        ends=("BillingPeriodEnd", "ChargePeriodEnd"),
        version=focus.version,
        costs=focus.costs,
        has_net=focus.has_net,
        others=focus.others,
    ),
    BillFormat(
        family="cur-2.0",
        needs=cur2.NEEDS,
        reads=cur2.READS,
        costs_read=cur2.COSTS,
        quantities_read=cur2.QUANTITIES,
        tags=cur2.TAGS,
        currency=cur2.CURRENCY,
        category=cur2.TYPE,
        starts=("bill_billing_period_start_date", "line_item_usage_start_date"),
        ends=("bill_billing_period_end_date", "line_item_usage_end_date"),
        version=cur2.version,
        costs=cur2.costs,
        has_net=cur2.has_net,
        others=cur2.others,
    ),
)

READ = ("focus-1.0", "focus-1.1", "focus-1.2", "cur-2.0")

# Bills that are known and not read, told by columns that only they have.
KNOWN_OTHERS = (
    ("AWS CUR 1", ("identity/LineItemId", "bill/BillingPeriodStartDate")),
    ("AWS CUR 1", ("bill/BillingPeriodStartDate", "lineItem/UnblendedCost")),
    ("Azure native", ("MeterCategory",)),
    ("Azure native", ("meterCategory",)),
    ("Azure native", ("Meter Category",)),
    ("Azure native", ("PreTaxCost",)),
    ("Azure native", ("CostInBillingCurrency",)),
    ("Azure native", ("costInBillingCurrency",)),
    ("FOCUS Contract Commitment", ("ContractCommitmentId",)),
    ("FOCUS Billing Period", ("BillingPeriodStatus",)),
    ("FOCUS Invoice Detail", ("InvoiceDetailId", "PaymentDueDate")),
)


def recognise(columns: Collection[str], name: str, declared: Declared) -> tuple[BillFormat, str]:
    """The format and its version, for example focus-1.2; BillRefused with the columns that are lacking."""
    for bill_format in FORMATS:
        if all(column in columns for column in bill_format.needs):
            version = bill_format.version(columns)
            if version not in READ:
                raise BillRefused(
                    f"{name} is a format that is not asked for yet: {version}; known: {', '.join(READ)}"
                )
            if declared.format is not None and not _is(version, declared.format):
                raise BillRefused(f"{name} is {version}, but its source declares {declared.format}")
            return bill_format, version
    for other, marks in KNOWN_OTHERS:
        if all(mark in columns for mark in marks):
            raise BillRefused(
                f"{name} is a format that is not asked for yet: {other}; known: {', '.join(READ)}"
            )
    closest = max(FORMATS, key=lambda one: sum(column in columns for column in one.needs))
    lacking = [column for column in closest.needs if column not in columns]
    raise BillRefused(
        f"{name} is no bill that can be read: for {closest.family} it lacks {', '.join(lacking)}; "
        f"known: {', '.join(READ)}"
    )


def _is(version: str, declared: str) -> bool:
    """True for the version itself and for its family."""
    return version == declared or version.startswith(f"{declared}-")
