"""A sample bill as AWS CUR 2.0: the columns of the table dictionary, in its types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from zlib import crc32

import numpy as np

from weighbridge.billing.samples.charges import DISCOUNTS, Charges, Floats, Kind, money, nano
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
    intervals,
    kinds,
    line_item_ids,
    looked_up,
    maps_by_meter,
    number,
    only,
    time,
)
from weighbridge.billing.samples.cur2_columns import DOUBLES, MAPS, TEXTS, TIMES
from weighbridge.billing.samples.meters import Meter
from weighbridge.billing.samples.order import Order

LINE_ITEM_TYPES = (
    "Usage", "SavingsPlanCoveredUsage", "SavingsPlanNegation", "SavingsPlanRecurringFee", None,
    "DiscountedUsage", "RIFee", None, "EdpDiscount", "Tax", "Fee", "Credit", "Refund", "Refund",
    "BundledDiscount", "PrivateRateDiscount", "SavingsPlanUpfrontFee", "Fee",
)  # fmt: skip
TERMS = ("OnDemand", "OnDemand", None, None, None, "Reserved", "Reserved", *[None] * 11)
WITH_PLAN = (Kind.COVERED, Kind.NEGATION, Kind.PLAN_FEE, Kind.PLAN_UPFRONT, Kind.PLAN_REFUND)
WITH_RESERVATION = (Kind.RESERVED, Kind.RESERVATION_FEE, Kind.RESERVATION_UPFRONT)
REFUNDS = (Kind.REFUND, Kind.PLAN_REFUND)
METERED = (Kind.USAGE, Kind.COVERED, Kind.NEGATION, Kind.RESERVED)


def columns(order: Order, meters: Sequence[Meter]) -> list[Column]:
    """The columns of this bill, sorted by name. Net columns are there only when ordered, as AWS does it."""
    filled = _texts(order, meters) | _numbers(order) | _times(order) | _maps(order, meters)
    types = dict.fromkeys(TEXTS, TEXT) | dict.fromkeys(DOUBLES, DOUBLE) | dict.fromkeys(TIMES, TIME)
    types |= dict.fromkeys(MAPS, TEXT if order.files == "csv" else TEXT_MAP)
    if order.files == "parquet":
        types["discount"] = DOUBLE_MAP
    if unknown := filled.keys() - types.keys():
        raise KeyError(f"not in the dictionary of CUR 2.0: {sorted(unknown)}")
    wanted = sorted(name for name in types if order.net or "_net_" not in name)
    return [Column(name, types[name], filled.get(name)) for name in wanted]


def tags(meter: Meter) -> dict[str, str]:
    """Tags under the keys of CUR 2.0: a prefix says who wrote them."""
    return {k.replace("aws:", "aws_") if k.startswith("aws:") else f"user_{k}": v for k, v in meter.tags}


def _texts(order: Order, meters: Sequence[Meter]) -> dict[str, Fill]:
    cloud = order.cloud
    plans = cloud.plans

    def plan(part: int) -> Fill:
        return looked_up(
            [one[part] for one in plans], lambda rows: np.where(kinds(rows, *WITH_PLAN), rows.plan, -1)
        )

    descriptions = dict.fromkeys(Kind, "") | {
        Kind.PLAN_FEE: "1 year savings plan, recurring commitment",
        Kind.ENTERPRISE_DISCOUNT: "Enterprise Discount Program Discount",
        Kind.TAX: "Tax for product code AmazonEC2",
        Kind.CREDIT: "AWS promotional credits",
        Kind.REFUND: "Refund for an overcharge of Amazon EC2",
        Kind.PLAN_REFUND: f"Refund for one-time fee for Savings Plan ID: {plans[1][0].rpartition('/')[2]}",
    }
    return _texts_of_meters(order, meters) | {
        "bill_bill_type": by_kind(["Refund" if k in REFUNDS else "Anniversary" for k in Kind]),
        "bill_billing_entity": constant("AWS"),
        "bill_invoice_id": constant(f"{order.period.replace('-', '')}017"),
        "bill_invoicing_entity": constant(cloud.issuer),
        "bill_payer_account_id": constant(cloud.payer),
        "bill_payer_account_name": constant(cloud.payer_name),
        "identity_line_item_id": line_item_ids("q7ha" * 9 + "wza"),
        "identity_time_interval": intervals,
        "line_item_currency_code": constant("USD"),
        "line_item_legal_entity": constant(cloud.issuer),
        "line_item_line_item_description": by_kind_or_meter(
            list(descriptions.values()), [_said(order, meter) for meter in meters]
        ),
        "line_item_line_item_type": by_kind(LINE_ITEM_TYPES),
        "line_item_tax_type": by_kind(["USSalesTax" if k is Kind.TAX else None for k in Kind]),
        "pricing_currency": by_kind(["USD" if k in METERED else None for k in Kind]),
        "pricing_term": by_kind(TERMS),
        "reservation_reservation_a_r_n": by_kind(
            [cloud.reservation if k in WITH_RESERVATION else None for k in Kind]
        ),
        "savings_plan_savings_plan_a_r_n": plan(0),
        "savings_plan_offering_type": plan(1),
        "savings_plan_payment_option": plan(2),
        "savings_plan_purchase_term": by_kind(["1yr" if k in WITH_PLAN else None for k in Kind]),
    }


def _said(order: Order, meter: Meter) -> str:
    """A line's description in the style of AWS."""
    product = meter.product
    rate = f"${product.rate:.10f}".rstrip("0").rstrip(".") if product.rate else ""
    return (
        f"{rate} per {product.unit} of {product.usage}"
        if rate
        else f"{product.service_name} {product.usage}".strip()
    )


def _texts_of_meters(order: Order, meters: Sequence[Meter]) -> dict[str, Fill]:
    cloud = order.cloud

    def region(meter: Meter, part: int) -> str:
        return cloud.regions[meter.region][part] if meter.region >= 0 else ""

    def usage_type(meter: Meter) -> str:
        return region(meter, 2) + meter.product.usage

    def rate(meter: Meter) -> str:
        return f"{meter.product.rate:.10f}" if meter.product.rate else ""

    def sku(meter: Meter) -> str:
        return f"{crc32(usage_type(meter).encode()):012d}" if meter.product.rate else ""

    by: dict[str, Callable[[Meter], str | None]] = {
        "line_item_availability_zone": lambda m: region(m, 3) if m.product.shape == "instance" else "",
        "line_item_operation": lambda m: m.product.operation,
        "line_item_product_code": lambda m: m.product.service,
        "line_item_resource_id": lambda m: m.resource,
        "line_item_usage_account_id": lambda m: cloud.accounts[m.account][0],
        "line_item_usage_account_name": lambda m: cloud.accounts[m.account][1],
        "line_item_usage_type": usage_type,
        "line_item_unblended_rate": rate,
        "line_item_blended_rate": rate,
        "pricing_public_on_demand_rate": rate,
        "pricing_rate_id": sku,
        "pricing_unit": lambda m: m.product.unit,
        "product_instance_type": lambda m: m.product.instance,
        "product_location": lambda m: region(m, 1),
        "product_operation": lambda m: m.product.operation,
        "product_product_family": lambda m: m.product.family,
        "product_region_code": lambda m: region(m, 0),
        "product_servicecode": lambda m: m.product.service,
        "product_sku": sku,
        "product_usagetype": usage_type,
    }
    return {name: by_meter(meters, say) for name, say in by.items()}


def _numbers(order: Order) -> dict[str, Fill]:
    def of(say: Callable[[Charges], Floats], *wanted: int) -> Fill:
        return number(lambda rows: only(say(rows), kinds(rows, *wanted)) if wanted else say(rows))

    recurring = of(lambda r: rounded(r.amortised - r.upfront), Kind.RESERVED)
    upfront = of(lambda r: r.upfront, Kind.RESERVED)
    reserved = of(lambda r: r.amortised, Kind.RESERVED)
    covered = of(lambda r: r.amortised, Kind.COVERED)
    paid_monthly = of(lambda r: r.cost, Kind.PLAN_FEE)
    paid_before = of(lambda r: rounded(r.committed - r.cost), Kind.PLAN_FEE)
    unused_recurring = of(lambda r: rounded(r.amortised - r.upfront), Kind.RESERVATION_FEE)
    unused_upfront = of(lambda r: r.upfront, Kind.RESERVATION_FEE)
    return {
        "discount_total_discount": number(lambda r: off(r) if order.net else np.full(len(r), np.nan)),
        "line_item_blended_cost": of(lambda r: r.cost),
        "line_item_unblended_cost": of(lambda r: r.cost),
        "line_item_net_unblended_cost": of(net),
        "line_item_usage_amount": of(lambda r: r.quantity),
        "pricing_public_on_demand_cost": of(lambda r: r.list_cost),
        "reservation_effective_cost": reserved,
        "reservation_net_effective_cost": reserved,
        "reservation_recurring_fee_for_usage": recurring,
        "reservation_net_recurring_fee_for_usage": recurring,
        "reservation_amortized_upfront_cost_for_usage": upfront,
        "reservation_net_amortized_upfront_cost_for_usage": upfront,
        "reservation_unused_recurring_fee": unused_recurring,
        "reservation_net_unused_recurring_fee": unused_recurring,
        "reservation_unused_amortized_upfront_fee_for_billing_period": unused_upfront,
        "reservation_net_unused_amortized_upfront_fee_for_billing_period": unused_upfront,
        "savings_plan_savings_plan_effective_cost": covered,
        "savings_plan_net_savings_plan_effective_cost": covered,
        "savings_plan_total_commitment_to_date": of(lambda r: r.committed, Kind.PLAN_FEE),
        "savings_plan_used_commitment": of(lambda r: r.used, Kind.PLAN_FEE),
        "savings_plan_recurring_commitment_for_billing_period": paid_monthly,
        "savings_plan_net_recurring_commitment_for_billing_period": paid_monthly,
        "savings_plan_amortized_upfront_commitment_for_billing_period": paid_before,
        "savings_plan_net_amortized_upfront_commitment_for_billing_period": paid_before,
    }


def rounded(amounts: Floats) -> Floats:
    """Differences of nano-units as nano-units again."""
    return money(nano(np.nan_to_num(amounts))) + amounts * 0


def off(rows: Charges) -> Floats:
    """What negotiated discounts take off each row, as a positive amount; nan where they take nothing."""
    return np.where(rows.discount == 0, np.nan, rows.discount)


def net(rows: Charges) -> Floats:
    """Costs after discounts: each row bears its own, and the rows that were discounts cost nothing."""
    coarse = rounded(rows.cost - rows.discount)
    return np.where(kinds(rows, *DISCOUNTS), 0.0, np.where(rows.discount == 0, rows.cost, coarse))


def _times(order: Order) -> dict[str, Fill]:
    start, end = (int(moment.timestamp()) * 1000 for moment in (order.start, order.end))
    return {
        "bill_billing_period_start_date": time(lambda rows: np.full(len(rows), start)),
        "bill_billing_period_end_date": time(lambda rows: np.full(len(rows), end)),
        "line_item_usage_start_date": time(lambda rows: rows.start_ms),
        "line_item_usage_end_date": time(lambda rows: rows.end_ms),
    }


def _maps(order: Order, meters: Sequence[Meter]) -> dict[str, Fill]:
    as_json = order.files == "csv"
    cloud = order.cloud

    def product(meter: Meter) -> dict[str, str]:
        region = cloud.regions[meter.region][0] if meter.region >= 0 else ""
        said = {"product_name": meter.product.service_name, "region": region, "group": meter.product.family}
        return {key: value for key, value in said.items() if value}

    def none(meter: Meter) -> dict[str, str]:
        return {}

    return {
        "product": maps_by_meter(meters, product, as_json),
        "resource_tags": maps_by_meter(meters, tags, as_json),
        "cost_category": maps_by_meter(meters, none, as_json),
        "discount": maps_by_meter(meters, none, True) if as_json else empty_maps,
    }
