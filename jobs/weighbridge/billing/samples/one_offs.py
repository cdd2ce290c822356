"""What a bill has beside usage: fees, tax, credits, refunds and negotiated discounts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from weighbridge.billing.samples.aws import AWS
from weighbridge.billing.samples.catalogue import Cloud, Product
from weighbridge.billing.samples.charges import Kind
from weighbridge.billing.samples.meters import Meter
from weighbridge.billing.samples.order import Order

SHARED_ACCOUNT = 7
RESERVED_ACCOUNT = 4


@dataclass(frozen=True)
class OneOff:
    """One charge that spans the month or a day of it. `discount` is what its group takes off."""

    kind: Kind
    meter: Meter
    cost: float
    discount: float = 0.0
    days: tuple[int, int] | None = None  # from, to (exclusive), from 0; None: the whole month
    plan: int = -1


def _plain(
    cloud: Cloud, service: tuple[str, str], usage: str, unit: str = "", family: str = "Fee"
) -> Product:
    aws = cloud is AWS
    return Product(
        service[0] if aws else service[1], service[1], "Other", "Other (Other)", usage, "", family, unit, 0.0,
        "none",
    )  # fmt: skip


def plan_product(cloud: Cloud) -> Product:
    """What a savings plan's own charges are billed as."""
    service = (
        "ComputeSavingsPlans",
        "Savings Plans for AWS Compute usage" if cloud is AWS else "Savings plan",
    )
    product = _plain(cloud, service, "ComputeSP:1yr", "Hrs", "ComputeSavingsPlans")
    return replace(product, category="Compute", subcategory="Virtual Machines")


def reserved_product(cloud: Cloud) -> Product:
    """What reservations are bought for."""
    return next(product for product in cloud.products if product.reserved)


def unmetered(product: Product, account: int) -> Meter:
    """A meter for charges that have no resource, hence no tags."""
    return Meter(product, account, -1, None, ())


def one_offs(order: Order) -> list[list[OneOff]]:
    """Groups of charges that only make sense together, the most telling first.

    Amounts grow with the bill. A CUR without net columns shows a negotiated discount as a row of its own;
    FOCUS takes it off the row that it is for.
    """
    cloud, scale = order.cloud, float(order.rows)
    support = _plain(
        cloud, ("OCBPremiumSupport", "AWS Support (Business)" if cloud is AWS else "Support"), "Dollar"
    )
    firewall = _plain(
        cloud, ("awswaf", "AWS WAF" if cloud is AWS else "Azure WAF"), "RequestV2-Tier1", "Requests"
    )
    delivery = _plain(
        cloud, ("AmazonCloudFront", "Amazon CloudFront" if cloud is AWS else "CDN"), "Out-Bytes", "GB"
    )
    compute = replace(cloud.products[0], usage="", operation="", instance="")
    rows = order.format == "cur2"

    def cents(per_row: float) -> float:
        return max(0.01, round(per_row * scale, 2))

    groups = [[OneOff(Kind.FEE, unmetered(support, SHARED_ACCOUNT), cents(0.03))]]
    for account in range(len(cloud.accounts)):
        groups.append([OneOff(Kind.TAX, unmetered(compute, account), cents(0.012 + 0.003 * account))])
    groups.append([OneOff(Kind.CREDIT, unmetered(compute, 6), -cents(0.008), days=(4, 5))])
    for kind, product, cost, share in (
        (Kind.BUNDLED_DISCOUNT, firewall, cents(0.004), 1.0),
        (Kind.PRIVATE_DISCOUNT, delivery, cents(0.02), 0.15),
    ):
        meter, taken = unmetered(product, SHARED_ACCOUNT), round(cost * share, 2)
        pair = [OneOff(Kind.USAGE, meter, cost, taken)]
        groups.append([*pair, OneOff(kind, meter, -taken)] if rows else pair)
    groups.append([OneOff(Kind.REFUND, unmetered(compute, 1), -cents(0.002), days=(9, 10))])
    if order.committed:
        plan = unmetered(plan_product(cloud), SHARED_ACCOUNT)
        groups.append([OneOff(Kind.PLAN_REFUND, plan, -cents(0.001), days=(11, 12), plan=1)])
    return groups


def chosen(order: Order) -> list[OneOff]:
    """As many whole groups as fit into a fifth of the bill."""
    room, taken = order.rows // 5, []
    for group in one_offs(order):
        if len(group) <= room:
            room -= len(group)
            taken += group
    return taken
