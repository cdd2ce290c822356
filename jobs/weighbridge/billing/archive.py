"""The archive: the files of a published delivery, unchanged under its digest, to be read again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path

from weighbridge.billing.deliveries import LOOSE, Delivery, check_manifest
from weighbridge.billing.layouts import ListedPart
from weighbridge.errors import BillRefused, Refused
from weighbridge.ports import FileStore, StoredFile

ARCHIVE_RECORD = "_delivery.json"


class Below:
    """One folder of a store as a store of its own."""

    def __init__(self, store: FileStore, folder: str) -> None:
        """A view of `folder`, which ends with `/`."""
        self._store, self._folder = store, folder
        self.root = f"{store.root}/{folder}".rstrip("/")

    def list(self, prefix: str = "") -> Iterator[StoredFile]:
        """Files under a prefix, ordered by key."""
        for file in self._store.list(self._folder + prefix):
            yield replace(file, key=file.key.removeprefix(self._folder))

    def stat(self, key: str) -> StoredFile | None:
        """The file as it is now, or None."""
        file = self._store.stat(self._folder + key)
        return file and replace(file, key=key)

    def read(self, key: str, start: int = 0, length: int | None = None) -> bytes:
        """Bytes of one file, or a range of them."""
        return self._store.read(self._folder + key, start, length)

    def write(self, key: str, content: bytes) -> None:
        """One whole file, visible only when complete."""
        self._store.write(self._folder + key, content)

    def copy_from(self, other: FileStore, key: str, to: str) -> None:
        """A file of another store, unchanged, under a key of this one."""
        self._store.copy_from(other, key, self._folder + to)

    def delete(self, key: str) -> None:
        """Removes one file; none there is fine."""
        self._store.delete(self._folder + key)

    def clear_unfinished(self, prefix: str) -> None:
        """Removes what a writer that died left half-written below a prefix; only where nobody else writes."""
        self._store.clear_unfinished(self._folder + prefix)

    def spark_path(self, key: str) -> str:
        """Where Spark reads this file."""
        return self._store.spark_path(self._folder + key)

    def download(self, key: str, to: Path) -> None:
        """One whole file into a local path."""
        self._store.download(self._folder + key, to)


def archive_folder(source: str, period: str | None, manifest_digest: str) -> str:
    """Where a delivery lies in the archive."""
    return f"{source}/{period or 'no-period'}/{manifest_digest}/"


def archive(delivery: Delivery, from_store: FileStore, archive_store: FileStore) -> None:
    """Keeps the listed files and the manifest unchanged, under the delivery's digest. Doing it again is fine.

    Its record is written last: an archive without it is not whole, and is made again.
    """
    folder = archive_folder(delivery.source, delivery.period, delivery.manifest_digest)
    if archive_store.stat(folder + ARCHIVE_RECORD) is not None:
        return
    archive_store.clear_unfinished(folder)  # of a night that died in here; the lease keeps others away
    kept = []
    for part in delivery.parts:
        file = from_store.stat(part.key)
        if file is None:
            raise BillRefused(f"{from_store.root}/{part.key} is gone before it was archived")
        archive_store.copy_from(from_store, part.key, folder + part.key)
        copy = archive_store.stat(folder + part.key)
        if copy is None or copy.bytes != file.bytes:
            raise BillRefused(
                f"{archive_store.root}/{folder}{part.key} is not the {file.bytes} bytes of its original"
            )
        kept.append({"key": part.key, "bytes": file.bytes, "rows": part.rows})
    if delivery.layout != LOOSE:
        archive_store.copy_from(from_store, delivery.manifest, folder + delivery.manifest)
        check_manifest(Below(archive_store, folder), delivery)
    record = asdict(delivery) | {"parts": kept, "delivered_at": delivery.delivered_at.isoformat()}
    archive_store.write(folder + ARCHIVE_RECORD, json.dumps(record, indent=2, sort_keys=True).encode())


def archived(
    archive_store: FileStore, source: str, period: str | None, manifest_digest: str
) -> tuple[Delivery, FileStore]:
    """The delivery as it was taken, and the store that holds its keys. Refused where it was not kept."""
    folder = archive_folder(source, period, manifest_digest)
    if archive_store.stat(folder + ARCHIVE_RECORD) is None:
        raise Refused(
            f"{archive_store.root}/{folder} holds no whole delivery: it was published with "
            "WEIGHBRIDGE_ARCHIVE=off, or the archive was cleared; have the provider deliver the period again"
        )
    record = json.loads(archive_store.read(folder + ARCHIVE_RECORD))
    columns = record["declared_columns"]
    fields = record | {
        "delivered_at": datetime.fromisoformat(record["delivered_at"]),
        "parts": tuple(ListedPart(**part) for part in record["parts"]),
        "declared_columns": None if columns is None else tuple(columns),
    }
    return Delivery(**fields), Below(archive_store, folder)
