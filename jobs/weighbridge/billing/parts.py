"""The files of a bill: their headers without Spark, their rows with it, and which one is damaged."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NoReturn

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import DataType, StringType, StructField, StructType

from weighbridge.billing.formats import Part
from weighbridge.billing.headers import WAY_OUT, Header
from weighbridge.errors import BillRefused

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROW_MASK = (1 << 33) - 1
ONE_FILE_ONE_PARTITION = str(1 << 40)
MAX_COLUMNS = 20_480
CORRUPT = "x_corrupt"


def places(header: Header, reads: Collection[str]) -> dict[str, tuple[str, DataType]]:
    """The provider's name -> (Spark's name, type), for the columns that are read and have a type."""
    found: dict[str, tuple[str, DataType]] = {}
    for number, (name, _) in enumerate(header.named):
        kind = header.types.get(name)
        if name in reads and kind is not None:
            found[name] = (f"c{number}" if header.is_text else name, kind)
    return found


def frame(
    spark: SparkSession, part: Part, number: int, header: Header, wanted: dict[str, tuple[str, DataType]]
) -> DataFrame:
    """Rows of one file: `x_part`, `x_row` from 1, the wanted columns, and for text `x_corrupt`.

    One file is one partition in the file's order, which is what makes the row's number true.
    """
    spark.conf.set("spark.sql.files.maxPartitionBytes", ONE_FILE_ONE_PARTITION)
    spark.conf.set("spark.sql.files.openCostInBytes", ONE_FILE_ONE_PARTITION)
    spark.conf.set("spark.sql.mapKeyDedupPolicy", "LAST_WIN")
    row = (F.monotonically_increasing_id().bitwiseAND(F.lit(ROW_MASK)) + 1).alias("x_row")
    if header.is_text:
        rows = _text_rows(spark, part, header)
        columns: list[Column] = [F.col(place) for place, _ in wanted.values()]
        columns.append(F.col(CORRUPT))
    else:
        rows = _parquet_rows(spark, part, header, wanted)
        here = set(rows.columns)
        columns = [
            F.col(f"`{place}`") if place in here else F.lit(None).cast(kind).alias(place)
            for place, kind in wanted.values()
        ]
    return rows.select(F.lit(number).alias("x_part"), row, *columns)


def _text_rows(spark: SparkSession, part: Part, header: Header) -> DataFrame:
    """Every column as text, by its place; a row that does not have the header's fields is in `x_corrupt`."""
    _quiet_header_checks(spark)
    names = [f"c{position}" for position in range(len(header.named))]
    schema = StructType([StructField(name, StringType()) for name in (*names, CORRUPT)])
    return (
        spark.read.schema(schema)
        .option("header", True)
        .option("enforceSchema", True)
        .option("multiLine", True)
        .option("quote", '"')
        .option("escape", '"')
        .option("mode", "PERMISSIVE")
        .option("columnNameOfCorruptRecord", CORRUPT)
        .option("columnPruning", False)
        .option("maxCharsPerColumn", -1)
        .option("maxColumns", max(MAX_COLUMNS, len(names) + 1))
        .option("recursiveFileLookup", True)
        .csv(_exactly(part))
    )


def _parquet_rows(
    spark: SparkSession, part: Part, header: Header, wanted: dict[str, tuple[str, DataType]]
) -> DataFrame:
    # Spark refuses to infer TIMESTAMP(NANOS), which is what pandas writes; as whole numbers it reads them.
    spark.conf.set("spark.sql.legacy.parquet.nanosAsLong", "true")
    fields = [StructField(place, kind) for place, kind in wanted.values() if header.types[place] is not None]
    return spark.read.schema(StructType(fields)).option("recursiveFileLookup", True).parquet(_exactly(part))


def _exactly(part: Part) -> str:
    """The file's path for Spark, which would take `*`, `?`, brackets and braces in it for a pattern."""
    path = part.store.spark_path(part.key)
    return "".join(f"\\{sign}" if sign in "*?[]{}\\" else sign for sign in path)


def _quiet_header_checks(spark: SparkSession) -> None:
    """Spark warns of every header that is not c0, c1, …; the headers were compared before."""
    jvm = spark.sparkContext._jvm
    if jvm is not None:
        level = jvm.org.apache.logging.log4j.Level.ERROR
        checker = "org.apache.spark.sql.catalyst.csv.CSVHeaderChecker"
        jvm.org.apache.logging.log4j.core.config.Configurator.setLevel(checker, level)


def refuse_damaged(parts: Sequence[Part], error: Exception) -> NoReturn:
    """Finds the file that made the read fail; raises the error itself where every file is whole."""
    for part in parts:
        if part.key.lower().endswith(".gz"):
            _check_gzip(part, error)
        elif part.key.lower().endswith(".parquet"):
            _check_parquet(part, error)
    raise error


def _check_gzip(part: Part, cause: Exception) -> None:
    file = part.store.stat(part.key)
    if file is None:
        raise BillRefused(f"{part.name} is gone") from cause
    unzip = zlib.decompressobj(wbits=31)
    try:
        for start in range(0, file.bytes, 1 << 20):
            piece = part.store.read(part.key, start, 1 << 20)
            while piece:
                if unzip.eof:
                    unzip = zlib.decompressobj(wbits=31)
                unzip.decompress(piece)
                piece = unzip.unused_data
    except zlib.error as error:
        raise BillRefused(f"{part.name} is damaged ({error}); {WAY_OUT}") from cause
    if not unzip.eof:
        raise BillRefused(f"{part.name} is cut: its gzip stream does not end; {WAY_OUT}") from cause


def _check_parquet(part: Part, cause: Exception) -> None:
    import tempfile
    from pathlib import Path

    import pyarrow.parquet as pq

    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "part.parquet")
        part.store.download(part.key, copy)
        try:
            for batch in pq.ParquetFile(copy).iter_batches():
                del batch
        except (OSError, ValueError) as error:
            raise BillRefused(f"{part.name} is damaged ({error}); {WAY_OUT}") from cause
