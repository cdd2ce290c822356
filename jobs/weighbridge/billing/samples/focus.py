"""A sample bill as FOCUS 1.2: as AWS exports it (Parquet, doubles) or as Azure does (CSV, long decimals)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weighbridge.billing.samples.azure import AZURE
from weighbridge.billing.samples.charges import Charges, Floats, Kind, money, nano
from weighbridge.billing.samples.columns import (
    DOUBLE,
    DOUBLE_MAP,
    TEXT,
    TEXT_MAP,
    TIME,
    Column,
    Fill,
    by_kind,
    by_kind_or_meter,
    by_meter,
    constant,
    empty_maps,
    kinds,
    looked_up,
    maps_by_meter,
    number,
    only,
    time,
)
from weighbridge.billing.samples.meters import Meter
from weighbridge.billing.samples.order import Order

PURCHASES = (Kind.PLAN_FEE, Kind.RESERVATION_FEE, Kind.PLAN_UPFRONT, Kind.RESERVATION_UPFRONT, Kind.FEE)
USED, UNUSED = (Kind.COVERED, Kind.RESERVED), (Kind.PLAN_UNUSED, Kind.RESERVATION_UNUSED)
OF_PLAN = (Kind.COVERED, Kind.PLAN_FEE, Kind.PLAN_UNUSED, Kind.PLAN_UPFRONT, Kind.PLAN_REFUND)
OF_RESERVATION = (Kind.RESERVED, Kind.RESERVATION_FEE, Kind.RESERVATION_UNUSED, Kind.RESERVATION_UPFRONT)
METERED = (Kind.USAGE, *USED)
CATEGORIES = (
    dict.fromkeys(Kind, "Usage")
    | dict.fromkeys(PURCHASES, "Purchase")
    | {Kind.TAX: "Tax", Kind.CREDIT: "Credit", Kind.REFUND: "Credit", Kind.PLAN_REFUND: "Credit"}
)
DESCRIPTIONS = dict.fromkeys(Kind, "") | {
    Kind.PLAN_FEE: "Recurring fee of a savings plan",
    Kind.PLAN_UNUSED: "Unused part of a savings plan",
    Kind.PLAN_UPFRONT: "Upfront fee of a savings plan",
    Kind.RESERVATION_FEE: "Recurring fee of a reservation",
    Kind.RESERVATION_UNUSED: "Unused part of a reservation",
    Kind.RESERVATION_UPFRONT: "Upfront fee of a reservation",
    Kind.TAX: "Sales tax",
    Kind.CREDIT: "Promotional credit",
    Kind.REFUND: "Refund for an overcharge",
    Kind.PLAN_REFUND: "Refund of a savings plan's fee",
}


def columns(order: Order, meters: Sequence[Meter]) -> list[Column]:
    """The columns of this bill, sorted by name as AWS writes them."""
    azure = order.cloud is AZURE
    made = [Column(name, TEXT, fill) for name, fill in _texts(order, meters).items()]
    for name, say in _money().items():
        made.append(Column(name, TEXT, long_decimals(say)) if azure else Column(name, DOUBLE, number(say)))
    made += [Column(name, DOUBLE, number(say)) for name, say in _quantities(meters).items()]
    made += [Column(name, TIME, fill) for name, fill in _times(order).items()]
    made.append(Column("Tags", TEXT if azure else TEXT_MAP, _tags(order, meters)))
    if not azure:
        made.append(Column("x_Discounts", DOUBLE_MAP, empty_maps))
        made.append(Column("SkuPriceDetails", TEXT_MAP, maps_by_meter(meters, lambda m: {}, as_json=False)))
    return sorted(made, key=lambda column: column.name)


def _tags(order: Order, meters: Sequence[Meter]) -> Fill:
    """Tags as people wrote their keys; keys of the provider keep its prefix."""

    def own(meter: Meter) -> dict[str, str]:
        return {k: v for k, v in meter.tags if order.cloud is not AZURE or not k.startswith("aws:")}

    return maps_by_meter(meters, own, as_json=order.cloud is AZURE, empty=None)


def billed(rows: Charges) -> Floats:
    """Cash: what the invoice asks for. Covered usage and unused commitments cost nothing here."""
    coarse = money(nano(rows.cost - rows.discount))
    cash = np.where(rows.discount == 0, rows.cost, coarse)
    return np.where(kinds(rows, *USED, *UNUSED), 0.0, cash)


def effective(rows: Charges) -> Floats:
    """Accrual: commitments where they were used or left, their purchase nothing."""
    accrued = np.where(kinds(rows, *USED, *UNUSED), rows.amortised, billed(rows))
    # A support fee is bought too, but covers no other charge.
    return np.where(kinds(rows, *PURCHASES[:4]), 0.0, accrued)


def contracted(rows: Charges) -> Floats:
    """At the negotiated price: what is billed, or for used commitments what would have been."""
    return np.where(
        kinds(rows, *USED), rows.list_cost, np.where(kinds(rows, *UNUSED), rows.amortised, billed(rows))
    )


def listed(rows: Charges) -> Floats:
    """At the public list price; as billed where there is no list."""
    return np.where(np.isnan(rows.list_cost) | kinds(rows, *PURCHASES), billed(rows), rows.list_cost)


def _money() -> dict[str, Callable[[Charges], Floats]]:
    return {
        "BilledCost": billed,
        "EffectiveCost": effective,
        "ListCost": listed,
        "ContractedCost": contracted,
    }


def _quantities(meters: Sequence[Meter]) -> dict[str, Callable[[Charges], Floats]]:
    rate = np.asarray([meter.product.rate or np.nan for meter in meters])

    def list_price(rows: Charges) -> Floats:
        return only(rate[rows.meter], kinds(rows, *METERED))

    def contracted_price(rows: Charges) -> Floats:
        return only(contracted(rows) / rows.quantity, kinds(rows, *METERED))

    return {
        "PricingQuantity": lambda rows: rows.quantity,
        "ConsumedQuantity": lambda rows: only(rows.quantity, kinds(rows, *METERED)),
        "ListUnitPrice": list_price,
        "ContractedUnitPrice": contracted_price,
        "PricingCurrencyListUnitPrice": list_price,
        "PricingCurrencyContractedUnitPrice": contracted_price,
        "PricingCurrencyEffectiveCost": effective,
        "CommitmentDiscountQuantity": lambda rows: only(rows.amortised, kinds(rows, *USED, *UNUSED)),
    }


def _times(order: Order) -> dict[str, Fill]:
    start, end = (int(moment.timestamp()) * 1000 for moment in (order.start, order.end))
    return {
        "BillingPeriodStart": time(lambda rows: np.full(len(rows), start)),
        "BillingPeriodEnd": time(lambda rows: np.full(len(rows), end)),
        "ChargePeriodStart": time(lambda rows: rows.start_ms),
        "ChargePeriodEnd": time(lambda rows: rows.end_ms),
    }


def _texts(order: Order, meters: Sequence[Meter]) -> dict[str, Fill]:
    cloud, azure = order.cloud, order.cloud is AZURE

    def kind(wanted: Sequence[int], text: str) -> Fill:
        return by_kind([text if k in wanted else None for k in Kind])

    def commitment(plan: int, reservation: str) -> Fill:
        """The plan's own text where a charge is about a plan, the reservation's where about that."""
        texts = [*(one[plan] for one in cloud.plans), reservation]

        def index(rows: Charges) -> Any:
            plan = np.where(kinds(rows, *OF_PLAN), rows.plan, -1)
            return np.where(kinds(rows, *OF_RESERVATION), len(texts) - 1, plan)

        return looked_up(texts, index)

    said = [f"{m.product.service_name} {m.product.usage}".strip() for m in meters]
    frequencies = [
        "One-Time" if k in (*PURCHASES[2:4], Kind.TAX, Kind.CREDIT, Kind.REFUND) else None for k in Kind
    ]
    recurring = (Kind.PLAN_FEE, Kind.RESERVATION_FEE, Kind.FEE)
    made: dict[str, Fill] = {
        "BillingAccountId": constant(cloud.payer),
        "BillingAccountName": constant(cloud.payer_name),
        "BillingAccountType": constant(cloud.payer_type),
        "BillingCurrency": constant("USD"),
        "CapacityReservationId": by_kind([None] * len(Kind)),
        "CapacityReservationStatus": by_kind([None] * len(Kind)),
        "ChargeCategory": by_kind([CATEGORIES[k] for k in Kind]),
        "ChargeClass": kind((Kind.REFUND,), "Correction"),
        "ChargeDescription": by_kind_or_meter([DESCRIPTIONS[k] for k in Kind], said),
        "ChargeFrequency": by_kind(
            [
                f or ("Recurring" if k in recurring else "Usage-Based")
                for k, f in zip(Kind, frequencies, strict=True)
            ]
        ),
        "CommitmentDiscountCategory": by_kind(
            ["Spend" if k in OF_PLAN else "Usage" if k in OF_RESERVATION else None for k in Kind]
        ),
        "CommitmentDiscountId": commitment(0, cloud.reservation),
        "CommitmentDiscountName": commitment(1, "reservation"),
        "CommitmentDiscountStatus": by_kind(
            ["Used" if k in USED else "Unused" if k in UNUSED else None for k in Kind]
        ),
        "CommitmentDiscountType": by_kind(
            [
                cloud.plan_type if k in OF_PLAN else "Reservation" if k in OF_RESERVATION else None
                for k in Kind
            ]
        ),
        "CommitmentDiscountUnit": kind((*USED, *UNUSED), "USD"),
        # Azure leaves the invoice open for enterprise agreements.
        "InvoiceId": by_kind([None if azure else f"{order.period.replace('-', '')}017"] * len(Kind)),
        "InvoiceIssuerName": constant(cloud.issuer),
        "PricingCategory": by_kind(
            ["Committed" if k in USED else "Standard" if k is Kind.USAGE else None for k in Kind]
        ),
        "PricingCurrency": constant("USD"),
        "ProviderName": constant(cloud.provider),
        "PublisherName": constant(cloud.provider),
        "SubAccountType": constant(cloud.account_type),
    }
    made |= {name: by_meter(meters, say) for name, say in _by_meter(order).items()}
    made["ConsumedUnit"] = where(made["PricingUnit"], METERED)
    return made


def where(fill: Fill, wanted: Sequence[int]) -> Fill:
    """A text column that is null for charges of other kinds."""
    return lambda rows: pc.if_else(
        pa.array(kinds(rows, *wanted)), fill(rows).cast(TEXT), pa.scalar(None, TEXT)
    )


def _by_meter(order: Order) -> dict[str, Callable[[Meter], str | None]]:
    cloud = order.cloud

    def region(meter: Meter, part: int) -> str:
        return cloud.regions[meter.region][part] if meter.region >= 0 else ""

    def sku(meter: Meter) -> str:
        return (
            f"{crc32((region(meter, 0) + meter.product.usage).encode()):012d}" if meter.product.rate else ""
        )

    own: dict[str, Callable[[Meter], str | None]] = {
        "AvailabilityZone": lambda m: region(m, 3) if m.product.shape == "instance" else "",
        "PricingUnit": lambda m: m.product.unit,
        "RegionId": lambda m: region(m, 0),
        "RegionName": lambda m: region(m, 1),
        "ResourceId": lambda m: m.resource,
        "ResourceName": lambda m: m.resource.replace(":", "/").rpartition("/")[2] if m.resource else "",
        "ResourceType": lambda m: m.product.shape if m.resource else "",
        "ServiceCategory": lambda m: m.product.category,
        "ServiceName": lambda m: m.product.service_name,
        "ServiceSubcategory": lambda m: m.product.subcategory,
        "SkuId": sku,
        "SkuMeter": lambda m: m.product.usage,
        "SkuPriceId": lambda m: f"{sku(m)}.JRTCKXETXF" if sku(m) else "",
        "SubAccountId": lambda m: cloud.accounts[m.account][0],
        "SubAccountName": lambda m: cloud.accounts[m.account][1],
    }
    if cloud is AZURE:
        return own | {
            "SkuPriceDetails": lambda m: f'{{"x_Size":"{m.product.instance}"}}' if m.product.instance else ""
        }
    return own | {"x_Operation": lambda m: m.product.operation, "x_ServiceCode": lambda m: m.product.service}


def long_decimals(say: Callable[[Charges], Floats]) -> Fill:
    """Money as decimal text with up to 28 decimals, as Azure writes it: usage gets digits that no double has.

    The digits depend on the charge alone, so every measure of a usage row that is equal stays equal, and
    commitments keep their nine decimals, so that used and unused still add up.
    """
    digits = np.asarray([f"{crc32(str(n).encode()):010d}{n * 7919 % 10**9:09d}" for n in range(1021)])

    def fill(rows: Charges) -> Any:
        nanos = nano(say(rows))
        whole, rest = np.divmod(np.abs(nanos), 10**9)
        sign = np.where(nanos < 0, "-", "")
        fraction = np.char.zfill(rest.astype("U9"), 9)
        more = np.where(
            (rows.kind == Kind.USAGE) & (nanos != 0), digits[rows.id[:, 0] * 31 + rows.id[:, 1]], ""
        )
        text = np.char.add(
            np.char.add(sign, whole.astype("U12")), np.char.add(np.char.add(".", fraction), more)
        )
        return pa.array(text.tolist(), TEXT)

    return fill
