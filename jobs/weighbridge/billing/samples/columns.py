"""Arrow columns from charges: what a meter, a kind or a plan decides is looked up, not computed per row."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from weighbridge.billing.samples.charges import Charges, Flags, Floats, Ints
from weighbridge.billing.samples.meters import Meter
from weighbridge.billing.samples.order import HOUR_MS

TEXT, DOUBLE, TIME = pa.string(), pa.float64(), pa.timestamp("ms", tz="UTC")
TEXT_MAP, DOUBLE_MAP = pa.map_(pa.string(), pa.string()), pa.map_(pa.string(), pa.float64())
Fill = Callable[[Charges], Any]
ALPHABET = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz234567", dtype=np.uint8)


@dataclass(frozen=True)
class Column:
    """One column of a format: name, Arrow type, and how charges fill it (None: with nulls)."""

    name: str
    type: Any
    fill: Fill | None = None


def table(columns: Sequence[Column], rows: Charges) -> Any:
    """An Arrow table of these charges; texts are dictionary-encoded, which Parquet writes as strings."""
    filled = [pa.nulls(len(rows), c.type) if c.fill is None else c.fill(rows) for c in columns]
    return pa.table(filled, names=[c.name for c in columns])


def looked_up(values: Sequence[str | None], index: Callable[[Charges], Any]) -> Fill:
    """A text column: `values` by an index of the charges; an index of -1 is null."""
    encoded = pa.array([*values, None], TEXT).dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)

    def fill(rows: Charges) -> Any:
        found = codes[index(rows)]
        return pa.DictionaryArray.from_arrays(pa.array(found, mask=found < 0), encoded.dictionary)

    return fill


def by_meter(meters: Sequence[Meter], say: Callable[[Meter], str | None]) -> Fill:
    """A text column that the meter decides."""
    return looked_up([say(meter) or None for meter in meters], lambda rows: rows.meter)


def by_kind(values: Sequence[str | None]) -> Fill:
    """A text column that the kind decides; `values` in the order of `Kind`."""
    return looked_up(values, lambda rows: rows.kind)


def by_kind_or_meter(of_kinds: Sequence[str], of_meters: Sequence[str]) -> Fill:
    """A text column that the kind decides where it has a text, else the meter."""
    decides = np.asarray([bool(text) for text in of_kinds])
    texts = [*of_kinds, *of_meters]
    return looked_up(texts, lambda rows: np.where(decides[rows.kind], rows.kind, rows.meter + len(of_kinds)))


def constant(value: str) -> Fill:
    """A text column with one value."""
    return looked_up([value], lambda rows: np.zeros(len(rows), dtype=np.int8))


def maps_by_meter(
    meters: Sequence[Meter], say: Callable[[Meter], dict[str, str]], as_json: bool, empty: str | None = "{}"
) -> Fill:
    """A map column that the meter decides, as a map or as JSON text with `empty` for an empty one."""
    distinct: dict[tuple[tuple[str, str], ...], int] = {}
    index = np.asarray([distinct.setdefault(tuple(say(m).items()), len(distinct)) for m in meters])
    if as_json:
        texts = [json.dumps(dict(pairs), ensure_ascii=False) if pairs else empty for pairs in distinct]
        return looked_up(texts, lambda rows: index[rows.meter])
    values = pa.array([list(pairs) for pairs in distinct], TEXT_MAP)
    return lambda rows: values.take(pa.array(index[rows.meter]))


def number(say: Callable[[Charges], Floats]) -> Fill:
    """A double column; nan becomes null."""

    def fill(rows: Charges) -> Any:
        values = np.asarray(say(rows), dtype=np.float64)
        return pa.array(values, DOUBLE, mask=np.isnan(values))

    return fill


def only(values: Floats, where: Flags) -> Floats:
    """These values where the condition holds, else nan."""
    return np.where(where, values, np.nan)


def kinds(rows: Charges, *wanted: int) -> Flags:
    """Which charges are of these kinds."""
    return np.isin(rows.kind, wanted)


def time(say: Callable[[Charges], Ints]) -> Fill:
    """A timestamp column from milliseconds since 1970, UTC."""
    return lambda rows: pa.array(say(rows)).cast(TIME)


def intervals(rows: Charges) -> Any:
    """`begin/end` of each charge, as text."""
    hours = (rows.end_ms - rows.start_ms) // HOUR_MS
    distinct, index = np.unique(rows.start_ms // HOUR_MS * 1024 + hours, return_inverse=True)
    bounds = np.stack([distinct // 1024, distinct // 1024 + distinct % 1024]).astype("datetime64[h]")
    texts = [f"{begin}:00:00Z/{end}:00:00Z" for begin, end in bounds.T.astype(str)]
    return pa.DictionaryArray.from_arrays(pa.array(index.astype(np.int32)), pa.array(texts, TEXT))


def empty_maps(rows: Charges) -> Any:
    """A map to doubles without entries in each row."""
    offsets = pa.array(np.zeros(len(rows) + 1, dtype=np.int32))
    return pa.MapArray.from_arrays(offsets, pa.array([], TEXT), pa.array([], DOUBLE))


def line_item_ids(tail: str) -> Fill:
    """Ids of 52 characters like AWS writes them: 13 that tell the row, then the same tail."""
    rest = np.frombuffer(tail.encode(), dtype=np.uint8)

    def fill(rows: Charges) -> Any:
        letters = np.concatenate([ALPHABET[rows.id], np.broadcast_to(rest, (len(rows), len(rest)))], axis=1)
        offsets = np.arange(len(rows) + 1, dtype=np.int32) * letters.shape[1]
        text = np.ascontiguousarray(letters)
        return pa.StringArray.from_buffers(len(rows), pa.py_buffer(offsets), pa.py_buffer(text))

    return fill


def for_csv(filled: Any, unit: str) -> Any:
    """The table with its times as ISO 8601 text down to this unit (s or ms), as it goes into a CSV file."""
    import pyarrow.compute as pc

    for position, field in enumerate(filled.schema):
        if pa.types.is_timestamp(field.type):
            times = filled.column(position).combine_chunks().dictionary_encode()
            words = pc.strftime(
                times.dictionary.cast(pa.timestamp(unit, tz="UTC")), format="%Y-%m-%dT%H:%M:%SZ"
            )
            column = pa.DictionaryArray.from_arrays(times.indices, words).cast(TEXT)
        elif pa.types.is_dictionary(field.type):
            column = filled.column(position).cast(TEXT)
        else:
            continue
        filled = filled.set_column(position, field.name, column)
    return filled
