"""The same promises hold for a folder and for a real S3 server."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from weighbridge.adapters.files import FolderStore, open_store
from weighbridge.adapters.s3 import S3Store
from weighbridge.errors import Refused, Unavailable
from weighbridge.ports import FileStore

if TYPE_CHECKING:
    from s3_server import S3Server

pytest_plugins = ("s3_server",)


@dataclass(frozen=True)
class Place:
    """What a store asks of the settings."""

    s3_endpoint: str = ""
    s3_region: str = "us-east-1"


def s3_store(server: S3Server, prefix: str) -> FileStore:
    return open_store(f"s3://{server.bucket}/{prefix}", Place(server.endpoint))


@pytest.fixture(params=["folder", "s3"])
def store(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[FileStore]:
    if request.param == "folder":
        yield open_store(str(tmp_path / "landing"), Place())
        return
    server: S3Server = request.getfixturevalue("s3_server")
    for name, value in server.env.items():
        monkeypatch.setenv(name, value)
    yield s3_store(server, f"stores/{tmp_path.name}")


def test_a_written_file_is_read_back_whole_and_in_ranges(store: FileStore) -> None:
    store.write("a/b c=1:2/file.csv", b"0123456789")
    assert store.read("a/b c=1:2/file.csv") == b"0123456789"
    assert store.read("a/b c=1:2/file.csv", 3, 4) == b"3456"
    assert store.read("a/b c=1:2/file.csv", 8) == b"89"
    assert store.read("a/b c=1:2/file.csv", 0, 0) == b""
    assert store.read("a/b c=1:2/file.csv", 10, 5) == b""


def test_files_are_listed_by_key_in_order_with_size_and_time(store: FileStore) -> None:
    for key in ("b/2", "a.b", "b/10", "a/z", "b2"):
        store.write(key, key.encode())
    assert [file.key for file in store.list()] == ["a.b", "a/z", "b/10", "b/2", "b2"]
    assert [file.key for file in store.list("b")] == ["b/10", "b/2", "b2"]
    assert [file.key for file in store.list("b/")] == ["b/10", "b/2"]
    file = next(iter(store.list("a/")))
    assert file == store.stat("a/z")
    assert file.bytes == 3
    assert abs(file.modified.timestamp() - time.time()) < 60
    assert file.modified.utcoffset() is not None


def test_nothing_is_listed_where_nothing_is(store: FileStore) -> None:
    assert list(store.list()) == []
    assert list(store.list("no/such/place/")) == []
    assert store.stat("no/such/file") is None


def test_a_missing_file_is_refused_by_name_when_read(store: FileStore, tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"lost\.csv is not there"):
        store.read("lost.csv")
    with pytest.raises(Refused, match=r"lost\.csv is not there"):
        store.download("lost.csv", tmp_path / "x")


def test_the_etag_changes_when_a_file_is_replaced(store: FileStore) -> None:
    store.write("x", b"one")
    before = store.stat("x")
    assert store.stat("x") == before
    store.write("x", b"two")
    after = store.stat("x")
    assert before is not None
    assert after is not None
    assert before.etag != after.etag


def test_deleting_twice_is_fine(store: FileStore) -> None:
    store.write("x", b"1")
    store.delete("x")
    store.delete("x")
    assert store.stat("x") is None


def test_a_copy_from_another_store_has_the_same_bytes(store: FileStore, tmp_path: Path) -> None:
    content = os.urandom(300_000)
    outside = FolderStore(str(tmp_path / "outside"))
    outside.write("in/part.gz", content)
    store.copy_from(outside, "in/part.gz", "copies/part.gz")
    assert store.read("copies/part.gz") == content
    outside.copy_from(store, "copies/part.gz", "back/part.gz")
    assert outside.read("back/part.gz") == content
    store.copy_from(store, "copies/part.gz", "copies/again.gz")
    assert store.read("copies/again.gz") == content
    with pytest.raises(Refused, match="is not there"):
        store.copy_from(outside, "in/lost.gz", "copies/lost.gz")


def test_a_download_is_the_file(store: FileStore, tmp_path: Path) -> None:
    store.write("x/y", b"bytes")
    store.download("x/y", tmp_path / "here")
    assert (tmp_path / "here").read_bytes() == b"bytes"


@pytest.mark.parametrize("key", ["../x", "/etc/passwd", "a/../../x", "a//b", "./a", "", "a/", "a\nb", "a\0b"])
def test_a_key_that_leaves_its_root_is_refused(store: FileStore, key: str) -> None:
    for act in (store.stat, store.read, store.spark_path, store.delete):
        with pytest.raises(Refused):
            act(key)
    with pytest.raises(Refused):
        store.write(key, b"x")


def test_spark_gets_a_path_that_it_can_read(store: FileStore) -> None:
    store.write("a/b", b"x")
    path = store.spark_path("a/b")
    assert path.startswith("s3a://bills/stores/") if isinstance(store, S3Store) else Path(path).is_file()


def test_more_files_than_one_page_are_all_listed(s3_server: S3Server, tmp_path: Path) -> None:
    server, client = s3_server, s3_server.client()
    for number in range(1005):
        client.put_object(Bucket=server.bucket, Key=f"pages/{tmp_path.name}/{number:05}", Body=b"")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in server.env.items():
            patch.setenv(name, value)
        found = [file.key for file in s3_store(server, f"pages/{tmp_path.name}").list()]
    assert found == [f"{number:05}" for number in range(1005)]


def test_s3_errors_say_what_to_do_and_never_the_secret(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3_server.env.items():
        monkeypatch.setenv(name, value)
    place = Place(s3_server.endpoint)
    with pytest.raises(Refused, match="no bucket 'no-such-bucket'"):
        list(open_store("s3://no-such-bucket/x", place).list())
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong-secret-value")
    with pytest.raises(Refused, match="SignatureDoesNotMatch") as denied:
        list(open_store("s3://bills/x", place).list())
    assert "wrong-secret-value" not in str(denied.value)
    with pytest.raises(Unavailable, match="did not answer"):
        list(open_store("s3://bills/x", Place("http://127.0.0.1:9")).list())


def test_a_folder_takes_no_link_that_leads_out(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    root = tmp_path / "landing"
    (root / "in").mkdir(parents=True)
    (root / "in" / "real").write_text("y")
    (root / "out").symlink_to(tmp_path / "secret")
    (root / "dir").symlink_to(tmp_path)
    (root / "within").symlink_to(root / "in" / "real")
    store = FolderStore(str(root))
    for key in ("out", "dir/secret"):
        with pytest.raises(Refused, match="leads out"):
            store.read(key)
    assert [file.key for file in store.list()] == ["in/real", "within"]


def test_a_half_written_file_is_never_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FolderStore(str(tmp_path))
    store.write("x", b"old")

    def broken(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(Unavailable, match="No space left"):
        store.write("x", b"new and longer")
    assert store.read("x") == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_what_a_dead_writer_left_in_a_folder_is_cleared_below_one_prefix_alone(tmp_path: Path) -> None:
    store = FolderStore(str(tmp_path))
    store.write("a/b/whole", b"kept")
    left = [tmp_path / folder / ".weighbridge-unfinished-0123" for folder in ("a/b", "c")]
    for path in left:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"half")
    store.clear_unfinished("a/")
    store.clear_unfinished("nothing-here/")
    assert [path.exists() for path in left] == [False, True]
    assert store.read("a/b/whole") == b"kept"


def test_what_a_dead_writer_left_open_on_s3_is_ended_below_one_prefix_alone(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3_server.env.items():
        monkeypatch.setenv(name, value)
    client = s3_server.client()
    for key in ("left/a/big", "left-open/big"):
        client.create_multipart_upload(Bucket=s3_server.bucket, Key=key)
    open_store(f"s3://{s3_server.bucket}", Place(s3_server.endpoint)).clear_unfinished("left/")
    still = client.list_multipart_uploads(Bucket=s3_server.bucket).get("Uploads", [])
    assert [upload["Key"] for upload in still] == ["left-open/big"]


@pytest.mark.parametrize(
    "place", ["", "gs://bucket/x", "s3://", "s3://UPPER/x", "s3://bucket/../x", "file:///x"]
)
def test_a_place_that_is_no_store_is_refused(place: str) -> None:
    with pytest.raises(Refused):
        open_store(place, Place())
