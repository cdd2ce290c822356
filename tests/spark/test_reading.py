"""Bills as rows: shape, row numbers, exact money, tags, and what is refused with file, row, column and value."""

from __future__ import annotations

import gzip
import math
import random
import struct
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Context, Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark.sql.functions as F
import pytest

from weighbridge.adapters.files import FolderStore
from weighbridge.billing.formats import Declared, Part
from weighbridge.billing.formats.cur2 import RULES
from weighbridge.billing.money import double_text
from weighbridge.billing.reconcile import exact_sum
from weighbridge.errors import BillRefused
from weighbridge.tables import CHARGES, MEASURES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from weighbridge.billing.reading import Bill, Survey


FOCUS = {
    "BillingPeriodStart": "2026-10-01T00:00:00Z",
    "ChargePeriodStart": "2026-10-02T00:00:00Z",
    "ChargeCategory": "Usage",
    "BilledCost": "1",
    "EffectiveCost": "1",
    "BillingCurrency": "USD",
    "Tags": "",
}


def focus_csv(folder: Path, *rows: dict[str, str], name: str = "bill.csv") -> Path:
    """A FOCUS file of plain rows; a row names only what it is about."""
    import csv
    import io

    text = io.StringIO()
    writer = csv.DictWriter(text, list(FOCUS))
    writer.writeheader()
    writer.writerows([FOCUS | row for row in rows])
    content = text.getvalue().encode()
    path = folder / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


def focus_doubles(numbers: Sequence[float]) -> pa.Table:
    """A FOCUS file in which each of these is a billed cost, as AWS writes it in Parquet."""
    start = pa.array([datetime(2026, 10, 1, tzinfo=UTC)], pa.timestamp("ms", "UTC"))
    ones = {"ChargeCategory": pa.array(["Usage"]), "BillingCurrency": pa.array(["USD"])}
    ones |= {"BillingPeriodStart": start, "ChargePeriodStart": start}
    same = pa.array([0] * len(numbers), pa.int32())
    return pa.table({"BilledCost": pa.array(numbers)} | {k: v.take(same) for k, v in ones.items()})


def opened(spark: SparkSession, paths: Sequence[Path], declared: Declared | None = None) -> Bill:
    """The bill in these files of one folder."""
    from weighbridge.billing.reading import open_bill

    store = FolderStore(str(paths[0].parent))
    return open_bill(spark, [Part(path.name, store) for path in paths], declared or Declared())


def survey(spark: SparkSession, folder: Path, *rows: dict[str, str]) -> Survey:
    """What a FOCUS file of these rows holds."""
    return opened(spark, [focus_csv(folder, *rows)]).survey()


def test_lines_have_the_columns_of_charges_in_its_order_and_types(
    spark: SparkSession, tmp_path: Path
) -> None:
    bill = opened(spark, [focus_csv(tmp_path, {})])
    names = CHARGES.column_names
    wanted = [c for c in CHARGES.columns if c.name in names[1 : names.index("x_operation") + 1]]
    wanted = [c for c in wanted if c.name != "x_delivery"]
    assert bill.lines.dtypes == [(c.name, c.type) for c in wanted]


def test_rows_are_counted_from_one_in_each_file_of_the_delivery(spark: SparkSession, tmp_path: Path) -> None:
    paths = [
        focus_csv(tmp_path, {"BilledCost": "1"}, {"BilledCost": "2"}, name="b.csv"),
        focus_csv(tmp_path, {"BilledCost": "3"}, name="a.csv.gz"),
    ]
    rows = opened(spark, paths).lines.select("x_part", "x_row", "billed_cost").collect()
    assert sorted((r[0], r[1], int(r[2])) for r in rows) == [(1, 1, 1), (1, 2, 2), (2, 1, 3)]


def test_money_beyond_18_decimals_is_rounded_half_up_and_the_rest_is_kept(
    spark: SparkSession, tmp_path: Path
) -> None:
    texts = [
        "0.0000000000000000005",
        "-0.0000000000000000015",
        "1.23456789012345678949",
        "7.5E-20",
        "1.81E-8",
    ]
    bill = opened(spark, [focus_csv(tmp_path, *[{"BilledCost": text} for text in texts])])
    stored = [row[0] for row in bill.lines.orderBy("x_row").select("billed_cost").collect()]
    assert stored == [
        Decimal("0.000000000000000001"),
        Decimal("-0.000000000000000002"),
        Decimal("1.234567890123456789"),
        Decimal("0"),
        Decimal("0.0000000181"),
    ]
    total = bill.survey().periods["2026-10"].totals["USD"]["billed_cost"]
    assert total is not None
    assert total.stored == sum(stored)
    assert total.exact == sum(map(Decimal, texts))


@pytest.fixture(scope="module")
def doubles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A million doubles, one a row: powers of two, prices, neighbours of round numbers, any bits at all."""
    draw = random.Random(7)
    numbers = [sign * 2.0**power for power in range(-97, 53) for sign in (1, -1)]
    numbers += [float(n) / 2**k for n in range(1, 4000, 7) for k in range(8, 40, 3)]
    numbers += [round(draw.uniform(-1000, 1000), draw.randint(0, 12)) for _ in range(350_000)]
    numbers += [draw.random() * 10.0 ** draw.randint(-12, 6) for _ in range(350_000)]
    numbers += [draw.randint(1, 99_999) * 10.0 ** -draw.randint(0, 14) for _ in range(300_000)]
    bits = (struct.unpack("d", struct.pack("Q", draw.getrandbits(63)))[0] for _ in range(200_000))
    numbers += [n for n in bits if 1e-28 < n < 2**53]
    edges = (0.1, 1.0, 1e-7, 1e-3, 1e5, 1e7, 123456.789, 2.0**52, 5e-11, 99999.99999999995)
    numbers += [math.nextafter(n, to) for n in edges for to in (math.inf, 0)]
    numbers += [0.0, -0.0, 1e-18, 5e-19, 4.9999999999999994e-19, 1.5e-18]
    pq.write_table(focus_doubles(numbers), tmp_path_factory.mktemp("doubles") / "bill.parquet")
    return tmp_path_factory.getbasetemp() / "doubles0" / "bill.parquet"


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("comet", ["true", "false"])
def test_a_million_doubles_are_stored_as_python_reads_them(
    spark: SparkSession, doubles: Path, comet: str
) -> None:
    before = spark.conf.get("spark.comet.enabled")
    spark.conf.set("spark.comet.enabled", comet)
    try:
        bill = opened(spark, [doubles])
        total = bill.survey().periods["2026-10"].totals["USD"]["billed_cost"]
        stored = bill.lines.select("x_row", "billed_cost").toArrow().sort_by("x_row")["billed_cost"]
        given = spark.read.parquet(str(doubles)).select(double_text(F.col("BilledCost"))).toArrow()[0]
    finally:
        spark.conf.set("spark.comet.enabled", before)
    written = [Decimal(repr(number)) for number in pq.read_table(doubles)["BilledCost"].to_pylist()]
    assert len(written) > 1_000_000
    texts = given.to_pylist()
    assert [pair for pair in zip(written, texts, strict=True) if pair[0] != Decimal(pair[1])] == []
    wide = Context(prec=60, rounding=ROUND_HALF_UP)
    rounded = [number.quantize(Decimal("1E-18"), context=wide) for number in written]
    assert [pair for pair in zip(rounded, stored.to_pylist(), strict=True) if pair[0] != pair[1]] == []
    assert total is not None
    assert total.exact == exact_sum(written)


def test_tags_are_read_as_providers_write_them(spark: SparkSession, tmp_path: Path) -> None:
    written = {
        '{"team": "ads", " org": "x"}': {"team": "ads", " org": "x"},
        '{"shared": true}': {"shared": "true"},
        '"team": "ads","env": "prod"': {"team": "ads", "env": "prod"},
        '[{"key": "team", "value": "ads"}]': {"team": "ads"},
        "{}": {},
        "": None,
        "NULL": None,
    }
    bill = opened(spark, [focus_csv(tmp_path, *[{"Tags": text} for text in written])])
    lines = bill.lines.orderBy("x_row").select("tags").collect()
    assert dict(zip(written, (line["tags"] for line in lines), strict=True)) == written


UNREADABLE = (
    ("BilledCost", "$10,000.00 "),
    ("BilledCost", "+333"),
    ("EffectiveCost", "3,432,342"),
    ("BilledCost", "99999999999999999999999999"),
    ("BillingPeriodStart", "10/1/26"),
    ("ChargePeriodStart", "2026-13-01T00:00:00Z"),
    ("ChargePeriodStart", "2026-02-30"),
    ("Tags", "{broken"),
)


def test_every_unreadable_value_is_found_with_its_row_and_column(spark: SparkSession, tmp_path: Path) -> None:
    rows: list[dict[str, str]] = [{}, *[{column: value} for column, value in UNREADABLE], {}]
    bill = opened(spark, [focus_csv(tmp_path, *rows)])
    found = {row["x_row"]: (row["column"], row["value"]) for row in bill.shape.unreadable().collect()}
    assert found == dict(enumerate(UNREADABLE, start=2))


@pytest.mark.parametrize(("column", "value"), [UNREADABLE[0], UNREADABLE[5], UNREADABLE[7]])
def test_an_unreadable_value_refuses_the_bill_by_file_row_column_and_value(
    spark: SparkSession, tmp_path: Path, column: str, value: str
) -> None:
    with pytest.raises(BillRefused) as refused:
        survey(spark, tmp_path, {}, {column: value}, {})
    for said in ("bill.csv", "row 2", column, value):
        assert said in str(refused.value)


def test_a_row_of_another_width_refuses_the_bill(spark: SparkSession, tmp_path: Path) -> None:
    path = focus_csv(tmp_path, {}, {})
    path.write_text(path.read_text() + "2026-10-01T00:00:00Z,2026-10-02\n")
    with pytest.raises(BillRefused, match="row 3"):
        opened(spark, [path]).survey()


@pytest.mark.parametrize("kept", [0, 40, 200])
def test_a_cut_file_is_refused_by_name(spark: SparkSession, tmp_path: Path, kept: int) -> None:
    rows = [{"BilledCost": str(random.Random(n).random())} for n in range(500)]
    path = focus_csv(tmp_path, *rows, name="bill.csv.gz")
    path.write_bytes(path.read_bytes()[:kept] if kept < 200 else path.read_bytes()[:-5])
    with pytest.raises(BillRefused, match=r"bill\.csv\.gz"):
        opened(spark, [path]).survey()


def test_files_of_one_delivery_must_have_the_same_columns(spark: SparkSession, tmp_path: Path) -> None:
    one = focus_csv(tmp_path, {}, name="one.csv")
    other = tmp_path / "other.csv"
    other.write_text(one.read_text().replace("EffectiveCost", "ListCost"))
    with pytest.raises(BillRefused, match=r"other\.csv"):
        opened(spark, [one, other])


def test_a_bill_without_currency_is_refused_unless_one_is_declared(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = focus_csv(tmp_path, {})
    path.write_text(path.read_text().replace("BillingCurrency", "x_Other"))
    with pytest.raises(BillRefused, match="BillingCurrency"):
        opened(spark, [path])
    found = opened(spark, [path], Declared(currency="EUR")).survey()
    assert list(found.periods["2026-10"].totals) == ["EUR"]


def test_a_missing_cost_column_is_null_and_never_nought(spark: SparkSession, tmp_path: Path) -> None:
    totals = survey(spark, tmp_path, {}).periods["2026-10"].totals["USD"]
    assert totals["list_cost"] is None
    assert totals["contracted_cost"] is None
    assert totals["effective_cost"] is not None


TYPE = "line_item_line_item_type"

CUR: dict[str, str] = {
    "bill_billing_period_start_date": "2026-10-01T00:00:00Z",
    "line_item_usage_start_date": "2026-10-02T00:00:00Z",
    "line_item_currency_code": "USD",
    "line_item_line_item_type": "Usage",
    "line_item_line_item_description": "",
    "line_item_unblended_cost": "10",
    "line_item_usage_amount": "2",
    "pricing_public_on_demand_cost": "12",
    "reservation_effective_cost": "3",
    "reservation_unused_amortized_upfront_fee_for_billing_period": "4",
    "reservation_unused_recurring_fee": "0.5",
    "reservation_reservation_a_r_n": "",
    "savings_plan_savings_plan_effective_cost": "6",
    "savings_plan_total_commitment_to_date": "9",
    "savings_plan_used_commitment": "8.999999999999999999",
}


COST_RULES: tuple[tuple[dict[str, str], str, str], ...] = (
    ({"line_item_line_item_type": "Usage"}, "Usage", "10"),
    ({"line_item_line_item_type": "DiscountedUsage"}, "Usage", "3"),
    ({"line_item_line_item_type": "SavingsPlanCoveredUsage"}, "Usage", "6"),
    ({"line_item_line_item_type": "SavingsPlanNegation"}, "Usage", "0"),
    ({"line_item_line_item_type": "SavingsPlanRecurringFee"}, "Purchase", "0.000000000000000001"),
    ({"line_item_line_item_type": "SavingsPlanUpfrontFee"}, "Purchase", "0"),
    ({"line_item_line_item_type": "RIFee"}, "Purchase", "4.5"),
    ({"line_item_line_item_type": "Fee"}, "Purchase", "10"),
    ({"line_item_line_item_type": "Fee", "reservation_reservation_a_r_n": "arn:1"}, "Purchase", "0"),
    ({"line_item_line_item_type": "Tax"}, "Tax", "10"),
    ({"line_item_line_item_type": "Credit"}, "Credit", "10"),
    ({"line_item_line_item_type": "EdpDiscount"}, "Adjustment", "10"),
    ({"line_item_line_item_type": "BundledDiscount"}, "Adjustment", "10"),
    ({"line_item_line_item_type": "Discount"}, "Adjustment", "10"),
    ({"line_item_line_item_type": "DistributorDiscount"}, "Adjustment", "10"),
    ({"line_item_line_item_type": "PrivateRateDiscount"}, "Adjustment", "10"),
    ({"line_item_line_item_type": "RiVolumeDiscount"}, "Adjustment", "10"),
    ({"line_item_line_item_type": "SppDiscount"}, "Adjustment", "10"),
    ({"line_item_line_item_type": "SomethingNew"}, "Adjustment", "10"),
    ({"line_item_line_item_type": "Refund"}, "Adjustment", "10"),
    (
        {
            "line_item_line_item_type": "Refund",
            "line_item_line_item_description": "Refund for one-time fee for Savings Plan ID: 1",
        },
        "Adjustment",
        "0",
    ),
)


# Their list price is that of the usage they pay for, which stands in its own rows.
NOT_AT_LIST = {"SavingsPlanNegation", "SavingsPlanRecurringFee", "SavingsPlanUpfrontFee", "RIFee"}


def test_every_cost_rule_has_its_row_here() -> None:
    assert {row[TYPE] for row, _, _ in COST_RULES} > {rule.line_item_type for rule in RULES}


@pytest.fixture(scope="module")
def bill_of_rules(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Bill:
    """A bill with one row for each of COST_RULES."""
    path = tmp_path_factory.mktemp("rules") / "bill.csv"
    rows = [CUR | row for row, _, _ in COST_RULES]
    path.write_text("\n".join(",".join(row) for row in (CUR, *[row.values() for row in rows])) + "\n")
    return opened(spark, [path])


@pytest.fixture(scope="module")
def lines_of_rules(bill_of_rules: Bill) -> list[Any]:
    """Its lines, in the order of COST_RULES."""
    return bill_of_rules.lines.orderBy("x_row").collect()


@pytest.mark.parametrize("rule", range(len(COST_RULES)), ids=[row[TYPE] for row, _, _ in COST_RULES])
def test_each_line_item_type_has_its_category_and_effective_cost(
    lines_of_rules: list[Any], rule: int
) -> None:
    row, category, effective = COST_RULES[rule]
    line = lines_of_rules[rule]
    assert line["charge_category"] == category
    assert line["billed_cost"] == Decimal(10)
    assert line["effective_cost"] == Decimal(effective)
    assert line["contracted_cost"] is None
    is_upfront = len(row) > 1 and effective == "0"
    assert line["list_cost"] == Decimal(0 if row[TYPE] in NOT_AT_LIST or is_upfront else 12)
    used = None if category != "Usage" else Decimal(2)
    negation = row[TYPE] == "SavingsPlanNegation"
    assert line["consumed_quantity"] == (Decimal(0) if negation else used)


def test_the_survey_adds_up_what_the_cost_rules_give(bill_of_rules: Bill) -> None:
    assert bill_of_rules.format == "cur-2.0"
    total = bill_of_rules.survey().periods["2026-10"].totals["USD"]["effective_cost"]
    assert total is not None
    assert total.exact == sum(Decimal(effective) for _, _, effective in COST_RULES)


def sampled(folder: Path, files: str, net: bool) -> list[Path]:
    """The files of a sample CUR 2.0 delivery, in order."""
    from weighbridge.billing.samples.delivery import write
    from weighbridge.billing.samples.order import Order

    made = write(Order("cur2", 3000, "2026-10", 1, folder, 2, False, files, None, net))
    return [part.path for part in made.parts]


def test_net_columns_and_discount_rows_give_the_same_effective_cost(
    spark: SparkSession, tmp_path: Path
) -> None:
    with_rows = opened(spark, sampled(tmp_path / "rows", "parquet", False)).survey().periods["2026-10"]
    with_net = opened(spark, sampled(tmp_path / "net", "parquet", True)).survey().periods["2026-10"]
    one, other = with_rows.totals["USD"]["effective_cost"], with_net.totals["USD"]["effective_cost"]
    assert one is not None
    assert other is not None
    assert one.exact == other.exact
    assert one.exact != with_rows.totals["USD"]["billed_cost"].exact


def test_parquet_and_text_of_one_bill_hold_the_same(spark: SparkSession, tmp_path: Path) -> None:
    one = opened(spark, sampled(tmp_path / "p", "parquet", False)).survey()
    other = opened(spark, sampled(tmp_path / "c", "csv", False)).survey()
    assert one.periods == other.periods
    assert one.rows_by_part == other.rows_by_part
    assert one.rows == 3000
    assert set(one.periods["2026-10"].totals["USD"]) == set(MEASURES)
    assert one.periods["2026-10"].tag_keys
