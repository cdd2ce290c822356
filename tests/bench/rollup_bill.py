"""Invented bills for the roll-up alone: FOCUS-like, tags as map and as JSON text, money as decimal and as double."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

RESOURCES = 60_000
LINES = [f"line-{n:02}" for n in range(12)]
VERSIONS = [f"model-{n:02}" for n in range(50)]
REGIONS = [f"region-{n:02}" for n in range(12)]
CATEGORIES = ["Usage", "Purchase", "Tax", "Credit", "Adjustment"]
AMOUNT = pa.decimal128(38, 18)
ROWS_PER_FILE, ROWS_PER_GROUP = 1_250_000, 250_000
SEED = 11


def make(rows: int, place: Path) -> None:
    """A folder of Parquet files; each file's rows follow from SEED and its number alone."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    tags, texts = _tag_sets()
    for number, start in enumerate(range(0, rows, ROWS_PER_FILE)):
        random = np.random.default_rng([SEED, number])
        with pq.ParquetWriter(place / f"part-{number:03}.parquet", _schema(), compression="snappy") as writer:
            left = min(ROWS_PER_FILE, rows - start)
            while left > 0:
                size = min(ROWS_PER_GROUP, left)
                writer.write_table(_group(random, size, tags, texts))
                left -= size
    (place / "whole").touch()


def _schema() -> pa.Schema:
    moment = pa.timestamp("us", "UTC")
    fields = [("BillingPeriodStart", moment), ("RegionId", pa.string()), ("ChargeCategory", pa.string())]
    fields += [("Tags", pa.map_(pa.string(), pa.string())), ("TagsJson", pa.string())]
    for name in ("Billed", "Effective", "List"):
        fields += [(f"{name}Cost", AMOUNT), (f"{name}Double", pa.float64())]
    return pa.schema(fields)


def _tag_sets() -> tuple[pa.Array, pa.Array]:
    """One tag set a resource, the last RESOURCES // 20 without any; as maps and as their JSON texts."""
    random = np.random.default_rng(SEED)
    sets = []
    for number in range(RESOURCES):
        if number % 20 == 19:
            sets.append({})
            continue
        sets.append(
            {
                "business_line": LINES[random.integers(len(LINES))],
                "cost_centre": f"CC-{random.integers(400)}",
                "environment": ("prod", "test", "dev")[random.integers(3)],
                "model_version": VERSIONS[random.integers(len(VERSIONS))],
                "owner": f"team-{random.integers(200)}@example.com",
                "resource_name": f"resource-{number}",
            }
        )
    maps = pa.array([list(one.items()) for one in sets], pa.map_(pa.string(), pa.string()))
    return maps, pa.array([json.dumps(one, separators=(",", ":")) if one else None for one in sets])


def _group(random: np.random.Generator, size: int, tags: pa.Array, texts: pa.Array) -> pa.Table:
    resources = pa.array(np.minimum(random.pareto(1.1, size) * 200, RESOURCES - 1).astype(np.int64))
    month = np.datetime64("2026-10-01T00:00:00", "us")
    columns: list[pa.Array] = [
        pa.array(np.full(size, month)).cast(pa.timestamp("us", "UTC")),
        pa.array(REGIONS).take(pa.array(random.integers(len(REGIONS), size=size))),
        pa.array(CATEGORIES).take(pa.array(random.choice(5, size, p=[0.9, 0.02, 0.03, 0.02, 0.03]))),
        tags.take(resources),
        texts.take(resources),
    ]
    for _ in range(3):
        nanos = random.integers(0, 50_000_000_000, size=size) * random.choice([1, 1, 1, -1], size)
        columns += [_decimals(nanos), pa.array(nanos / 1e9)]
    return pa.Table.from_arrays(columns, schema=_schema())


def _decimals(nanos: np.ndarray) -> pa.Array:
    """Nano-units as DECIMAL(38,18), exactly."""
    whole = pa.array(nanos).cast(pa.decimal128(19, 0))
    units = pa.Array.from_buffers(pa.decimal128(28, 9), len(whole), whole.buffers())
    return units.cast(AMOUNT)
