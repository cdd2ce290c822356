"""Deliveries: what lies in a landing place, and whether it is whole."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from weighbridge.billing.layouts import ListedPart, Statement, is_manifest, layout_of
from weighbridge.errors import BillRefused, Refused
from weighbridge.ports import FileStore, StoredFile

MANIFEST_LIMIT_BYTES = 32 * 1024 * 1024
LOOSE = "loose-file"
CHUNK_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True)
class Delivery:
    """One delivery as its manifest describes it. `parts` are keys of the landing place, in its order."""

    source: str
    id: str
    manifest: str
    manifest_digest: str
    period: str | None
    delivered_at: datetime
    delivered_at_from: str
    parts: tuple[ListedPart, ...]
    unlisted: int
    declared_columns: tuple[str, ...] | None
    layout: str
    rows: int | None = None


@dataclass(frozen=True)
class BrokenDelivery:
    """A manifest that cannot be followed, and why. It stops its own (source, period) and nothing else."""

    source: str
    id: str
    manifest: str
    manifest_digest: str
    period: str | None
    delivered_at: datetime
    reason: str


@dataclass(frozen=True)
class Found:
    """Everything that calls itself a delivery in one landing place, ordered by age, then id."""

    deliveries: list[Delivery] = field(default_factory=list)
    broken: list[BrokenDelivery] = field(default_factory=list)


def delivery_id(source: str, content: bytes) -> str:
    """The delivery's name everywhere: 16 hex digits over its source and its manifest's bytes."""
    return hashlib.sha256(source.encode() + b"\0" + content).hexdigest()[:16]


def find_deliveries(store: FileStore, source: str) -> Found:
    """Every manifest under the landing place, read. One that cannot be followed hides no other."""
    files = list(store.list())
    keys = [file.key for file in files]
    deliveries: dict[str, Delivery] = {}
    broken: dict[str, BrokenDelivery] = {}
    for file in files:
        if not is_manifest(file.key):
            continue
        content = b""
        try:
            if file.bytes > MANIFEST_LIMIT_BYTES:
                raise BillRefused(f"it has {file.bytes} bytes, which no manifest has")
            content = store.read(file.key)
            one = _delivery(source, file, content, keys)
            # The same manifest in two places is one delivery; its age is the older one.
            other = deliveries.get(one.id)
            if other is None or _age(one) < _age(other):
                deliveries[one.id] = one
        except Refused as error:
            bad = _broken(source, file, content, f"{store.root}/{file.key}: {error}")
            broken.setdefault(bad.id, bad)
    return Found(
        sorted(deliveries.values(), key=_age),
        sorted(broken.values(), key=lambda one: (one.delivered_at, one.id)),
    )


def _age(delivery: Delivery) -> tuple[datetime, str, str]:
    return (delivery.delivered_at, delivery.id, delivery.manifest)


def _delivery(source: str, file: StoredFile, content: bytes, keys: Sequence[str]) -> Delivery:
    manifest = _json(content)
    layout = layout_of(manifest)
    said = layout.read(file.key, manifest)
    return Delivery(
        source=source,
        id=delivery_id(source, content),
        manifest=file.key,
        manifest_digest=hashlib.sha256(content).hexdigest(),
        period=said.period,
        delivered_at=said.delivered_at or file.modified,
        delivered_at_from=said.delivered_at_from if said.delivered_at else "modified",
        parts=said.parts,
        unlisted=_unlisted(said, keys),
        declared_columns=said.columns,
        layout=layout.name,
        rows=said.rows,
    )


def _json(content: bytes) -> dict[str, Any]:
    try:
        manifest = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise BillRefused(f"it is no JSON ({type(error).__name__}): not whole yet, or damaged") from error
    if not isinstance(manifest, dict):
        raise BillRefused("it is no JSON object")
    return manifest


def _unlisted(said: Statement, keys: Sequence[str]) -> int:
    """How many files lie directly beside the listed ones and are none of them, manifests left out."""
    listed = {part.key for part in said.parts}
    return sum(
        key[: key.rfind("/") + 1] in said.folders and key not in listed and not is_manifest(key)
        for key in keys
    )


def _broken(source: str, file: StoredFile, content: bytes, reason: str) -> BrokenDelivery:
    # A manifest that could not even be read is named by its place and state.
    content = content or f"{file.key}\0{file.etag}".encode()
    period = re.search(r"(?:^|/)billing_period=(\d{4}-\d{2})/", file.key, re.IGNORECASE)
    days = re.search(r"(?:^|/)(\d{4})(\d{2})\d{2}-\d{8}/", file.key)
    return BrokenDelivery(
        source=source,
        id=delivery_id(source, content),
        manifest=file.key,
        manifest_digest=hashlib.sha256(content).hexdigest(),
        period=period[1] if period else f"{days[1]}-{days[2]}" if days else None,
        delivered_at=file.modified,
        reason=reason,
    )


def loose_delivery(source: str, store: FileStore, key: str, delivered_at: datetime) -> Delivery:
    """One file without a manifest as a delivery of its own; its digest covers its bytes and its time."""
    if delivered_at.tzinfo is None:
        raise Refused(
            f"'{delivered_at}' has no zone: give the time of delivery with one, e.g. 2026-01-31T06:00:00Z"
        )
    file = store.stat(key)
    if file is None:
        raise BillRefused(f"{store.root}/{key} is not there")
    at = delivered_at.astimezone(UTC)
    statement = f"{file_digest(store, file)}\n{at.isoformat()}".encode()
    return Delivery(
        source=source,
        id=delivery_id(source, statement),
        manifest=key,
        manifest_digest=hashlib.sha256(statement).hexdigest(),
        period=None,
        delivered_at=at,
        delivered_at_from="given",
        parts=(ListedPart(key, file.bytes),),
        unlisted=0,
        declared_columns=None,
        layout=LOOSE,
    )


def file_digest(store: FileStore, file: StoredFile) -> str:
    """sha256 (hex) of one stored file, read in pieces."""
    digest = hashlib.sha256()
    for start in range(0, file.bytes, CHUNK_BYTES):
        digest.update(store.read(file.key, start, CHUNK_BYTES))
    return digest.hexdigest()


def check_parts(store: FileStore, delivery: Delivery) -> list[StoredFile]:
    """The listed files as they are now, in the manifest's order, before any is read.

    Refused where one is missing, empty or of another size than the manifest says, or where the manifest
    was replaced meanwhile: then the provider is writing the next delivery.
    """
    found = []
    for part in delivery.parts:
        file = store.stat(part.key)
        place = f"{store.root}/{part.key}"
        if file is None:
            raise BillRefused(
                f"{place} is not there, but {delivery.manifest} lists it; "
                "wait for the provider to deliver again, or put the file there"
            )
        if file.bytes == 0:
            raise BillRefused(f"{place} is empty; have the provider deliver it again")
        if part.bytes is not None and file.bytes != part.bytes:
            raise BillRefused(
                f"{place} has {file.bytes} bytes, but {delivery.manifest} says {part.bytes}; "
                "it is not whole: wait for the provider to deliver again"
            )
        found.append(file)
    check_manifest(store, delivery)
    return found


def check_unchanged(store: FileStore, before: Sequence[StoredFile], delivery: Delivery | None = None) -> None:
    """Passes when every file, and the manifest of a given delivery, is as before the read; else refused."""
    for file in before:
        now = store.stat(file.key)
        if now is None or (now.bytes, now.etag) != (file.bytes, file.etag):
            what = "is gone" if now is None else f"was replaced ({file.bytes} bytes before, {now.bytes} now)"
            raise BillRefused(
                f"{store.root}/{file.key} {what} while it was read; "
                "the next night takes what the provider has delivered by then"
            )
    if delivery is not None:
        check_manifest(store, delivery)


def check_manifest(store: FileStore, delivery: Delivery) -> None:
    """Passes when the manifest still has the bytes that the delivery was read from; else refused."""
    if delivery.layout == LOOSE:
        return
    content = store.read(delivery.manifest)
    if hashlib.sha256(content).hexdigest() != delivery.manifest_digest:
        raise BillRefused(
            f"{store.root}/{delivery.manifest} was replaced while its delivery was read; "
            "the next night takes the new one"
        )
