"""What lies in a landing place is found, checked and kept whole."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from weighbridge.adapters.files import FolderStore
from weighbridge.billing.archive import archive, archived
from weighbridge.billing.deliveries import (
    Found,
    check_parts,
    check_unchanged,
    find_deliveries,
    loose_delivery,
)
from weighbridge.billing.layouts import ListedPart
from weighbridge.errors import BillRefused, Refused

EXECUTION = "2024-04-02T13:14:43.337Z-6b622448-daaa-439c-92f1-afc727f1e0a3"
DATA = "main/data/BILLING_PERIOD=2024-03"
MANIFEST = "main/metadata/BILLING_PERIOD=2024-03/main-Manifest.json"
AZURE = "focus/daily/20240901-20240930/202409210612/c4d9b4b2-0000-4000-8000-1f0f5c3b7a11"


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore(str(tmp_path / "landing"))


def aws(files: list[str] | None = None, **more: Any) -> bytes:
    """A manifest as AWS Data Exports writes it."""
    listed = ["s3://b/p/" + DATA + "/main-00001.csv.gz"] if files is None else files
    arn = "arn:aws:bcm-data-exports:us-east-1:1:export/main"
    manifest = {"executionId": "6b62", "exportArn": arn, "dataFiles": listed, "additionalOutputFiles": []}
    return json.dumps(manifest | more).encode()


def azure(**more: Any) -> bytes:
    """A manifest as an Azure FOCUS export writes it."""
    blob = {"blobName": f"root/{AZURE}/part_0_0001.csv", "byteCount": 4, "dataRowCount": 2}
    manifest = {
        "manifestVersion": "2024-04-01",
        "byteCount": 4,
        "blobCount": 1,
        "dataRowCount": 2,
        "exportConfig": {"exportName": "daily", "type": "FocusCost", "dataVersion": "1.0r2"},
        "deliveryConfig": {"partitionData": True, "dataOverwriteBehavior": "CreateNewReport"},
        "runInfo": {
            "executionType": "Scheduled",
            "submittedTime": "2024-09-21T06:12:44.1234567Z",
            "runId": "c4d9b4b2-0000-4000-8000-1f0f5c3b7a11",
            "startDate": "2024-09-01T00:00:00",
            "endDate": "2024-09-21T00:00:00",
        },
        "blobs": [blob],
    }
    return json.dumps(manifest | more).encode()


def one_broken(found: Found) -> str:
    """The reason of the only thing found, which has to be broken."""
    assert found.deliveries == []
    return found.broken[0].reason


def test_an_aws_overwrite_delivery_is_what_its_manifest_lists(store: FolderStore) -> None:
    columns = [{"name": "bill_type", "type": "string"}, {"name": "tags", "type": "map"}]
    content = aws([f"s3://b/p/{DATA}/main-0000{n}.csv.gz" for n in (2, 1)], columns=columns)
    for number in (1, 2, 3):
        store.write(f"{DATA}/main-0000{number}.csv.gz", b"x")
    store.write("main/metadata/BILLING_PERIOD=2024-03/main-Metadata.json", b"{}")
    store.write(MANIFEST, content)
    found = find_deliveries(store, "aws-main")
    assert found.broken == []
    (one,) = found.deliveries
    assert one.parts == (ListedPart(f"{DATA}/main-00002.csv.gz"), ListedPart(f"{DATA}/main-00001.csv.gz"))
    assert (one.period, one.layout, one.unlisted) == ("2024-03", "aws-data-exports", 1)
    assert one.declared_columns == ("bill_type", "tags")
    assert one.delivered_at_from == "modified"
    manifest = store.stat(MANIFEST)
    assert manifest is not None
    assert one.delivered_at == manifest.modified
    assert one.manifest_digest == hashlib.sha256(content).hexdigest()
    assert one.id == hashlib.sha256(b"aws-main\0" + content).hexdigest()[:16]


def test_an_aws_create_new_delivery_has_its_age_from_its_path(store: FolderStore) -> None:
    folder = f"main/data/billing_period=2024-03/{EXECUTION}"
    other = "main/data/billing_period=2024-03/2024-03-28T01:05:29.443Z-f9ecf539"
    content = aws([f"s3://b/p/{folder}/main-00001.snappy.parquet"])
    store.write(f"{folder}/main-00001.snappy.parquet", b"x")
    store.write(f"{folder}/stray", b"x")
    store.write(f"{other}/main-00001.snappy.parquet", b"x")
    store.write(f"main/metadata/billing_period=2024-03/{EXECUTION}/main-Manifest.json", content)
    store.write("main/metadata/billing_period=2024-03/main-Manifest.json", content)
    found = find_deliveries(store, "s")
    (one,) = found.deliveries
    assert found.broken == []
    assert one.delivered_at == datetime(2024, 4, 2, 13, 14, 43, 337000, tzinfo=UTC)
    assert (one.delivered_at_from, one.unlisted, one.period) == ("path", 1, "2024-03")


def test_a_landing_place_may_begin_at_the_export_or_above_it(store: FolderStore, tmp_path: Path) -> None:
    content = aws([f"s3://bucket/a/prefix/{DATA}/main-00001.csv.gz"])
    for root, base in (("x", ""), ("y", "main/"), ("z", "a/prefix/main/"), ("w", "renamed/")):
        place = FolderStore(str(tmp_path / root))
        place.write(f"{base}metadata/BILLING_PERIOD=2024-03/main-Manifest.json", content)
        (one,) = find_deliveries(place, "s").deliveries
        assert one.parts[0].key == f"{base}data/BILLING_PERIOD=2024-03/main-00001.csv.gz"


def test_a_relative_key_in_the_list_is_the_same_file(store: FolderStore) -> None:
    store.write(MANIFEST, aws([f"{DATA}/main-00001.csv.gz"]))
    assert find_deliveries(store, "s").deliveries[0].parts[0].key == f"{DATA}/main-00001.csv.gz"


def test_a_period_down_to_nothing_is_a_delivery_without_parts(store: FolderStore) -> None:
    store.write(f"{DATA}/main-00001.csv.gz", b"left over")
    store.write(MANIFEST, aws([]))
    (one,) = find_deliveries(store, "s").deliveries
    assert (one.parts, one.period, one.unlisted) == ((), "2024-03", 1)
    assert check_parts(store, one) == []


def test_an_azure_delivery_says_its_time_period_bytes_and_rows(store: FolderStore) -> None:
    store.write(f"{AZURE}/part_0_0001.csv", b"a\n1\n")
    store.write(f"{AZURE}/part_1_0001.csv", b"left over")
    store.write(f"{AZURE}/manifest.json", azure())
    found = find_deliveries(store, "s")
    assert found.broken == []
    (one,) = found.deliveries
    assert one.parts == (ListedPart(f"{AZURE}/part_0_0001.csv", 4, 2),)
    assert (one.period, one.layout, one.unlisted, one.rows) == ("2024-09", "azure-exports", 1, 2)
    assert one.delivered_at == datetime(2024, 9, 21, 6, 12, 44, 123456, tzinfo=UTC)
    assert one.delivered_at_from == "manifest"
    assert [file.bytes for file in check_parts(store, one)] == [4]


def test_an_azure_run_without_a_time_in_its_manifest_has_it_from_its_folder(store: FolderStore) -> None:
    store.write(f"{AZURE}/manifest.json", azure(runInfo={"startDate": "2024-09-01", "endDate": "2024-09-30"}))
    (one,) = find_deliveries(store, "s").deliveries
    assert one.delivered_at == datetime(2024, 9, 21, 6, 12, tzinfo=UTC)
    assert one.delivered_at_from == "path"


@pytest.mark.parametrize(
    ("start", "end"),
    [("2024-09-20", "2024-09-26"), ("2024-08-01", "2024-09-30"), ("2024-09-28", "2024-10-04")],
)
def test_an_azure_run_that_is_no_month_from_its_first_day_is_broken(
    store: FolderStore, start: str, end: str
) -> None:
    run = {"submittedTime": "2024-09-21T06:12:44Z", "startDate": start, "endDate": end}
    store.write(f"{AZURE}/manifest.json", azure(runInfo=run))
    assert "not one month" in one_broken(find_deliveries(store, "s"))


def test_an_azure_export_of_another_kind_is_broken(store: FolderStore) -> None:
    store.write(f"{AZURE}/manifest.json", azure(exportConfig={"type": "PriceSheet"}))
    assert "PriceSheet" in one_broken(find_deliveries(store, "s"))


@pytest.mark.parametrize("name", ["blobCount", "byteCount", "dataRowCount"])
def test_an_azure_list_that_does_not_add_up_is_broken(store: FolderStore, name: str) -> None:
    store.write(f"{AZURE}/manifest.json", azure(**{name: 9}))
    assert f"its {name} is 9" in one_broken(find_deliveries(store, "s"))


HOSTILE = [
    "../secret.csv",
    "/etc/passwd",
    f"s3://b/p/{DATA}/../../../secret.csv",
    f"s3://b/p/{DATA}/..%2f..%2Fsecret.csv",
    f"s3://b/p/{DATA}/%2e%2e/secret.csv",
    f"s3://b/p/{DATA}//x.csv",
    f"s3://b/p/{DATA}/*.csv",
    f"s3://b/p/{DATA}/x[1].csv",
    f"s3://b/p/{DATA}/a\\b.csv",
    f"s3://b/p/{DATA}/a\nb.csv",
    f"file:///{DATA}/x.csv",
    f"https://host/{DATA}/x.csv",
    "s3://other/elsewhere/x.csv",
    "s3://other/p/secret/data/BILLING_PERIOD=2024-03/x.csv",
    "s3://b/p/main/data/BILLING_PERIOD=2024-02/x.csv",
    "",
    7,
    None,
    {"key": "x"},
]


@pytest.mark.parametrize("entry", HOSTILE)
def test_a_listed_file_outside_the_delivery_breaks_it(store: FolderStore, entry: Any) -> None:
    store.write(MANIFEST, aws([f"s3://b/p/{DATA}/main-00001.csv.gz", entry]))
    found = find_deliveries(store, "s")
    assert found.deliveries == []
    assert (found.broken[0].period, found.broken[0].manifest) == ("2024-03", MANIFEST)


@pytest.mark.parametrize(
    "entry", ["../x.csv", "/x.csv", "a/..%2fx.csv", "root/other/20240801-20240831/x.csv"]
)
def test_a_blob_outside_its_run_breaks_an_azure_delivery(store: FolderStore, entry: str) -> None:
    store.write(f"{AZURE}/manifest.json", azure(blobs=[{"blobName": entry}]))
    assert "it lists" in one_broken(find_deliveries(store, "s"))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "no JSON"),
        (b'{"dataFiles": [', "no JSON"),
        (b"[]", "no JSON object"),
        (b"\xff\xfe", "no JSON"),
        (b'{"dataFiles": {}}', "no list"),
        (b'{"assemblyId": "1", "reportKeys": []}', "layout that is not read here"),
        (aws([f"{DATA}/x", f"{DATA}/x"]), "twice"),
        (aws([f"{DATA}/2024-01-01T00:00:00Z-a/x", f"{DATA}/2024-01-02T00:00:00Z-b/x"]), "several executions"),
        (aws(columns=[{"type": "string"}]), "without a name"),
    ],
)
def test_a_manifest_that_cannot_be_followed_hides_no_other(
    store: FolderStore, content: bytes, reason: str
) -> None:
    store.write(MANIFEST, content)
    other = "main/metadata/BILLING_PERIOD=2024-04/main-Manifest.json"
    store.write(other, aws(["main/data/BILLING_PERIOD=2024-04/main-00001.csv.gz"]))
    found = find_deliveries(store, "s")
    assert [one.period for one in found.deliveries] == ["2024-04"]
    (bad,) = found.broken
    assert reason in bad.reason
    assert MANIFEST in bad.reason
    assert bad.period == "2024-03"


def test_the_aws_manifest_has_to_lie_where_its_period_shows(store: FolderStore) -> None:
    store.write("main-Manifest.json", aws())
    assert "lies under metadata/BILLING_PERIOD" in one_broken(find_deliveries(store, "s"))


def found_with_part(store: FolderStore, content: bytes, listed_bytes: int | None = None) -> Any:
    store.write(f"{DATA}/main-00001.csv.gz", content)
    store.write(MANIFEST, aws())
    (one,) = find_deliveries(store, "s").deliveries
    return replace(one, parts=(replace(one.parts[0], bytes=listed_bytes),))


def test_a_missing_empty_or_short_part_refuses_the_delivery_by_name(store: FolderStore) -> None:
    delivery = found_with_part(store, b"1234")
    assert [file.bytes for file in check_parts(store, delivery)] == [4]
    with pytest.raises(BillRefused, match=r"main-00001.csv.gz has 4 bytes, but .* says 5"):
        check_parts(store, replace(delivery, parts=(replace(delivery.parts[0], bytes=5),)))
    store.write(f"{DATA}/main-00001.csv.gz", b"")
    with pytest.raises(BillRefused, match=r"main-00001.csv.gz is empty"):
        check_parts(store, delivery)
    store.delete(f"{DATA}/main-00001.csv.gz")
    with pytest.raises(BillRefused, match=r"main-00001.csv.gz is not there"):
        check_parts(store, delivery)


def test_a_part_or_manifest_replaced_during_the_read_refuses_the_delivery(store: FolderStore) -> None:
    delivery = found_with_part(store, b"1234")
    before = check_parts(store, delivery)
    check_unchanged(store, before, delivery)
    path = Path(store.spark_path(f"{DATA}/main-00001.csv.gz"))
    os.utime(path, ns=(1, 1))
    with pytest.raises(BillRefused, match="was replaced"):
        check_unchanged(store, before)
    path.unlink()
    with pytest.raises(BillRefused, match="is gone"):
        check_unchanged(store, before)
    store.write(MANIFEST, aws(executionId="next"))
    with pytest.raises(BillRefused, match=r"main-Manifest.json was replaced"):
        check_unchanged(store, [], delivery)


def test_a_loose_file_is_named_by_its_bytes_and_its_given_time(store: FolderStore) -> None:
    at = datetime(2024, 9, 3, tzinfo=UTC)
    store.write("bill.csv", b"a,b\n1,2\n")
    one = loose_delivery("s", store, "bill.csv", at)
    assert (one.delivered_at, one.delivered_at_from, one.period) == (at, "given", None)
    assert one.parts == (ListedPart("bill.csv", 8),)
    assert loose_delivery("s", store, "bill.csv", at) == one
    assert loose_delivery("s", store, "bill.csv", at.replace(day=4)).id != one.id
    store.write("copy.csv", b"a,b\n1,2\n")
    assert loose_delivery("s", store, "copy.csv", at).id == one.id
    store.write("bill.csv", b"a,b\n1,3\n")
    assert loose_delivery("s", store, "bill.csv", at).id != one.id
    with pytest.raises(Refused, match="has no zone"):
        loose_delivery("s", store, "bill.csv", datetime(2024, 9, 3))
    with pytest.raises(BillRefused, match="is not there"):
        loose_delivery("s", store, "lost.csv", at)


def test_an_archived_delivery_is_read_again_when_its_originals_are_gone(
    store: FolderStore, tmp_path: Path
) -> None:
    delivery = found_with_part(store, b"1234")
    kept = FolderStore(str(tmp_path / "archive"))
    archive(delivery, store, kept)
    files = [file.key for file in kept.list()]
    folder = f"s/2024-03/{delivery.manifest_digest}/"
    record = folder + "_delivery.json"
    assert sorted(files) == sorted([record, folder + f"{DATA}/main-00001.csv.gz", folder + MANIFEST])
    store.delete(f"{DATA}/main-00001.csv.gz")
    archive(delivery, store, kept)
    again, place = archived(kept, "s", "2024-03", delivery.manifest_digest)
    assert again == replace(delivery, parts=(ListedPart(f"{DATA}/main-00001.csv.gz", 4),))
    assert [file.key for file in check_parts(place, again)] == [f"{DATA}/main-00001.csv.gz"]
    assert place.read(again.parts[0].key) == b"1234"
    assert Path(place.spark_path(again.parts[0].key)).read_bytes() == b"1234"
    assert len(find_deliveries(place, "s").deliveries) == 1
    with pytest.raises(Refused, match="holds no whole delivery"):
        archived(kept, "s", "2024-04", delivery.manifest_digest)


def test_a_half_made_archive_does_not_count_and_is_made_again(store: FolderStore, tmp_path: Path) -> None:
    delivery = found_with_part(store, b"1234")
    kept = FolderStore(str(tmp_path / "archive"))
    archive(delivery, store, kept)
    folder = f"s/2024-03/{delivery.manifest_digest}/"
    kept.delete(folder + "_delivery.json")
    kept.write(folder + delivery.parts[0].key, b"12")
    with pytest.raises(Refused):
        archived(kept, "s", "2024-03", delivery.manifest_digest)
    archive(delivery, store, kept)
    assert kept.read(folder + delivery.parts[0].key) == b"1234"


def test_an_archive_of_a_manifest_replaced_meanwhile_is_refused(store: FolderStore, tmp_path: Path) -> None:
    delivery = found_with_part(store, b"1234")
    store.write(MANIFEST, aws(executionId="next"))
    with pytest.raises(BillRefused, match="was replaced"):
        archive(delivery, store, FolderStore(str(tmp_path / "archive")))


@pytest.mark.parametrize("folder", ["koku_delivery", "keboola_cur1", "focus_toolkit_generated"])
def test_manifests_of_layouts_not_read_here_are_named_not_skipped(bills: Path, folder: str) -> None:
    found = find_deliveries(FolderStore(str(bills / folder)), "s")
    assert found.deliveries == []
    assert all("layout that is not read here" in bad.reason for bad in found.broken)
    assert found.broken
