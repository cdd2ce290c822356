"""Plain rows and small hand-made deliveries: a test names only what it is about."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from weighbridge.billing.samples.cur2_columns import DOUBLES, MAPS, TIMES

Row = dict[str, Any]

HOUR = timedelta(hours=1)


def month(period: str) -> tuple[datetime, datetime]:
    """Begin and (exclusive) end of a billing period, UTC."""
    begin = datetime.strptime(period, "%Y-%m").replace(tzinfo=UTC)
    return begin, (begin + timedelta(days=32)).replace(day=1)


def cur2_row(period: str = "2026-11", **changes: Any) -> Row:
    """A line of CUR 2.0: an hour of a tagged GPU instance, 1.212 USD. Money is float, tags are a dict."""
    begin, end = month(period)
    start = changes.get("line_item_usage_start_date", begin)
    row = {
        "bill_billing_period_start_date": begin,
        "bill_billing_period_end_date": end,
        "bill_bill_type": "Anniversary",
        "bill_billing_entity": "AWS",
        "bill_invoice_id": None,
        "bill_invoicing_entity": "Amazon Web Services, Inc.",
        "bill_payer_account_id": "100000000001",
        "bill_payer_account_name": "acme-payer",
        "identity_line_item_id": "line-1",
        "line_item_usage_account_id": "210000000001",
        "line_item_usage_account_name": "search-prod",
        "line_item_line_item_type": "Usage",
        "line_item_line_item_description": "$1.212 per On Demand Linux g5.2xlarge Instance Hour",
        "line_item_usage_start_date": start,
        "line_item_usage_end_date": start + HOUR,
        "line_item_product_code": "AmazonEC2",
        "line_item_usage_type": "BoxUsage:g5.2xlarge",
        "line_item_operation": "RunInstances",
        "line_item_availability_zone": "us-east-1a",
        "line_item_resource_id": "i-0123456789abcdef0",
        "line_item_usage_amount": 1.0,
        "line_item_currency_code": "USD",
        "line_item_unblended_rate": "1.2120000000",
        "line_item_unblended_cost": 1.212,
        "line_item_blended_cost": 1.212,
        "pricing_public_on_demand_cost": 1.212,
        "pricing_unit": "Hrs",
        "pricing_term": "OnDemand",
        "pricing_currency": "USD",
        "product_region_code": "us-east-1",
        "product_servicecode": "AmazonEC2",
        "product_product_family": "Compute Instance",
        "product_instance_type": "g5.2xlarge",
        "reservation_reservation_a_r_n": None,
        "reservation_effective_cost": None,
        "reservation_unused_amortized_upfront_fee_for_billing_period": None,
        "reservation_unused_recurring_fee": None,
        "savings_plan_savings_plan_a_r_n": None,
        "savings_plan_savings_plan_effective_cost": None,
        "savings_plan_total_commitment_to_date": None,
        "savings_plan_used_commitment": None,
        "product": {"product_name": "Amazon Elastic Compute Cloud", "region": "us-east-1"},
        "resource_tags": {"user_business_unit": "search", "user_model_version": "ranker-7"},
        "cost_category": {},
        "discount": {},
    }
    return row | changes


def focus_row(period: str = "2026-11", **changes: Any) -> Row:
    """One row of FOCUS 1.2 as text, as a CSV file has it: an hour of a tagged GPU machine for 1.212 USD."""
    begin, end = month(period)
    row = {
        "BilledCost": "1.212",
        "EffectiveCost": "1.212",
        "ListCost": "1.212",
        "ContractedCost": "1.212",
        "BillingAccountId": "8a1b2c3d",
        "BillingAccountName": "Acme Ltd",
        "BillingAccountType": "Billing Profile",
        "BillingCurrency": "USD",
        "BillingPeriodStart": iso(begin),
        "BillingPeriodEnd": iso(end),
        "ChargeCategory": "Usage",
        "ChargeClass": None,
        "ChargeDescription": "NC24ads A100 v4",
        "ChargeFrequency": "Usage-Based",
        "ChargePeriodStart": iso(begin),
        "ChargePeriodEnd": iso(begin + HOUR),
        "CommitmentDiscountCategory": None,
        "CommitmentDiscountId": None,
        "CommitmentDiscountName": None,
        "CommitmentDiscountStatus": None,
        "CommitmentDiscountType": None,
        "ConsumedQuantity": "1",
        "ConsumedUnit": "Hours",
        "ContractedUnitPrice": "1.212",
        "InvoiceId": None,
        "InvoiceIssuerName": "Microsoft",
        "ListUnitPrice": "1.212",
        "PricingCategory": "Standard",
        "PricingQuantity": "1",
        "PricingUnit": "Hours",
        "ProviderName": "Microsoft",
        "PublisherName": "Microsoft",
        "RegionId": "westeurope",
        "RegionName": "West Europe",
        "ResourceId": "/subscriptions/1/resourcegroups/rg/providers/microsoft.compute/virtualmachines/m1",
        "ResourceName": "m1",
        "ResourceType": "Virtual machine",
        "ServiceCategory": "Compute",
        "ServiceName": "Virtual Machines",
        "ServiceSubcategory": "Virtual Machines",
        "SkuId": "DZH318Z09TVM",
        "SkuMeter": "NC24ads A100 v4",
        "SkuPriceId": "DZH318Z09TVM/00CF",
        "SubAccountId": "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
        "SubAccountName": "search",
        "SubAccountType": "Subscription",
        "Tags": json.dumps({"business_unit": "search", "model_version": "ranker-7"}),
    }
    return row | changes


def iso(moment: datetime) -> str:
    """A UTC time as FOCUS writes it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def cur2_type(name: str) -> pa.DataType:
    """The Arrow type that a column of CUR 2.0 has in AWS's Parquet files."""
    if name in MAPS:
        return pa.map_(pa.string(), pa.float64() if name == "discount" else pa.string())
    if name in TIMES:
        return pa.timestamp("ms", tz="UTC")
    return pa.float64() if name in DOUBLES else pa.string()


def write_cur2_parquet(path: Path, rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> Path:
    """One CUR 2.0 data file in the cloud's types. `columns` names them where there is no row to tell."""
    names = list(columns or (rows[0] if rows else cur2_row()))
    arrays = [
        pa.array([list(row[n].items()) if isinstance(row[n], dict) else row[n] for row in rows], cur2_type(n))
        for n in names
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(
        pa.table(arrays, names=names), path, compression="snappy", store_schema=False, row_group_size=250_000
    )
    return path


def write_cur2_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """One CUR 2.0 data file as csv.gz: maps as JSON text, times with milliseconds."""

    def text(value: Any) -> Any:
        if isinstance(value, dict):
            return json.dumps(value)
        return value.strftime("%Y-%m-%dT%H:%M:%S.000Z") if isinstance(value, datetime) else value

    return write_csv(path, [{name: text(value) for name, value in row.items()} for row in rows])


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Rows as CSV with a header, gzipped where the name ends in .gz; None is an empty field."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    content = buffer.getvalue().encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
    return path


write_focus_csv = write_csv


def write_cur2_delivery(
    folder: Path,
    rows: Sequence[Mapping[str, Any]],
    period: str = "2026-11",
    *,
    execution: str | None = "2026-12-03T04:30:00.000Z-6b622448-daaa-439c-92f1-afc727f1e0a3",
    parts: int = 1,
    export: str = "cur2",
    files: str = "parquet",
) -> Path:
    """A delivery of AWS Data Exports and its manifest, whose path comes back.

    With an execution it lies in a folder of its own (create new); with None it takes the fixed names of an
    overwriting export and leaves longer old files behind, as AWS does.
    """
    place = Path(f"BILLING_PERIOD={period}") / (execution or "")
    ending, write = (
        ("snappy.parquet", write_cur2_parquet) if files == "parquet" else ("csv.gz", write_cur2_csv)
    )
    paths = []
    for n in range(parts):
        some = rows[len(rows) * n // parts : len(rows) * (n + 1) // parts]
        paths.append(write(folder / export / "data" / place / f"{export}-{n + 1:05d}.{ending}", some))
    manifest = {
        "executionId": execution or "6b622448-daaa-439c-92f1-afc727f1e0a3",
        "exportArn": f"arn:aws:bcm-data-exports:us-east-1:100000000001:export/{export}",
        "columns": [
            {"name": name, "type": str(cur2_type(name))} for name in (rows[0] if rows else cur2_row())
        ],
        "dataFiles": [f"s3://acme-billing/{path.relative_to(folder).as_posix()}" for path in paths],
        "additionalOutputFiles": [],
    }
    path = folder / export / "metadata" / place / f"{export}-Manifest.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(manifest, indent=2))
    return path


def write_azure_delivery(
    folder: Path,
    rows: Sequence[Mapping[str, Any]],
    period: str = "2026-11",
    *,
    submitted: datetime = datetime(2026, 12, 3, 4, 30, tzinfo=UTC),
    run: str = "45d12802-d53b-4c1b-9113-ccf038fe0f4a",
    parts: int = 1,
    export: str = "focus",
) -> Path:
    """A FOCUS export of Azure (csv.gz) and its manifest, whose path comes back."""
    begin, end = month(period)
    last = end - timedelta(days=1)
    place = folder / export / f"{begin:%Y%m%d}-{last:%Y%m%d}" / f"{submitted:%Y%m%d%H%M}" / run
    blobs = []
    for n in range(parts):
        some = rows[len(rows) * n // parts : len(rows) * (n + 1) // parts]
        path = write_csv(place / f"part_{n}_0001.csv.gz", some)
        name = path.relative_to(folder).as_posix()
        blobs.append({"blobName": name, "byteCount": path.stat().st_size, "dataRowCount": len(some)})
    manifest = {
        "manifestVersion": "2024-04-01",
        "byteCount": sum(blob["byteCount"] for blob in blobs),
        "blobCount": len(blobs),
        "dataRowCount": len(rows),
        "exportConfig": {"exportName": export, "dataVersion": "1.2", "type": "FocusCost"},
        "deliveryConfig": {"fileFormat": "Csv", "compressionMode": "Gzip", "partitionData": True},
        "runInfo": {
            "executionType": "Scheduled",
            "submittedTime": f"{submitted:%Y-%m-%dT%H:%M:%S}.0000000Z",
            "runId": run,
            "startDate": f"{begin:%Y-%m-%d}T00:00:00",
            "endDate": f"{last:%Y-%m-%d}T00:00:00",
        },
        "blobs": blobs,
    }
    (place / "manifest.json").write_text(json.dumps(manifest, indent=2))
    return place / "manifest.json"
