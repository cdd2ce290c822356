"""Files as exporters really write them: text of every form, Parquet of every type, and damage in each."""

from __future__ import annotations

import gzip
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from weighbridge.adapters.files import FolderStore
from weighbridge.billing.formats import Declared, Part
from weighbridge.billing.reading import open_bill
from weighbridge.errors import BillRefused

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from weighbridge.billing.reading import Bill

HEADER = (
    "BillingPeriodStart,ChargePeriodStart,ChargeCategory,BilledCost,BillingCurrency,Tags,ChargeDescription"
)
ROW = '2026-10-01T00:00:00Z,2026-10-02T00:00Z,Usage,1.5,USD,"{""a"":""b""}",x'
ONE = f"{HEADER}\n{ROW}\n"


def opened(spark: SparkSession, file: Path, **declared: Any) -> Bill:
    return open_bill(spark, [Part(file.name, FolderStore(str(file.parent)))], Declared(**declared))


def total(bill: Bill, measure: str = "billed_cost") -> Decimal | None:
    (period,) = bill.survey().periods.values()
    found = period.totals["USD"][measure]
    return None if found is None else found.exact


@pytest.mark.parametrize(
    ("name", "content", "descriptions"),
    [
        ("bom and crlf.csv", f"\ufeff{HEADER}\r\n{ROW}\r\n".encode(), ["x"]),
        (
            "lines in a field.csv",
            f'{HEADER}\n{ROW[:-1]}"li\r\nne, ""q"""\n{ROW}\n'.encode(),
            ['li\r\nne, "q"', "x"],
        ),
        ("two members.csv.gz", gzip.compress(ONE.encode()) + gzip.compress(f"{ROW}\n".encode()), ["x", "x"]),
        ("blank lines.csv", f"{HEADER}\n\n{ROW}\n\n\n".encode(), ["x"]),
        ("columns without name.csv", f"{HEADER},,\n{ROW},,\n".encode(), ["x"]),
        ("a [bill]*{1}?.csv", ONE.encode(), ["x"]),
        ("a%20bill é=1.csv", ONE.encode(), ["x"]),
        ("long.csv", f"{HEADER}\n{ROW[:-1]}{'y' * 1_200_000}\n".encode(), ["y" * 1_200_000]),
        ("no text.csv", f"{HEADER}\n{ROW[:-1]}null\n".encode(), [None]),
    ],
)
def test_text_is_read_as_it_was_meant(
    spark: SparkSession, tmp_path: Path, name: str, content: bytes, descriptions: list[str | None]
) -> None:
    (tmp_path / name).write_bytes(content)
    bill = opened(spark, tmp_path / name)
    assert total(bill) == Decimal("1.5") * len(descriptions)
    lines = bill.lines.orderBy("x_row").select("x_row", "tags", "charge_description").collect()
    assert [line["x_row"] for line in lines] == list(range(1, len(descriptions) + 1))
    assert [line["charge_description"] for line in lines] == descriptions
    assert lines[0]["tags"] == {"a": "b"}


WHOLE = gzip.compress((f"{HEADER}\n" + f"{ROW}\n" * 60_000).encode(), 0)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("more.csv", f"{ONE}{ROW},y\n".encode(), "row 2 does not have the 7 fields"),
        ("fewer.csv", f"{ONE}2026-10-01,2026\n".encode(), "row 2 does not have the 7 fields"),
        ("open.csv", f'{ONE}{ROW[:-1]}"x\n{ROW}\n'.encode(), "row 2 does not have the 7 fields"),
        ("cut.csv.gz", WHOLE[:-9], "is cut"),
        ("crc.csv.gz", WHOLE[:-6] + b"\0\0" + WHOLE[-4:], "is damaged"),
        ("junk.csv.gz", WHOLE + b"junk", "is damaged"),
        (
            "too much.csv",
            ONE.replace("1.5", "1" + "0" * 20).encode(),
            "BilledCost is '100000000000000000000'",
        ),
        ("exponent.csv", ONE.replace("1.5", "1E-2000000000").encode(), "BilledCost is '1E-2000000000'"),
        ("sum.csv", (ONE + ROW + "\n").replace("1.5", "9" * 20).encode(), "does not fit DECIMAL"),
        ("none.csv", f"{HEADER}\n".encode(), "no rows, so no billing period"),
        ("twice.csv", f"{HEADER},BilledCost\n{ROW},2\n".encode(), "has the column BilledCost twice"),
        ("trailing.csv", ONE.replace('""b""}', '""b""} x').encode(), "row 1: Tags is"),
        ("quotes.csv", ONE.replace('""a"":""b""', "'a':'b'").encode(), "row 1: Tags is"),
    ],
)
def test_text_that_is_damaged_or_ambiguous_is_refused_with_the_place(
    spark: SparkSession, tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BillRefused) as refused:
        opened(spark, tmp_path / name).survey()
    assert name in str(refused.value)
    assert reason in str(refused.value)


def test_rows_of_several_currencies_and_periods_are_told_apart(spark: SparkSession, tmp_path: Path) -> None:
    other = ROW.replace("USD", "EUR").replace("2026-10-01", "2026-09-01")
    (tmp_path / "bill.csv").write_text(f"{ONE}{other}\n{ROW}\n")
    periods = opened(spark, tmp_path / "bill.csv").survey().periods
    assert [(period, found.rows, list(found.totals)) for period, found in periods.items()] == [
        ("2026-09", 1, ["EUR"]),
        ("2026-10", 2, ["USD"]),
    ]


def test_only_the_tag_keys_that_a_source_keeps_are_read(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "bill.csv").write_text(ONE.replace('""a""', '""z"":1.10,""a""'))
    kept = opened(spark, tmp_path / "bill.csv", keep_tag_keys=("z",))
    assert kept.survey().periods["2026-10"].tag_keys == {"z": 1}
    assert kept.lines.collect()[0]["tags"] == {"z": "1.10"}


def test_a_declared_form_of_dates_is_the_only_one_that_is_read(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "bill.csv"
    file.write_text(ONE.replace("2026-10-01T00:00:00Z", "10/1/26").replace("2026-10-02T00:00Z", "10/2/26"))
    assert list(opened(spark, file, dates="M/d/yy").survey().periods) == ["2026-10"]
    with pytest.raises(BillRefused, match=r"BillingPeriodStart is '10/1/26'.*--dates"):
        opened(spark, file).survey()
    file.write_text(ONE.replace("2026-10-01T00:00:00Z", "10/1/26"))
    with pytest.raises(BillRefused, match="ChargePeriodStart is '2026-10-02T00:00Z'"):
        opened(spark, file, dates="M/d/yy").survey()


def table(**columns: Any) -> pa.Table:
    """Two rows of FOCUS in Parquet, 1.5 USD each."""
    given = {
        "BillingPeriodStart": pa.array([datetime(2026, 10, 1, tzinfo=UTC)] * 2, pa.timestamp("ms", "UTC")),
        "ChargePeriodStart": pa.array([datetime(2026, 10, 2, tzinfo=UTC)] * 2, pa.timestamp("us", "UTC")),
        "ChargeCategory": pa.array(["Usage"] * 2),
        "BilledCost": pa.array([1.5] * 2),
        "BillingCurrency": pa.array(["USD"] * 2),
    }
    return pa.table(given | columns)


def parquet(folder: Path, **columns: Any) -> Path:
    pq.write_table(table(**columns), folder / "bill.parquet")
    return folder / "bill.parquet"


NANOSECONDS = 1_790_899_200_000_000_000  # 2026-10-02


def test_every_type_that_a_writer_gives_times_and_texts_is_read(spark: SparkSession, tmp_path: Path) -> None:
    times = [
        pa.array([NANOSECONDS, NANOSECONDS + 999], pa.timestamp("ns", "UTC")),
        pa.array([NANOSECONDS // 10**6] * 2, pa.timestamp("ms")),
        pa.array([date(2026, 10, 2)] * 2),
        pa.array(["2026-10-02T00:00Z"] * 2),
    ]
    for at, time in enumerate(times):
        (tmp_path / f"{at}").mkdir()
        bill = opened(
            spark,
            parquet(
                tmp_path / f"{at}",
                ChargePeriodStart=time,
                RegionId=pa.array(["eu", None]).dictionary_encode(),
                ResourceId=pa.nulls(2),
            ),
        )
        line = bill.lines.orderBy("x_row").select("charge_period_start", "region_id", "resource_id").first()
        assert line is not None
        assert tuple(line) == (datetime(2026, 10, 2), "eu", None)
        assert bill.survey().periods["2026-10"].last_day == date(2026, 10, 2)


@pytest.mark.parametrize(
    "tags",
    [
        pa.array([[("a", "1"), ("b", "x")], None], pa.map_(pa.string(), pa.string())),
        pa.array([{"a": "1", "b": "x", "c": None}, None]),
        pa.array([[{"key": "a", "value": "1"}, {"key": "b", "value": "x"}], None]),
        pa.array(['{"a":1,"b":"x"}', None]),
    ],
    ids=["map", "struct", "list", "text"],
)
def test_tags_of_every_type_become_one_map(spark: SparkSession, tmp_path: Path, tags: pa.Array) -> None:
    bill = opened(spark, parquet(tmp_path, Tags=tags))
    found = bill.survey().periods["2026-10"]
    assert (found.tag_keys, found.untagged_rows) == ({"a": 1, "b": 1}, 1)
    assert [line["tags"] for line in bill.lines.orderBy("x_row").collect()] == [{"a": "1", "b": "x"}, None]


def test_costs_of_every_exact_type_are_summed_to_the_last_digit(spark: SparkSession, tmp_path: Path) -> None:
    fine = Decimal("0.1234567890123456789012345678")
    bill = opened(
        spark,
        parquet(
            tmp_path,
            BilledCost=pa.array([0.1, 5.684341886080802e-14]),
            EffectiveCost=pa.array([fine, Decimal(1)], pa.decimal128(38, 28)),
            ListCost=pa.array([5, None], pa.int32()),
            ContractedCost=pa.array(["2.0000000000000000005", " -1E-20 "]),
        ),
    )
    assert total(bill) == Decimal("0.10000000000005684341886080802")
    assert total(bill, "effective_cost") == Decimal(f"1{str(fine)[1:]}")
    assert total(bill, "list_cost") == 5
    assert total(bill, "contracted_cost") == Decimal("2.00000000000000000049")


@pytest.mark.parametrize("cost", [float("nan"), float("-inf"), 2.0**53, 1e-50])
def test_a_double_that_is_no_amount_refuses_the_bill(
    spark: SparkSession, tmp_path: Path, cost: float
) -> None:
    with pytest.raises(BillRefused, match=r"bill\.parquet, row 2: BilledCost is"):
        opened(spark, parquet(tmp_path, BilledCost=pa.array([1.0, cost]))).survey()


def test_a_type_that_holds_no_exact_amount_refuses_the_bill(spark: SparkSession, tmp_path: Path) -> None:
    for cost in (pa.array([1, 2], pa.float32()), pa.array([True, None])):
        with pytest.raises(BillRefused, match="which holds no exact amount"):
            opened(spark, parquet(tmp_path, BilledCost=cost))


def test_a_damaged_page_is_refused_by_the_files_name(spark: SparkSession, tmp_path: Path) -> None:
    file = parquet(tmp_path)
    many = pa.concat_tables([table(BilledCost=pa.array([at * 0.1, at * 0.7])) for at in range(3000)])
    pq.write_table(many, file)
    content = bytearray(file.read_bytes())
    content[5000:5200] = b"\xff" * 200
    file.write_bytes(bytes(content))
    with pytest.raises(BillRefused, match=r"bill\.parquet is damaged"):
        opened(spark, file).survey()
