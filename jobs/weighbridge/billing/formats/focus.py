"""FOCUS 1.0 to 1.2, Cost and Usage, of any provider."""

from __future__ import annotations

from collections.abc import Collection

import pyspark.sql.functions as F
from pyspark.sql import Column

from weighbridge.billing.fields import Fields
from weighbridge.billing.money import Numbers

NEEDS = ("BillingPeriodStart", "ChargePeriodStart", "ChargeCategory", "BilledCost")

# Columns that each version brought, by the specification's column library.
NEW_IN = (
    ("1.4", ("InvoiceDetailId", "CommitmentProgramEligibilityDetails")),
    (
        "1.3",
        (
            "ServiceProviderName",
            "HostProviderName",
            "AllocatedMethodId",
            "AllocatedMethodDetails",
            "AllocatedResourceId",
            "AllocatedResourceName",
            "AllocatedTags",
            "ContractApplied",
        ),
    ),
    (
        "1.2",
        (
            "InvoiceId",
            "BillingAccountType",
            "SubAccountType",
            "PricingCurrency",
            "PricingCurrencyContractedUnitPrice",
            "PricingCurrencyEffectiveCost",
            "PricingCurrencyListUnitPrice",
        ),
    ),
    (
        "1.1",
        (
            "CapacityReservationId",
            "CapacityReservationStatus",
            "CommitmentDiscountQuantity",
            "CommitmentDiscountUnit",
            "ServiceSubcategory",
            "SkuMeter",
            "SkuPriceDetails",
        ),
    ),
)

MEASURES = {
    "billed_cost": "BilledCost",
    "effective_cost": "EffectiveCost",
    "list_cost": "ListCost",
    "contracted_cost": "ContractedCost",
}

AMOUNTS = {
    "commitment_discount_quantity": "CommitmentDiscountQuantity",
    "pricing_quantity": "PricingQuantity",
    "list_unit_price": "ListUnitPrice",
    "contracted_unit_price": "ContractedUnitPrice",
    "consumed_quantity": "ConsumedQuantity",
}

TIMES = {
    "billing_period_start": "BillingPeriodStart",
    "billing_period_end": "BillingPeriodEnd",
    "charge_period_start": "ChargePeriodStart",
    "charge_period_end": "ChargePeriodEnd",
}

TEXTS = {
    "provider_name": "ProviderName",
    "publisher_name": "PublisherName",
    "invoice_issuer_name": "InvoiceIssuerName",
    "invoice_id": "InvoiceId",
    "billing_account_id": "BillingAccountId",
    "billing_account_name": "BillingAccountName",
    "sub_account_id": "SubAccountId",
    "sub_account_name": "SubAccountName",
    "charge_category": "ChargeCategory",
    "charge_class": "ChargeClass",
    "charge_frequency": "ChargeFrequency",
    "charge_description": "ChargeDescription",
    "commitment_discount_id": "CommitmentDiscountId",
    "commitment_discount_name": "CommitmentDiscountName",
    "commitment_discount_category": "CommitmentDiscountCategory",
    "commitment_discount_type": "CommitmentDiscountType",
    "commitment_discount_status": "CommitmentDiscountStatus",
    "commitment_discount_unit": "CommitmentDiscountUnit",
    "capacity_reservation_id": "CapacityReservationId",
    "capacity_reservation_status": "CapacityReservationStatus",
    "pricing_category": "PricingCategory",
    "pricing_unit": "PricingUnit",
    "consumed_unit": "ConsumedUnit",
    "service_category": "ServiceCategory",
    "service_subcategory": "ServiceSubcategory",
    "service_name": "ServiceName",
    "sku_id": "SkuId",
    "sku_price_id": "SkuPriceId",
    "sku_meter": "SkuMeter",
    "region_id": "RegionId",
    "region_name": "RegionName",
    "availability_zone": "AvailabilityZone",
    "resource_id": "ResourceId",
    "resource_name": "ResourceName",
    "resource_type": "ResourceType",
}

CURRENCY = "BillingCurrency"
TAGS = ("Tags",)
COSTS = tuple(MEASURES.values())
QUANTITIES = tuple(AMOUNTS.values())
READS = (*COSTS, *QUANTITIES, *TIMES.values(), *TEXTS.values(), CURRENCY, *TAGS)


def version(columns: Collection[str]) -> str:
    """The newest version that brought any of these columns; focus-1.0 where none did."""
    for number, new in NEW_IN:
        if any(column in columns for column in new):
            return f"focus-{number}"
    return "focus-1.0"


def costs(fields: Fields, numbers: Numbers, net: bool) -> dict[str, Column]:
    """The four costs as the bill states them; a column that it lacks is null, never 0."""
    return {ours: numbers(theirs) for ours, theirs in MEASURES.items()}


def has_net(fields: Fields, numbers: Numbers) -> Column | None:
    """None: FOCUS has no second reading of its costs."""
    return None


def others(fields: Fields, numbers: Numbers, currency: str | None) -> dict[str, Column]:
    """Every other column of charges that the bill gives."""
    found = {ours: fields.text(theirs) for ours, theirs in TEXTS.items()}
    found |= {ours: fields.moment(theirs) for ours, theirs in TIMES.items()}
    found |= {ours: numbers(theirs) for ours, theirs in AMOUNTS.items()}
    found |= {
        "billing_currency": F.coalesce(fields.code(CURRENCY), F.lit(currency)),
        "charge_category": fields.code("ChargeCategory"),
    }
    return found
