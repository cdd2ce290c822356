"""Rows that Python holds, as a DataFrame that needs no Python worker and no job to be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def few_rows(spark: SparkSession, rows: Sequence[Mapping[str, Any]], ddl: str) -> DataFrame:
    """These rows with the columns of a DDL string; a struct in them is a dict.

    By Arrow they become part of the plan. As a plain list they would be a job of Python workers each time.
    """
    from pyspark.sql.pandas.types import to_arrow_schema

    schema = cast(StructType, StructType.fromDDL(ddl))
    table: Any = pa.Table.from_pylist(list(rows), to_arrow_schema(schema))
    return spark.createDataFrame(table, schema)
