"""Every Delta table on one page: grain, key, partition, columns with units, and how long versions are kept."""

from __future__ import annotations

from dataclasses import dataclass

# The lake's own format. A program refuses a lake with a higher number (see adapters/lake.py).
LAKE_FORMAT = 1

# Money and quantities as they are stored. 18 decimals hold what clouds bill; what is rounded away is kept
# as an exact sum per delivery in the ledger (billing/money.py).
AMOUNT = "decimal(38,18)"

MEASURES = ("billed_cost", "effective_cost", "list_cost", "contracted_cost")


@dataclass(frozen=True)
class Column:
    """One column: its Spark type, whether null may stand in it, and what it says, with its unit."""

    name: str
    type: str
    says: str
    nullable: bool = True


@dataclass(frozen=True)
class Table:
    """One Delta table. `grain` says what one row is; `key` names the columns that make it unique."""

    name: str
    grain: str
    key: tuple[str, ...]
    partition_by: tuple[str, ...]
    keep_versions_days: int
    columns: tuple[Column, ...]

    @property
    def column_names(self) -> list[str]:
        """Names in table order."""
        return [column.name for column in self.columns]

    @property
    def ddl(self) -> str:
        """Columns as a Spark DDL string, without comments: what a DataFrame must have to be written."""
        return ", ".join(f"{c.name} {c.type}{'' if c.nullable else ' NOT NULL'}" for c in self.columns)


def _amount(name: str, says: str) -> Column:
    return Column(name, AMOUNT, says)


def _text(name: str, says: str, nullable: bool = True) -> Column:
    return Column(name, "string", says, nullable)


_MONEY = (
    _amount("billed_cost", "Cash basis: what the invoice asks for, in billing_currency"),
    _amount("effective_cost", "Accrual: commitments amortised, their purchase 0, in billing_currency"),
    _amount("list_cost", "At public list price, in billing_currency; null where the bill does not say"),
    _amount("contracted_cost", "At negotiated price, in billing_currency; null where the bill does not say"),
)

ATTRIBUTION_STATES = ("declared", "inherited", "missing")
UNATTRIBUTED = "unattributed"
UNATTRIBUTED_REASONS = ("no_tag", "key_absent", "unknown_value", "untaggable_discount")
CHARGE_CATEGORIES = ("Usage", "Purchase", "Tax", "Credit", "Adjustment")

CHARGES = Table(
    name="charges",
    grain="One row per line of a bill, in the shape of FOCUS 1.2; columns of ours begin with x_",
    key=("x_source", "x_billing_period", "x_delivery", "x_part", "x_row"),
    partition_by=("x_source", "x_billing_period"),
    keep_versions_days=35,
    columns=(
        _text("x_source", "Name of the source in policy/sources.yaml", nullable=False),
        _text("x_billing_period", "Month of the bill, YYYY-MM", nullable=False),
        _text("x_delivery", "Delivery that brought this row; key of `deliveries`", nullable=False),
        Column(
            "x_part", "int", "Which file of the delivery, in the manifest's order, from 1", nullable=False
        ),
        Column("x_row", "bigint", "Which row of that file, from 1, the header not counted", nullable=False),
        _text("provider_name", "Who made the service available: AWS, Microsoft, Google Cloud, …"),
        _text("publisher_name", "Who made the service"),
        _text("invoice_issuer_name", "Who sends the invoice"),
        _text("invoice_id", "Invoice this row belongs to; null until the month is invoiced"),
        _text("billing_account_id", "Payer account"),
        _text("billing_account_name", "Payer account's name"),
        _text("sub_account_id", "Account, subscription or project that used the service"),
        _text("sub_account_name", "Its name"),
        Column(
            "billing_period_start", "timestamp", "Begin of the bill's month, UTC, inclusive", nullable=False
        ),
        Column("billing_period_end", "timestamp", "End of the bill's month, UTC, exclusive"),
        Column(
            "charge_period_start", "timestamp", "Begin of what is charged, UTC, inclusive", nullable=False
        ),
        Column("charge_period_end", "timestamp", "End of what is charged, UTC, exclusive"),
        *_MONEY,
        _text("billing_currency", "ISO 4217 code of the four costs", nullable=False),
        _text("charge_category", "Usage, Purchase, Tax, Credit or Adjustment", nullable=False),
        _text("charge_class", "Correction, or null"),
        _text("charge_frequency", "One-Time, Recurring or Usage-Based"),
        _text("charge_description", "The bill's own words"),
        _text("commitment_discount_id", "Reservation or savings plan that covers or is this charge"),
        _text("commitment_discount_name", "Its name"),
        _text("commitment_discount_category", "Spend or Usage"),
        _text("commitment_discount_type", "The provider's word for it"),
        _text("commitment_discount_status", "Used or Unused"),
        _amount("commitment_discount_quantity", "Amount of the commitment, in commitment_discount_unit"),
        _text("commitment_discount_unit", "Unit of commitment_discount_quantity"),
        _text("capacity_reservation_id", "Capacity reservation of this charge"),
        _text("capacity_reservation_status", "Used or Unused"),
        _text("pricing_category", "Standard, Dynamic, Committed or Other"),
        _amount("pricing_quantity", "Quantity priced, in pricing_unit"),
        _text("pricing_unit", "Unit of pricing_quantity"),
        _amount("list_unit_price", "List price per pricing_unit, in billing_currency"),
        _amount("contracted_unit_price", "Negotiated price per pricing_unit, in billing_currency"),
        _amount("consumed_quantity", "Quantity used, in consumed_unit"),
        _text("consumed_unit", "Unit of consumed_quantity; never add two units"),
        _text("service_category", "FOCUS service category"),
        _text("service_subcategory", "FOCUS service subcategory"),
        _text("service_name", "The provider's name of the service"),
        _text("sku_id", "What was bought"),
        _text("sku_price_id", "At which price point"),
        _text("sku_meter", "What the SKU measures"),
        _text("region_id", "Region, as the provider writes it"),
        _text("region_name", "Its name"),
        _text("availability_zone", "Zone within the region"),
        _text("resource_id", "Resource charged"),
        _text("resource_name", "Its name"),
        _text("resource_type", "Its type"),
        Column("tags", "map<string,string>", "Every tag of the row under the key the bill wrote"),
        _text("x_line_item_type", "AWS CUR: line_item_line_item_type"),
        _text("x_usage_type", "AWS CUR: line_item_usage_type"),
        _text("x_operation", "AWS CUR: line_item_operation"),
        _text("x_business_line", "Who pays; 'unattributed' where no rule says", nullable=False),
        _text("x_model_version", "Model version by tag; null where no tag says"),
        _text("x_environment", "Environment by tag; null where no tag says"),
        _text("x_tenant", "Tenant by tag; null where no tag says"),
        _text(
            "x_attribution_state", "declared (by tag), inherited (by resource or account) or missing", False
        ),
        _text("x_unattributed_reason", "no_tag, key_absent, unknown_value or untaggable_discount; else null"),
        _text("x_rule_id", "Rule of policy/business_lines.csv that chose the business line"),
        _text("x_policy_digest", "sha256 of the policy that attributed this row", nullable=False),
    ),
)

DAILY_COSTS = Table(
    name="daily_costs",
    grain="One row per usage day and everything in the key: charges summed, never spread over days",
    key=(
        "source",
        "billing_period",
        "usage_day",
        "business_line",
        "model_version",
        "environment",
        "tenant",
        "region_id",
        "provider_name",
        "sub_account_id",
        "service_name",
        "charge_category",
        "charge_class",
        "charge_frequency",
        "invoice_id",
        "billing_currency",
        "consumed_unit",
        "attribution_state",
        "unattributed_reason",
    ),
    partition_by=("source", "billing_period"),
    keep_versions_days=400,
    columns=(
        _text("source", "Name of the source in policy/sources.yaml", nullable=False),
        _text("billing_period", "Month of the bill, YYYY-MM", nullable=False),
        Column("usage_day", "date", "Day (UTC) on which the charge period starts", nullable=False),
        _text("business_line", "Who pays; 'unattributed' where no rule says", nullable=False),
        _text("model_version", "Model version by tag; null where no tag says"),
        _text("environment", "Environment by tag; null where no tag says"),
        _text("tenant", "Tenant by tag; null where no tag says"),
        _text("region_id", "Region, as the provider writes it"),
        _text("provider_name", "Who made the service available"),
        _text("sub_account_id", "Account, subscription or project that used the service"),
        _text("service_name", "The provider's name of the service"),
        _text("charge_category", "Usage, Purchase, Tax, Credit or Adjustment", nullable=False),
        _text("charge_class", "Correction, or null"),
        _text("charge_frequency", "One-Time, Recurring or Usage-Based"),
        _text("invoice_id", "Invoice; null until the month is invoiced"),
        _text("billing_currency", "ISO 4217 code; never add two currencies", nullable=False),
        _text("consumed_unit", "Unit of consumed_quantity; never add two units"),
        _text("attribution_state", "declared, inherited or missing", nullable=False),
        _text("unattributed_reason", "Why nobody pays; null where somebody does"),
        *_MONEY,
        _amount("consumed_quantity", "Quantity used, in consumed_unit; null where the bill does not say"),
        Column("charge_rows", "bigint", "How many charges are summed here", nullable=False),
        _text("delivery", "Delivery behind these rows; key of `deliveries`", nullable=False),
        _text("policy_digest", "sha256 of the policy that attributed them", nullable=False),
    ),
)

DELIVERIES = Table(
    name="deliveries",
    grain="The ledger: one row per delivery and billing period that was ever found",
    key=("delivery", "source", "billing_period"),
    partition_by=(),
    keep_versions_days=400,
    columns=(
        _text("delivery", "First 16 hex digits of sha256 over source and manifest", nullable=False),
        _text("source", "Name of the source in policy/sources.yaml", nullable=False),
        _text("billing_period", "Month of the bill, YYYY-MM; null where it could not be told"),
        _text("format", "Format and version, for example cur-2.0 or focus-1.2"),
        _text("manifest", "Where the manifest (or the loose file) lay"),
        _text(
            "manifest_digest",
            "sha256 of the manifest, or of the loose file and its given time",
            nullable=False,
        ),
        Column("delivered_at", "timestamp", "Age of the delivery, UTC: the order in which deliveries count"),
        _text("delivered_at_from", "Where that time comes from: manifest, path, modified or given"),
        Column(
            "parts",
            "array<struct<path:string,bytes:bigint,rows:bigint,etag:string>>",
            "The listed files in the manifest's order",
        ),
        Column("unlisted_files", "int", "Files beside them that the manifest does not list; ignored"),
        Column("rows", "bigint", "Rows read"),
        Column(
            "totals",
            "array<struct<currency:string,measure:string,stored:decimal(38,18),residual:string,total:string>>",
            "Exact totals: `stored` is in charges, `residual` was rounded away, `total` is their exact sum",
        ),
        _text("columns_digest", "sha256 of the column names and types of the first part"),
        _text("policy_digest", "sha256 of the policy that attributed it"),
        _text("outcome", "published, superseded, refused or dismissed", nullable=False),
        _text("reason", "Why it was refused, superseded or dismissed"),
        Column("commits", "map<string,bigint>", "Delta version that this delivery produced, per table"),
        Column("versions", "map<string,bigint>", "Version of every table when its night was complete"),
        _text("run", "Run that decided the outcome", nullable=False),
        Column("lease", "bigint", "Writer's lease counter; Delta's txnVersion of its commits"),
        Column("recorded_at", "timestamp", "When the outcome was recorded, UTC", nullable=False),
    ),
)

CHECK_RESULTS = Table(
    name="check_results",
    grain="One row per expectation checked on a delivery",
    key=("run", "delivery", "billing_period", "check_name", "column_name"),
    partition_by=(),
    keep_versions_days=400,
    columns=(
        _text("run", "Run that checked", nullable=False),
        _text("delivery", "Delivery checked", nullable=False),
        _text("source", "Its source", nullable=False),
        _text("billing_period", "Its month, YYYY-MM", nullable=False),
        _text("suite", "Suite of quality.py: daily_costs or charges_profile", nullable=False),
        _text("check_name", "The expectation, in Great Expectations' words", nullable=False),
        _text("column_name", "Column it looks at, if one"),
        _text("severity", "critical (nothing is published) or warning", nullable=False),
        Column("success", "boolean", "Whether it held", nullable=False),
        _text("says", "The expectation as a sentence", nullable=False),
        _text("expected", "What was asked, as JSON"),
        _text("observed", "What was found, as JSON"),
        Column("checked_at", "timestamp", "When, UTC", nullable=False),
    ),
)

TABLES = (CHARGES, DAILY_COSTS, DELIVERIES, CHECK_RESULTS)

# Made by dbt (models/marts); the lake registers them, keeps their versions and restores them.
MARTS = ("monthly_cost", "cost_by_business_line", "cost_by_model_version", "cost_by_region", "tag_coverage")
