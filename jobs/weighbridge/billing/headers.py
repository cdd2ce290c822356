"""The header of a bill's file, read without Spark: its columns by name and type, or why it has none."""

from __future__ import annotations

import codecs
import csv
import io
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import types as T

from weighbridge.billing.formats import Part
from weighbridge.errors import BillRefused

if TYPE_CHECKING:
    import pyarrow as pa

HEADER_BYTES = 4 * 1024 * 1024
ENDINGS = (".csv", ".csv.gz", ".parquet")
GZIP = b"\x1f\x8b"
WAY_OUT = "have the provider deliver it again, or put the whole file there"


@dataclass(frozen=True)
class Header:
    """Columns of one file: names and types as the provider wrote them, and the type that Spark reads each as.

    A column whose type Spark cannot read, or that holds nothing at all, has None there.
    """

    named: list[tuple[str, str]]
    is_text: bool
    types: dict[str, T.DataType | None] = field(default_factory=dict)

    @property
    def names(self) -> set[str]:
        """The columns' names."""
        return {name for name, _ in self.named}

    def repeated(self) -> set[str]:
        """Names that stand more than once."""
        names = [name for name, _ in self.named]
        return {name for name in names if names.count(name) > 1}


def headers(parts: Sequence[Part]) -> list[Header]:
    """The header of each file, which must all be alike; BillRefused names the one that is not."""
    found = [_header(part) for part in parts]
    for part, header in zip(parts, found, strict=True):
        different = _different(found[0], header)
        if different:
            raise BillRefused(
                f"{part.name} has other columns than {parts[0].name}: {', '.join(different[:5])}; {WAY_OUT}"
            )
    return found


def common(found: Sequence[Header]) -> Header:
    """One header for all files: a column that holds nothing in some has the type it has in the others."""
    kinds: dict[str, str] = {}
    types: dict[str, T.DataType | None] = {}
    for header in found:
        for name, kind in header.named:
            if kinds.get(name) in (None, "null"):
                kinds[name], types[name] = kind, header.types[name]
    named = [(name, kinds[name]) for name, _ in found[0].named]
    return Header(named, found[0].is_text, types)


def _different(one: Header, other: Header) -> list[str]:
    """What sets two headers apart, in words; nothing where they are alike. A column of nothings is like any."""
    if one.is_text != other.is_text:
        return ["one is text, the other Parquet"]
    if one.is_text:
        if one.named == other.named:
            return []
        apart = sorted(one.names ^ other.names)
        return apart or ["the same in another order"]
    mine, theirs = dict(one.named), dict(other.named)
    apart = sorted(mine.keys() ^ theirs.keys())
    for name in mine.keys() & theirs.keys():
        if mine[name] != theirs[name] and "null" not in (mine[name], theirs[name]):
            apart.append(f"{name} is {theirs[name]} and not {mine[name]}")
    return apart


def _header(part: Part) -> Header:
    file = part.store.stat(part.key)
    if file is None:
        raise BillRefused(f"{part.name} is not there")
    if file.bytes == 0:
        raise BillRefused(f"{part.name} is empty; {WAY_OUT}")
    name = part.key.rpartition("/")[2]
    if name.startswith(("_", ".")):
        # Spark would leave it out without a word.
        raise BillRefused(
            f"{part.name} begins with '{name[0]}', as files do that are not finished; rename it"
        )
    lower = name.lower()
    if lower.endswith(".parquet"):
        return _parquet_header(part, file.bytes)
    if lower.endswith(ENDINGS):
        return _text_header(part, file.bytes)
    raise BillRefused(
        f"{part.name} is no file that is read here: its name ends in none of {', '.join(ENDINGS)}"
    )


def _parquet_header(part: Part, size: int) -> Header:
    """Columns from the footer, read by its own length; a file that is cut has none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        tail = part.store.read(part.key, max(size - 8, 0), 8)
        if tail[4:] != b"PAR1":
            raise ValueError("it does not end as Parquet does")
        length = struct.unpack("<I", tail[:4])[0] + 8
        if length + 4 > size:
            raise ValueError("its footer is longer than the file")
        footer = b"PAR1" + part.store.read(part.key, size - length, length)
        schema = pq.read_metadata(io.BytesIO(footer)).schema
        found = schema.to_arrow_schema()
    except (ValueError, OSError, struct.error, pa.ArrowException) as error:
        raise BillRefused(f"{part.name} is no whole Parquet file ({error}); {WAY_OUT}") from error
    old_times = {
        schema.column(number).path
        for number in range(len(schema))
        if schema.column(number).physical_type == "INT96"
    }
    named, types = [], {}
    for one in found:
        named.append((one.name, _plain_name(one.type)))
        types[one.name] = T.TimestampType() if one.name in old_times else spark_type(one.type)
    return Header(named, is_text=False, types=types)


def _plain_name(kind: pa.DataType) -> str:
    """The type as text, the same for every way that Arrow can hold it in memory."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return _plain_name(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "string"
    if pa.types.is_map(kind):
        return f"map<{_plain_name(kind.key_type)}, {_plain_name(kind.item_type)}>"
    if pa.types.is_timestamp(kind):
        return f"timestamp[{kind.unit}{', UTC' if kind.tz else ''}]"
    return str(kind)


def spark_type(kind: pa.DataType) -> T.DataType | None:
    """The type that Spark reads a Parquet column as; None for one that it cannot, or that holds nothing."""
    import pyarrow as pa

    t = pa.types
    if t.is_dictionary(kind):
        return spark_type(kind.value_type)
    if t.is_map(kind):
        key, value = spark_type(kind.key_type), spark_type(kind.item_type)
        return T.MapType(key, value) if key is not None and value is not None else None
    if t.is_list(kind) or t.is_large_list(kind):
        element = spark_type(kind.value_type)
        return T.ArrayType(element) if element is not None else None
    if t.is_struct(kind):
        inner = [(one.name, spark_type(one.type)) for one in kind]
        return T.StructType([T.StructField(name, kind) for name, kind in inner if kind is not None])
    if t.is_timestamp(kind):
        if kind.unit == "ns":
            return T.LongType()
        return T.TimestampType() if kind.tz else T.TimestampNTZType()
    if t.is_decimal(kind):
        return T.DecimalType(kind.precision, kind.scale) if kind.precision <= 38 else None
    return _simple_types().get(str(kind))


def _simple_types() -> dict[str, T.DataType]:
    texts = dict.fromkeys(("string", "large_string", "string_view"), T.StringType())
    whole = {
        "int8": T.ByteType(),
        "int16": T.ShortType(),
        "int32": T.IntegerType(),
        "int64": T.LongType(),
        "uint8": T.ShortType(),
        "uint16": T.IntegerType(),
        "uint32": T.LongType(),
        "uint64": T.DecimalType(20, 0),
    }
    return {
        **texts,
        **whole,
        "bool": T.BooleanType(),
        "float": T.FloatType(),
        "double": T.DoubleType(),
        "date32[day]": T.DateType(),
    }


def _text_header(part: Part, size: int) -> Header:
    start = part.store.read(part.key, 0, min(size, HEADER_BYTES))
    is_zipped = start.startswith(GZIP)
    if is_zipped != part.key.lower().endswith(".gz"):
        says = "is gzipped, but its name does not end in .gz" if is_zipped else "is no gzip file"
        raise BillRefused(f"{part.name} {says}; {WAY_OUT}")
    if is_zipped:
        try:
            start = zlib.decompressobj(wbits=31).decompress(start, HEADER_BYTES)
        except zlib.error as error:
            raise BillRefused(f"{part.name} is no whole gzip file ({error}); {WAY_OUT}") from error
    try:
        # Not to the end: the bytes may stop within a sign.
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(start)
    except UnicodeDecodeError as error:
        raise BillRefused(
            f"{part.name} is not UTF-8 text ({error.reason} at byte {error.start}); {WAY_OUT}"
        ) from error
    try:
        columns = [name.strip() for name in next(csv.reader(io.StringIO(text, newline="")), [])]
    except csv.Error as error:
        raise BillRefused(f"{part.name} has no header that can be read ({error}); {WAY_OUT}") from error
    if not any(columns):
        raise BillRefused(f"{part.name} has no header; {WAY_OUT}")
    return Header(
        [(name, "string") for name in columns], is_text=True, types=dict.fromkeys(columns, T.StringType())
    )
