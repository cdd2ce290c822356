"""AWS CUR 2.0: its line items in the shape of FOCUS, and the four costs from one table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass
from typing import TypeVar

import pyspark.sql.functions as F
from pyspark.sql import Column
from pyspark.sql.types import MapType, StringType

from weighbridge.billing.fields import Fields
from weighbridge.billing.money import Numbers

TYPE = "line_item_line_item_type"
DESCRIPTION = "line_item_line_item_description"
RESERVATION = "reservation_reservation_a_r_n"
SAVINGS_PLAN = "savings_plan_savings_plan_a_r_n"
USAGE = "line_item_usage_amount"
LIST_PRICE = "pricing_public_on_demand_rate"

UNBLENDED = "line_item_unblended_cost"
NET_UNBLENDED = "line_item_net_unblended_cost"
PUBLIC = "pricing_public_on_demand_cost"
COVERED = "savings_plan_savings_plan_effective_cost"
COMMITTED = "savings_plan_total_commitment_to_date"
USED = "savings_plan_used_commitment"
RESERVED = "reservation_effective_cost"
UNUSED_UPFRONT = "reservation_unused_amortized_upfront_fee_for_billing_period"
UNUSED_RECURRING = "reservation_unused_recurring_fee"

# The same cost after discounts. AWS fills these only in a billing period that has a discount.
NET = {
    UNBLENDED: NET_UNBLENDED,
    COVERED: "savings_plan_net_savings_plan_effective_cost",
    RESERVED: "reservation_net_effective_cost",
    UNUSED_UPFRONT: "reservation_net_unused_amortized_upfront_fee_for_billing_period",
    UNUSED_RECURRING: "reservation_net_unused_recurring_fee",
}

NEEDS = ("bill_billing_period_start_date", "line_item_usage_start_date", TYPE, UNBLENDED)
CURRENCY = "line_item_currency_code"
TAGS = ("resource_tags", "tags")
COSTS = (
    UNBLENDED,
    PUBLIC,
    COVERED,
    COMMITTED,
    USED,
    RESERVED,
    UNUSED_UPFRONT,
    UNUSED_RECURRING,
    *NET.values(),
)
QUANTITIES = (USAGE, LIST_PRICE)

# AWS's own sentence. Every other refund of a savings plan (a discount given back) is money.
UPFRONT_REFUND = "Refund for one-time fee for Savings Plan ID"


def _has_reservation(fields: Fields) -> Column:
    return fields.text(RESERVATION).isNotNull()


def _gives_an_upfront_fee_back(fields: Fields) -> Column:
    return F.coalesce(F.startswith(fields.text(DESCRIPTION), F.lit(UPFRONT_REFUND)), F.lit(False))


@dataclass(frozen=True)
class CostRule:
    """How the four costs of one line item type are read; of two rules of one type the first that holds counts.

    Billed is always the unblended cost, contracted is always null: CUR does not say it. `effective` is the
    column to take, a sum or difference of two columns, or None for nothing. `at_list`: list cost is what
    the bill says; else it is 0, for the usage that this row pays for has it. `uses`: the row's usage amount
    is usage. `is_discount`: the row takes off what other rows cost, which their net columns have done already.
    """

    line_item_type: str
    charge_category: str
    charge_frequency: str | None
    effective: str | tuple[str, str, str] | None
    at_list: bool = True
    uses: bool = False
    is_discount: bool = False
    only_if: Callable[[Fields], Column] | None = None


UNUSED_COMMITMENT = (COMMITTED, "minus", USED)
UNUSED_RESERVATION = (UNUSED_UPFRONT, "plus", UNUSED_RECURRING)

RULES: tuple[CostRule, ...] = (
    CostRule("Usage", "Usage", "Usage-Based", UNBLENDED, uses=True),
    CostRule("DiscountedUsage", "Usage", "Usage-Based", RESERVED, uses=True),
    CostRule("SavingsPlanCoveredUsage", "Usage", "Usage-Based", COVERED, uses=True),
    # It takes back what covered usage was billed at on-demand prices; the usage happened once.
    CostRule("SavingsPlanNegation", "Usage", "Usage-Based", None, at_list=False),
    CostRule("SavingsPlanRecurringFee", "Purchase", "Recurring", UNUSED_COMMITMENT, at_list=False),
    CostRule("SavingsPlanUpfrontFee", "Purchase", "One-Time", None, at_list=False),
    CostRule("RIFee", "Purchase", "Recurring", UNUSED_RESERVATION, at_list=False),
    CostRule("Fee", "Purchase", "One-Time", None, at_list=False, only_if=_has_reservation),
    CostRule("Fee", "Purchase", "One-Time", UNBLENDED),
    CostRule("Refund", "Adjustment", "One-Time", None, at_list=False, only_if=_gives_an_upfront_fee_back),
    CostRule("Refund", "Adjustment", "One-Time", UNBLENDED),
    CostRule("Credit", "Credit", "One-Time", UNBLENDED),
    CostRule("Tax", "Tax", "Usage-Based", UNBLENDED),
    CostRule("BundledDiscount", "Adjustment", "Usage-Based", UNBLENDED, is_discount=True),
    CostRule("Discount", "Adjustment", "Usage-Based", UNBLENDED, is_discount=True),
    CostRule("DistributorDiscount", "Adjustment", "Usage-Based", UNBLENDED, is_discount=True),
    CostRule("EdpDiscount", "Adjustment", "Usage-Based", UNBLENDED, is_discount=True),
    CostRule("PrivateRateDiscount", "Adjustment", "Usage-Based", UNBLENDED, is_discount=True),
    CostRule("RiVolumeDiscount", "Adjustment", "Usage-Based", UNBLENDED, is_discount=True),
    CostRule("SppDiscount", "Adjustment", "Usage-Based", UNBLENDED, is_discount=True),
)

# A type that AWS brings after this was written: its money counts as it was billed.
OTHER = CostRule("", "Adjustment", None, UNBLENDED)

TEXTS = {
    "invoice_id": "bill_invoice_id",
    "billing_account_id": "bill_payer_account_id",
    "billing_account_name": "bill_payer_account_name",
    "sub_account_id": "line_item_usage_account_id",
    "sub_account_name": "line_item_usage_account_name",
    "publisher_name": "bill_billing_entity",
    "invoice_issuer_name": "bill_invoicing_entity",
    "charge_description": DESCRIPTION,
    "commitment_discount_type": "savings_plan_offering_type",
    "pricing_unit": "pricing_unit",
    "sku_id": "product_sku",
    "sku_price_id": "pricing_rate_id",
    "sku_meter": "line_item_usage_type",
    "service_category": "product_product_family",
    "region_id": "product_region_code",
    "availability_zone": "line_item_availability_zone",
    "resource_id": "line_item_resource_id",
    "x_line_item_type": TYPE,
    "x_usage_type": "line_item_usage_type",
    "x_operation": "line_item_operation",
}

TIMES = {
    "billing_period_start": "bill_billing_period_start_date",
    "billing_period_end": "bill_billing_period_end_date",
    "charge_period_start": "line_item_usage_start_date",
    "charge_period_end": "line_item_usage_end_date",
}

SERVICE = ("product_servicecode", "line_item_product_code")
READS = tuple(
    dict.fromkeys(
        (
            *(*COSTS, *QUANTITIES, *TIMES.values(), *TEXTS.values(), *SERVICE, *TAGS),
            *(CURRENCY, RESERVATION, SAVINGS_PLAN, "product"),
        )
    )
)


def version(columns: Collection[str]) -> str:
    """cur-2.0: AWS has made no other since."""
    return "cur-2.0"


def has_net(fields: Fields, numbers: Numbers) -> Column | None:
    """True for a row with a cost after discounts; None where the bill has no such column."""
    if NET_UNBLENDED not in fields:
        return None
    return F.coalesce(numbers(NET_UNBLENDED) != numbers.zero, F.lit(False))


def costs(fields: Fields, numbers: Numbers, net: bool) -> dict[str, Column]:
    """The four costs by RULES. With `net`, effective is after discounts, and discount rows are 0 in it.

    Without it, effective is before discounts and discount rows stand as billed. Never both: either way
    the discount is counted once, so that both agree per billing period.
    """

    def of(column: str) -> Column:
        after_discounts = NET.get(column)
        if net and after_discounts is not None and after_discounts in fields:
            return F.coalesce(numbers(after_discounts), numbers(column))
        return numbers(column)

    def effective(rule: CostRule) -> Column:
        if rule.effective is None or (net and rule.is_discount):
            return numbers.zero
        if isinstance(rule.effective, str):
            return of(rule.effective)
        one, sign, other = rule.effective
        join = numbers.plus if sign == "plus" else numbers.minus
        return join(of(one), of(other))

    public = numbers(PUBLIC)
    return {
        "billed_cost": numbers(UNBLENDED),
        "effective_cost": _by_rule(
            fields, lambda rule: (rule.effective, net and rule.is_discount), effective
        ),
        "list_cost": _by_rule(
            fields,
            lambda rule: rule.at_list,
            lambda rule: public if rule.at_list else F.when(public.isNotNull(), numbers.zero),
        ),
        "contracted_cost": F.lit(None),
    }


Same = TypeVar("Same", bound=Hashable)


def _by_rule(fields: Fields, same: Callable[[CostRule], Same], value: Callable[[CostRule], Column]) -> Column:
    """The value of the rule that holds for a row. Rules whose value is the `same` are asked once."""
    kind = fields.code(TYPE)
    conditional = [rule for rule in RULES if rule.only_if is not None]
    by_type: dict[Same, list[CostRule]] = {}
    for rule in RULES:
        if rule.only_if is None:
            by_type.setdefault(same(rule), []).append(rule)
    found = value(OTHER)
    for alike, rules in by_type.items():
        if alike != same(OTHER):
            found = F.when(kind.isin([rule.line_item_type for rule in rules]), value(rules[0])).otherwise(
                found
            )
    for rule in conditional:
        assert rule.only_if is not None
        found = F.when((kind == rule.line_item_type) & rule.only_if(fields), value(rule)).otherwise(found)
    return found


def _text_by_rule(fields: Fields, text: Callable[[CostRule], str | None]) -> Column:
    return _by_rule(fields, text, lambda rule: F.lit(text(rule)).cast("string"))


def others(fields: Fields, numbers: Numbers, currency: str | None) -> dict[str, Column]:
    """Every other column of charges that the bill gives."""
    kind = fields.code(TYPE)
    plan, reservation = fields.text(SAVINGS_PLAN), fields.text(RESERVATION)
    amount = numbers(USAGE)
    is_used = kind.isin("SavingsPlanCoveredUsage", "DiscountedUsage")
    is_usage = kind.isin([rule.line_item_type for rule in RULES if rule.uses])
    is_negation = kind == "SavingsPlanNegation"
    found = {ours: fields.text(theirs) for ours, theirs in TEXTS.items()}
    found |= {ours: fields.moment(theirs) for ours, theirs in TIMES.items()}
    found |= {
        "provider_name": F.lit("AWS"),
        "billing_currency": F.coalesce(fields.code(CURRENCY), F.lit(currency)),
        "charge_category": F.when(kind.isNotNull(), _text_by_rule(fields, lambda rule: rule.charge_category)),
        "charge_frequency": _text_by_rule(fields, lambda rule: rule.charge_frequency),
        "commitment_discount_id": F.coalesce(plan, reservation),
        "commitment_discount_category": F.when(plan.isNotNull(), "Spend").when(
            reservation.isNotNull(), "Usage"
        ),
        "commitment_discount_status": F.when(is_used, "Used").when(
            kind.isin("SavingsPlanRecurringFee", "RIFee"), "Unused"
        ),
        "pricing_category": F.when(is_used, "Committed").when(kind == "Usage", "Standard"),
        "consumed_quantity": F.when(is_usage, amount).when(is_negation, numbers.zero),
        "consumed_unit": F.when(is_usage | is_negation, fields.text("pricing_unit")),
        "pricing_quantity": F.when(is_negation, numbers.zero).otherwise(amount),
        "list_unit_price": numbers(LIST_PRICE),
        "service_name": F.coalesce(
            _in_product(fields, "product_name"), *[fields.text(name) for name in SERVICE]
        ),
    }
    return found


def _in_product(fields: Fields, key: str) -> Column:
    """A value of the `product` map, which comes as a map or as its JSON text; null where it is absent."""
    kind = fields.type_of("product")
    if isinstance(kind, MapType):
        return F.when(F.trim(fields.raw("product")[key]) != "", fields.raw("product")[key])
    if isinstance(kind, StringType):
        return F.get_json_object(fields.text("product"), f"$.{key}")
    return F.lit(None).cast("string")
