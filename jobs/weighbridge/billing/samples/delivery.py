"""A sample delivery on disk: data files, then the manifest that lists them, as clouds lay them out."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from decimal import Context, Decimal, Inexact, localcontext
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from weighbridge.billing.samples import cur2, focus
from weighbridge.billing.samples.azure import AZURE
from weighbridge.billing.samples.catalogue import LINES
from weighbridge.billing.samples.charges import Floats
from weighbridge.billing.samples.columns import Column, for_csv, table
from weighbridge.billing.samples.meters import Meter, cut
from weighbridge.billing.samples.order import Order
from weighbridge.billing.samples.stream import Stream
from weighbridge.errors import Refused

BUCKET = "acme-billing"
ROW_GROUP_ROWS = 250_000
EXACT_UP_TO_ROWS = 200_000
GZIP_LEVEL = 4


@dataclass(frozen=True)
class Part:
    """One data file as written."""

    path: Path
    rows: int
    bytes: int


@dataclass(frozen=True)
class Delivered:
    """What was written: the manifest, its files, rows, rows without a tag, the exact billed total, and the
    share of usage at list price per tagged business line (normal spelling; "" for lines that name none).

    `billed` adds the shortest decimal text of each cost; None above 200,000 rows, where that would take long.
    """

    manifest: Path
    parts: tuple[Part, ...]
    rows: int
    untagged_rows: int
    billed: Decimal | None
    shares: dict[str, float]
    currency: str = "USD"


def write(order: Order) -> Delivered:
    """One delivery under `order.out`. Refused where this very delivery already lies there."""
    place = Layout(order)
    if place.data.exists() or place.manifest.exists():
        raise Refused(
            f"{place.data} already holds this delivery: choose another --out, or remove that folder"
        )
    place.data.mkdir(parents=True)
    place.manifest.parent.mkdir(parents=True, exist_ok=True)
    stream = Stream(order)
    columns = (cur2 if order.format == "cur2" else focus).columns(order, stream.meters)
    bare = np.asarray([not meter.tags for meter in stream.meters])
    spent = np.zeros(len(stream.meters))
    untagged, billed = 0, Decimal(0) if order.rows <= EXACT_UP_TO_ROWS else None
    cost = "line_item_unblended_cost" if order.format == "cur2" else "BilledCost"

    def tables() -> Iterator[Any]:
        nonlocal untagged, billed, spent
        for block in stream.blocks():
            untagged += int(bare[block.meter].sum())
            spent += np.bincount(block.meter, np.nan_to_num(block.list_cost), len(spent))
            made = table(columns, block)
            if billed is not None:
                billed = exact_sum([billed, *(Decimal(str(v)) for v in made.column(cost).to_pylist())])
            yield made

    parts = _write_parts(order, place, _ahead(tables()))
    manifest = place.manifest_of(columns, parts)
    # The manifest comes last, as from the cloud: who sees it sees every file it lists.
    place.manifest.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    rows = sum(part.rows for part in parts)
    return Delivered(place.manifest, tuple(parts), rows, untagged, billed, _shares(stream.meters, spent))


def _shares(meters: Sequence[Meter], spent: Floats) -> dict[str, float]:
    """How large a part of the usage each tagged business line has, the largest first."""
    usual = {spelling: line.slug for line in LINES for spelling in (*line.spellings, line.team)}
    shares: dict[str, float] = {}
    for meter, part in zip(meters, spent / max(spent.sum(), 1e-9), strict=True):
        said = dict(meter.tags)
        line = usual.get(said.get("business_unit", said.get("team", "")), "")
        shares[line] = shares.get(line, 0.0) + float(part)
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def _ahead(tables: Iterator[Any]) -> Iterator[Any]:
    """The same tables; the next is made while one is written."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, tables, None)
        while (made := coming.result()) is not None:
            coming = pool.submit(next, tables, None)
            yield made


def exact_sum(amounts: Sequence[Decimal]) -> Decimal:
    """The sum without any rounding: Python's usual 28 digits are too few for a bill."""
    with localcontext(Context(prec=100, traps=[Inexact])):
        return sum(amounts, Decimal(0))


def _write_parts(order: Order, place: Layout, tables: Iterator[Any]) -> list[Part]:
    """The files, cut where the ordered rows are cut; what a second delivery has more goes to the last."""
    ends = [end for _, end in cut(order.rows, order.parts)][:-1]
    counts = [0] * order.parts
    number = written = 0
    with ExitStack() as stack:
        sink: _Sink | None = None
        for made in tables:
            sink = sink or stack.enter_context(_Sink(order, place.part(0), made.schema))
            while len(made):
                room = len(made) if number >= len(ends) else min(len(made), ends[number] - written)
                sink.add(made.slice(0, room))
                made, written = made.slice(room), written + room
                counts[number] += room
                if number < len(ends) and written == ends[number]:
                    number += 1
                    stack.close()
                    sink = stack.enter_context(_Sink(order, place.part(number), made.schema))
    files = [place.part(n) for n in range(order.parts)]
    return [Part(file, rows, file.stat().st_size) for file, rows in zip(files, counts, strict=True)]


class _Sink:
    """One data file that is being written."""

    def __init__(self, order: Order, path: Path, schema: Any) -> None:
        self.order, self.path, self.schema = order, path, schema
        self.stack = ExitStack()

    def __enter__(self) -> _Sink:
        if self.order.files == "parquet":
            # Without Arrow's own schema the file says only what Parquet says, as the cloud's files do.
            self.file = self.stack.enter_context(
                pyarrow.parquet.ParquetWriter(
                    self.path, self.schema, compression="snappy", store_schema=False
                )
            )
            return self
        plain = self.stack.enter_context(self.path.open("wb"))
        # No name and no time in the header: the same order gives the same bytes.
        packed = self.stack.enter_context(gzip.GzipFile("", "wb", GZIP_LEVEL, plain, mtime=0))
        texts = for_csv(self.schema.empty_table(), "s").schema
        self.file = self.stack.enter_context(pyarrow.csv.CSVWriter(packed, texts))
        return self

    def __exit__(self, *problem: object) -> None:
        self.stack.close()

    def add(self, made: Any) -> None:
        """Writes rows of the ordered columns."""
        if self.order.files == "parquet":
            self.file.write_table(made, row_group_size=ROW_GROUP_ROWS)
        else:
            self.file.write_table(for_csv(made, "s" if self.order.cloud is AZURE else "ms"))


class Layout:
    """Where a delivery lies: AWS Data Exports that keep every delivery, or an Azure export that does."""

    def __init__(self, order: Order) -> None:
        self.order = order
        moment = (
            order.delivered.strftime("%Y-%m-%dT%H:%M:%S") + f".{order.delivered.microsecond // 1000:03d}Z"
        )
        self.azure = order.cloud is AZURE
        self.export = {"cur2": "acme-cur2", "focus": "acme-focus"}[order.format]
        root = order.out / self.export
        if self.azure:
            last = order.end.fromordinal(order.end.toordinal() - 1)
            month = f"{order.start:%Y%m%d}-{last:%Y%m%d}"
            self.data = root / month / f"{order.delivered:%Y%m%d%H%M}" / order.run
            self.manifest = self.data / "manifest.json"
            self.execution = order.run
        else:
            self.execution = f"{moment}-{order.run}"
            # The partition is named after a column: CUR writes it in capitals, FOCUS does not.
            period = f"{'BILLING_PERIOD' if order.format == 'cur2' else 'billing_period'}={order.period}"
            self.data = root / "data" / period / self.execution
            self.manifest = root / "metadata" / period / self.execution / f"{self.export}-Manifest.json"

    def part(self, number: int) -> Path:
        """Path of a data file, counted from 0."""
        if self.azure:
            return self.data / f"part_{number}_0001.csv.gz"
        ending = "snappy.parquet" if self.order.files == "parquet" else "csv.gz"
        return self.data / f"{self.export}-{number + 1:05d}.{ending}"

    def manifest_of(self, columns: Sequence[Column], parts: Sequence[Part]) -> dict[str, Any]:
        """The manifest's content."""
        return self._azure_manifest(parts) if self.azure else self._aws_manifest(columns, parts)

    def _aws_manifest(self, columns: Sequence[Column], parts: Sequence[Part]) -> dict[str, Any]:
        payer, arn = self.order.cloud.payer, "arn:aws:bcm-data-exports:us-east-1"
        return {
            "executionId": self.execution,
            "exportArn": f"{arn}:{payer}:export/{self.export}-{UUID(int=int(payer))}",
            "columns": [{"name": c.name, "type": _aws_type(c.type)} for c in columns],
            "dataFiles": [
                f"s3://{BUCKET}/{part.path.relative_to(self.order.out).as_posix()}" for part in parts
            ],
            "additionalOutputFiles": [],
        }

    def _azure_manifest(self, parts: Sequence[Part]) -> dict[str, Any]:
        order = self.order
        submitted = order.delivered.strftime("%Y-%m-%dT%H:%M:%S.%f") + "0Z"
        last = order.end.fromordinal(order.end.toordinal() - 1)
        return {
            "manifestVersion": "2024-04-01",
            "byteCount": sum(part.bytes for part in parts),
            "blobCount": len(parts),
            "dataRowCount": sum(part.rows for part in parts),
            "exportConfig": {
                "exportName": self.export,
                "resourceId": f"{order.cloud.payer}/providers/Microsoft.CostManagement/exports/{self.export}",
                "dataVersion": "1.2",
                "apiVersion": "2023-07-01-preview",
                "type": "FocusCost",
                "timeFrame": "TheLastMonth",
                "granularity": "Daily",
            },
            "deliveryConfig": {
                "partitionData": True,
                "dataOverwriteBehavior": "CreateNewReport",
                "fileFormat": "Csv",
                "compressionMode": "Gzip",
                "containerUri": "/subscriptions/3f2504e0-4f89-41d3-9a0c-0305e82c3308/resourceGroups"
                "/rg-billing/providers/Microsoft.Storage/storageAccounts/acmebilling",
                "rootFolderPath": "",
            },
            "runInfo": {
                "executionType": "Scheduled",
                "submittedTime": submitted,
                "runId": order.run,
                "startDate": f"{order.start:%Y-%m-%d}T00:00:00",
                "endDate": f"{last:%Y-%m-%d}T00:00:00",
            },
            "blobs": [
                {
                    "blobName": part.path.relative_to(order.out).as_posix(),
                    "byteCount": part.bytes,
                    "dataRowCount": part.rows,
                }
                for part in parts
            ],
        }


def _aws_type(kind: Any) -> str:
    if pa.types.is_map(kind):
        return f"map<string,{_aws_type(kind.item_type)}>"
    return {"timestamp[ms, tz=UTC]": "timestamp"}.get(str(kind), str(kind))
