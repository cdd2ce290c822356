"""The header of a bill's file tells what it is, or why it cannot be taken, before Spark reads a row."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from weighbridge.adapters.files import FolderStore
from weighbridge.billing.formats import Declared, Part, recognise
from weighbridge.billing.headers import common, headers
from weighbridge.errors import BillRefused

TEXT = b"BillingPeriodStart,BilledCost\n2026-10-01,1\n"


def parts(folder: Path, **files: bytes) -> list[Part]:
    store = FolderStore(str(folder))
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return [Part(name, store) for name in files]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("bill.csv", b"", "is empty"),
        ("bill.parquet", b"", "is empty"),
        ("bill.csv", b"\n\n", "has no header"),
        ("bill.csv", "Währung,BilledCost\n".encode("latin-1"), "is not UTF-8 text"),
        ("bill.csv", TEXT.decode().encode("utf-16"), "is not UTF-8 text"),
        ("bill.csv", gzip.compress(TEXT), "is gzipped, but its name does not end in .gz"),
        ("bill.csv.gz", TEXT, "is no gzip file"),
        ("bill.csv.gz", b"\x1f\x8b\x09" + gzip.compress(TEXT)[3:], "is no whole gzip file"),
        ("bill.parquet", b"PAR1", "is no whole Parquet file"),
        ("bill.parquet", b"PAR1" + b"\xff\xff\xff\x7f" + b"PAR1", "its footer is longer than the file"),
        ("bill.zip", TEXT, "is no file that is read here"),
        ("_bill.csv", TEXT, "as files do that are not finished"),
    ],
)
def test_a_file_without_a_header_that_can_be_trusted_is_refused_by_name(
    tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    with pytest.raises(BillRefused) as refused:
        headers(parts(tmp_path, **{name: content}))
    assert name in str(refused.value)
    assert reason in str(refused.value)


def test_a_file_that_is_not_there_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(BillRefused, match=r"bill\.csv is not there"):
        headers([Part("bill.csv", FolderStore(str(tmp_path)))])


def test_a_bom_quotes_and_spaces_are_not_part_of_a_columns_name(tmp_path: Path) -> None:
    (found,) = headers(parts(tmp_path, **{"bill.csv": b'\xef\xbb\xbf"BillingPeriodStart", BilledCost \r\n'}))
    assert found.named == [("BillingPeriodStart", "string"), ("BilledCost", "string")]


def test_text_files_of_one_delivery_have_the_same_columns_in_the_same_order(tmp_path: Path) -> None:
    with pytest.raises(
        BillRefused, match=r"b\.csv has other columns than .*a\.csv: the same in another order"
    ):
        headers(parts(tmp_path, **{"a.csv": TEXT, "b.csv": b"BilledCost,BillingPeriodStart\n"}))


def parquet(folder: Path, name: str, **columns: pa.Array) -> Part:
    pq.write_table(pa.table(columns), folder / name)
    return Part(name, FolderStore(str(folder)))


def test_parquet_files_of_one_delivery_have_the_same_columns_of_the_same_types(tmp_path: Path) -> None:
    one = parquet(tmp_path, "a.parquet", BilledCost=pa.array([1.0]))
    with pytest.raises(BillRefused, match="BilledCost is string and not double"):
        headers([one, parquet(tmp_path, "b.parquet", BilledCost=pa.array(["1"]))])
    with pytest.raises(BillRefused, match="TaxCategory"):
        headers([one, parquet(tmp_path, "c.parquet", BilledCost=pa.array([1.0]), TaxCategory=pa.array([""]))])


def test_a_parquet_column_without_any_value_has_the_type_that_other_files_give_it(tmp_path: Path) -> None:
    empty = parquet(tmp_path, "a.parquet", ResourceId=pa.nulls(1))
    full = parquet(tmp_path, "b.parquet", ResourceId=pa.array(["i-1"]))
    assert common(headers([empty, full])).named == [("ResourceId", "string")]


def test_how_a_file_holds_text_in_memory_does_not_make_it_another_type(tmp_path: Path) -> None:
    one = parquet(tmp_path, "a.parquet", RegionId=pa.array(["eu", "us"]))
    large = parquet(tmp_path, "b.parquet", RegionId=pa.array(["eu"], pa.large_string()))
    coded = parquet(tmp_path, "c.parquet", RegionId=pa.array(["eu"]).dictionary_encode())
    assert {tuple(found.named[0]) for found in headers([one, large, coded])} == {("RegionId", "string")}


FOCUS = ("BillingPeriodStart", "ChargePeriodStart", "ChargeCategory", "BilledCost")


@pytest.mark.parametrize(
    ("more", "version"),
    [
        ((), "focus-1.0"),
        (("x_Discount", "SomethingElse"), "focus-1.0"),
        (("SkuMeter",), "focus-1.1"),
        (("SkuMeter", "InvoiceId"), "focus-1.2"),
    ],
)
def test_a_focus_file_is_of_the_newest_version_that_brought_a_column_of_it(
    more: tuple[str, ...], version: str
) -> None:
    assert recognise((*FOCUS, *more), "bill.csv", Declared())[1] == version


def test_newer_focus_is_refused_as_not_asked_for(tmp_path: Path) -> None:
    with pytest.raises(BillRefused, match=r"is a format that is not asked for yet: focus-1\.3"):
        recognise((*FOCUS, "ServiceProviderName"), "bill.csv", Declared())


def test_an_unknown_file_is_refused_with_the_columns_it_lacks_for_the_closest_format() -> None:
    with pytest.raises(BillRefused, match="for focus it lacks BillingPeriodStart, ChargePeriodStart"):
        recognise(("ChargeCategory", "BilledCost", "Other"), "bill.csv", Declared())
    with pytest.raises(BillRefused, match=r"for cur-2\.0 it lacks line_item_unblended_cost"):
        recognise(
            ("bill_billing_period_start_date", "line_item_usage_start_date", "line_item_line_item_type"),
            "bill.csv",
            Declared(),
        )


@pytest.mark.parametrize("declared", ["cur-2.0", "focus-1.2", "foc"])
def test_a_file_of_another_format_than_its_source_declares_is_refused(declared: str) -> None:
    with pytest.raises(BillRefused, match=f"but its source declares {declared}"):
        recognise(FOCUS, "bill.csv", Declared(format=declared))
    assert recognise(FOCUS, "bill.csv", Declared(format="focus"))[1] == "focus-1.0"
