"""Sample bills: the same each time, consistent to the last digit, and in the types the clouds write."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from weighbridge.billing.samples.delivery import Delivered, write
from weighbridge.billing.samples.order import Order
from weighbridge.cli import main, run
from weighbridge.errors import Refused

ROWS = 20_000


def order(out: Path, **changes: Any) -> Order:
    said = {"format": "cur2", "rows": ROWS, "period": "2026-11", "seed": 5, "out": out, "parts": 3}
    return Order(**(said | changes))


def lines(made: Delivered) -> list[dict[str, Any]]:
    """All rows of a delivery: values of Parquet, or texts of CSV with None for an empty field."""
    rows: list[dict[str, Any]] = []
    for part in made.parts:
        if part.path.name.endswith(".parquet"):
            rows += pq.read_table(part.path).to_pylist()
        else:
            text = gzip.decompress(part.path.read_bytes()).decode()
            rows += [{k: v or None for k, v in row.items()} for row in csv.DictReader(io.StringIO(text))]
    return rows


def exact(amounts: Iterable[Any]) -> Decimal:
    """Sum of the shortest decimal texts, exactly."""
    scale = 10**40
    return Decimal(sum(int(Decimal(str(a)).scaleb(40)) for a in amounts if a is not None)) / scale


@pytest.fixture(scope="module")
def cur2(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return lines(write(order(tmp_path_factory.mktemp("cur2"))))


@pytest.fixture(scope="module")
def cur2_again(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return lines(write(order(tmp_path_factory.mktemp("again"), again=True)))


@pytest.fixture(scope="module")
def focus(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return lines(write(order(tmp_path_factory.mktemp("focus"), format="focus")))


@pytest.mark.parametrize(
    ("format", "files"), [("cur2", "parquet"), ("cur2", "csv"), ("focus", "parquet"), ("focus", "csv")]
)
def test_the_same_order_gives_the_same_bytes_and_another_seed_others(
    tmp_path: Path, format: str, files: str
) -> None:
    def digests(place: str, seed: int) -> list[str]:
        made = write(order(tmp_path / place, format=format, files=files, rows=2_000, seed=seed))
        return [hashlib.sha256(part.path.read_bytes()).hexdigest() for part in made.parts]

    first = digests("one", 5)
    assert digests("two", 5) == first
    assert digests("three", 6) != first


@pytest.mark.parametrize(("format", "files"), [("cur2", "parquet"), ("cur2", "csv"), ("focus", "parquet")])
def test_an_aws_manifest_lists_exactly_the_files_in_order(tmp_path: Path, format: str, files: str) -> None:
    made = write(order(tmp_path, format=format, files=files, rows=1_000))
    manifest = json.loads(made.manifest.read_text())
    listed = [uri.removeprefix("s3://acme-billing/") for uri in manifest["dataFiles"]]
    assert listed == [part.path.relative_to(tmp_path).as_posix() for part in made.parts]
    assert {tmp_path / name for name in listed} == {
        p for p in (tmp_path / f"acme-{format}/data").rglob("*") if p.is_file()
    }
    assert all(manifest["executionId"] == part.path.parent.name for part in made.parts)
    header = pq.read_schema(made.parts[0].path).names if files == "parquet" else list(lines(made)[0])
    assert [column["name"] for column in manifest["columns"]] == header


def test_an_azure_manifest_counts_bytes_and_rows_of_each_file(tmp_path: Path) -> None:
    made = write(order(tmp_path, format="focus", files="csv", rows=1_000))
    manifest = json.loads(made.manifest.read_text())
    found = {p.relative_to(tmp_path).as_posix(): p.stat().st_size for p in tmp_path.rglob("*.csv.gz")}
    assert {blob["blobName"]: blob["byteCount"] for blob in manifest["blobs"]} == found
    assert (
        sum(blob["dataRowCount"] for blob in manifest["blobs"])
        == manifest["dataRowCount"]
        == len(lines(made))
        == 1_000
    )


def test_rows_are_as_ordered_and_their_billed_total_is_exact(
    tmp_path: Path, cur2: list[dict[str, Any]]
) -> None:
    made = write(order(tmp_path))
    assert made.rows == len(cur2) == ROWS
    assert made.billed == exact(row["line_item_unblended_cost"] for row in cur2)
    assert sum(part.rows for part in made.parts) == ROWS


def test_cur2_parquet_has_the_types_that_aws_writes(tmp_path: Path) -> None:
    schema = pq.read_schema(write(order(tmp_path, rows=200)).parts[0].path)
    assert schema.field("line_item_unblended_cost").type == pa.float64()
    assert schema.field("line_item_unblended_rate").type == pa.string()
    assert schema.field("line_item_usage_start_date").type == pa.timestamp("ms", tz="UTC")
    assert (
        schema.field("resource_tags").type.item_type == schema.field("product").type.item_type == pa.string()
    )
    assert schema.field("discount").type.item_type == pa.float64()
    assert not [name for name in schema.names if "_net_" in name]


def test_focus_parquet_has_the_types_that_aws_writes(tmp_path: Path) -> None:
    schema = pq.read_schema(write(order(tmp_path, format="focus", rows=200)).parts[0].path)
    assert schema.field("BilledCost").type == pa.float64()
    assert schema.field("ChargePeriodStart").type == pa.timestamp("ms", tz="UTC")
    assert pa.types.is_map(schema.field("Tags").type)


def test_cur2_as_csv_says_the_same_as_parquet(tmp_path: Path) -> None:
    plain = lines(write(order(tmp_path, rows=1_000)))
    texts = lines(write(order(tmp_path, rows=1_000, files="csv")))
    assert [json.loads(row["resource_tags"]) for row in texts] == [
        dict(row["resource_tags"]) for row in plain
    ]
    assert [float(row["line_item_unblended_cost"]) for row in texts] == [
        row["line_item_unblended_cost"] for row in plain
    ]
    assert texts[0]["bill_billing_period_start_date"] == "2026-11-01T00:00:00.000Z"


def test_about_five_percent_of_lines_have_no_tag(
    cur2: list[dict[str, Any]], focus: list[dict[str, Any]]
) -> None:
    for rows, tags in ((cur2, "resource_tags"), (focus, "Tags")):
        assert 0.04 < sum(not row[tags] for row in rows) / len(rows) < 0.06


def test_every_line_item_type_is_there(cur2: list[dict[str, Any]]) -> None:
    found = Counter(row["line_item_line_item_type"] for row in cur2)
    assert set(found) == {
        *("Usage", "SavingsPlanCoveredUsage", "SavingsPlanNegation", "SavingsPlanRecurringFee"),
        *("SavingsPlanUpfrontFee", "DiscountedUsage", "RIFee", "Fee", "Tax", "Credit", "Refund"),
        *("EdpDiscount", "BundledDiscount", "PrivateRateDiscount"),
    }
    assert found["SavingsPlanNegation"] == found["SavingsPlanCoveredUsage"]


def test_savings_plans_add_up_to_their_commitment_to_the_last_digit(cur2: list[dict[str, Any]]) -> None:
    used: dict[tuple[str, Any], list[Any]] = defaultdict(list)
    for row in cur2:
        if row["line_item_line_item_type"] == "SavingsPlanCoveredUsage":
            day = row["line_item_usage_start_date"].replace(hour=0)
            used[row["savings_plan_savings_plan_a_r_n"], day].append(
                row["savings_plan_savings_plan_effective_cost"]
            )
    fees = [row for row in cur2 if row["line_item_line_item_type"] == "SavingsPlanRecurringFee"]
    assert len(fees) == 2 * 30
    for fee in fees:
        key = fee["savings_plan_savings_plan_a_r_n"], fee["line_item_usage_start_date"]
        assert exact(used[key]) == Decimal(str(fee["savings_plan_used_commitment"]))
        assert fee["savings_plan_used_commitment"] <= fee["savings_plan_total_commitment_to_date"]


def test_a_negation_takes_back_what_covered_usage_costs(cur2: list[dict[str, Any]]) -> None:
    both = ("SavingsPlanCoveredUsage", "SavingsPlanNegation")
    assert (
        exact(row["line_item_unblended_cost"] for row in cur2 if row["line_item_line_item_type"] in both) == 0
    )


def test_the_reservation_adds_up_over_the_month(cur2: list[dict[str, Any]]) -> None:
    (fee,) = [row for row in cur2 if row["line_item_line_item_type"] == "RIFee"]
    used = [row for row in cur2 if row["line_item_line_item_type"] == "DiscountedUsage"]
    assert {row["line_item_unblended_cost"] for row in used} == {0.0}
    recurring = exact(row["reservation_recurring_fee_for_usage"] for row in used)
    unused = Decimal(str(fee["reservation_unused_recurring_fee"]))
    assert recurring + unused == Decimal(str(fee["line_item_unblended_cost"]))
    assert exact(row["reservation_effective_cost"] for row in used) > recurring


def test_net_costs_and_discount_rows_say_the_same_total(tmp_path: Path, cur2: list[dict[str, Any]]) -> None:
    net = lines(write(order(tmp_path, net=True)))
    assert exact(row["line_item_net_unblended_cost"] for row in net) == exact(
        row["line_item_unblended_cost"] for row in cur2
    )
    discounts = [row for row in cur2 if row["line_item_line_item_type"].endswith("Discount")]
    assert exact(row["line_item_unblended_cost"] for row in discounts) < 0
    assert not any(row["resource_tags"] for row in discounts)


def test_focus_commitments_add_up_and_cash_and_accrual_differ(focus: list[dict[str, Any]]) -> None:
    by_status = defaultdict(list)
    for row in focus:
        by_status[row["CommitmentDiscountStatus"]].append(row["EffectiveCost"])
    assert exact(by_status["Used"]) > 0
    assert exact(by_status["Unused"]) > 0
    assert {row["BilledCost"] for row in focus if row["CommitmentDiscountStatus"]} == {0.0}
    bought = [r for r in focus if r["CommitmentDiscountCategory"] and r["ChargeCategory"] == "Purchase"]
    assert {row["EffectiveCost"] for row in bought} == {0.0}
    assert all(
        row[c] is not None
        for row in focus
        for c in ("BilledCost", "EffectiveCost", "ListCost", "ContractedCost")
    )


def test_azure_money_has_more_decimals_than_a_double(tmp_path: Path) -> None:
    rows = lines(write(order(tmp_path, format="focus", files="csv", rows=1_000)))
    places = [len(row["BilledCost"].partition(".")[2]) for row in rows if row["ChargeCategory"] == "Usage"]
    assert max(places) == 28
    assert all("E" not in row["BilledCost"].upper() for row in rows)
    tagged = [json.loads(row["Tags"]) for row in rows if row["Tags"]]
    assert 900 < len(tagged) < 1_000


def test_a_second_delivery_adds_corrects_removes_and_retags_and_leaves_the_rest(
    cur2: list[dict[str, Any]], cur2_again: list[dict[str, Any]]
) -> None:
    before = {row["identity_line_item_id"]: row for row in cur2}
    after = {row["identity_line_item_id"]: row for row in cur2_again}
    assert len(before) == len(cur2)
    assert len(after) == len(cur2_again)
    new, gone = after.keys() - before.keys(), before.keys() - after.keys()
    assert len(new) == round(ROWS * 0.015)
    assert len(gone) == round(ROWS * 0.0005)
    changed = [(before[i], after[i]) for i in before.keys() & after.keys() if before[i] != after[i]]
    recosted = [(b, a) for b, a in changed if b["line_item_unblended_cost"] != a["line_item_unblended_cost"]]
    usage = [b for b, _ in recosted if b["line_item_line_item_type"] == "Usage"]
    assert len(usage) == round(ROWS * 0.005)
    assert {b["line_item_line_item_type"] for b, _ in recosted} == {"Usage", "EdpDiscount"}
    assert min(b["line_item_usage_start_date"].day for b, _ in recosted) == 28
    assert [1 for b, a in changed if b["resource_tags"] != a["resource_tags"]]
    only_tags = [(b, a) for b, a in changed if b["line_item_unblended_cost"] == a["line_item_unblended_cost"]]
    assert all(b | {"resource_tags": None} == a | {"resource_tags": None} for b, a in only_tags)


def test_a_second_delivery_comes_later_and_lies_beside_the_first(tmp_path: Path) -> None:
    first, second = write(order(tmp_path, rows=100)), write(order(tmp_path, rows=100, again=True))
    names = [part.parts[0].path.parent.name for part in (first, second)]
    assert names == sorted(set(names))
    assert second.rows > first.rows


def test_spellings_unknown_values_and_lines_without_a_business_key_are_there(
    cur2: list[dict[str, Any]],
) -> None:
    tags = [dict(row["resource_tags"]) for row in cur2]
    values = {tag["user_business_unit"] for tag in tags if "user_business_unit" in tag}
    assert {"search", "Search", "fraud-detection"} <= values
    assert values & {"skunkworks", "project-zeta"}
    assert [tag for tag in tags if tag and not tag.keys() & {"user_business_unit", "user_team"}]


def test_tiny_bills_are_bills_too(tmp_path: Path) -> None:
    for rows in (1, 2, 20, 99, 100, 101):
        made = write(order(tmp_path / str(rows), rows=rows, parts=1))
        assert len(lines(made)) == rows


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"format": "cur3"}, "--format is 'cur3'"),
        ({"files": "avro"}, "--files is 'avro'"),
        ({"period": "2026-13"}, "--period is '2026-13'"),
        ({"period": "2026-11-01"}, "--period is"),
        ({"rows": 0}, "--rows is 0"),
        ({"rows": 2, "parts": 3}, "--parts is 3"),
        ({"seed": -1}, "--seed is -1"),
        ({"format": "focus", "net": True}, "--net is for cur2"),
    ],
)
def test_an_impossible_order_is_refused_by_name(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    with pytest.raises(Refused, match=told):
        order(tmp_path, **changes)


def test_a_delivery_that_lies_there_is_never_written_over(tmp_path: Path) -> None:
    write(order(tmp_path, rows=10))
    with pytest.raises(Refused, match="already holds this delivery"):
        write(order(tmp_path, rows=10))


def test_the_command_answers_in_json_with_exact_money(tmp_path: Path) -> None:
    answer = run(
        "sample-bill",
        format="cur2",
        rows=50,
        period="2026-11",
        out=tmp_path,
        delivered_at="2026-12-01T00:00:00Z",
    )
    assert answer.data["rows"] == 50
    assert "2026-12-01T00:00:00.000Z" in answer.data["manifest"]
    assert isinstance(answer.data["totals"]["USD"]["billed"], Decimal)
    assert "have no tag" in answer.text


@pytest.mark.parametrize("moment", ["yesterday", "2026-12-01T00:00:00"])
def test_the_command_refuses_a_time_without_form_or_zone(tmp_path: Path, moment: str) -> None:
    asked = ["sample-bill", "--format", "cur2", "--rows", "5", "--period", "2026-11", "--out", str(tmp_path)]
    result = CliRunner().invoke(main, [*asked, "--delivered-at", moment])
    assert result.exit_code == 2
