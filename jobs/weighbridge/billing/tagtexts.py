"""Tags in the forms that bills write them in, made into maps: maps, JSON, lists of key and value, bare pairs."""

from __future__ import annotations

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

TAGS = "map<string,string>"
STRICT = {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false"}
END = "end"
PARSED = "x_tags"

# A flat JSON object, so that its numbers can be kept as they are written (1.10 is not 1.1).
STRING = r'"(?:[^"\\]|\\.)*+"'
FLAT = rf"(?s)^\{{(?:[^\"{{\[]|{STRING})*+$"
TOKEN = rf"(?s)({STRING})|(-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)"
MARK = "\u0001"


def parsed(text: Column) -> Column:
    """The tags as map<string,string>; null where the text cannot be read as tags.

    Three forms: a JSON object, a JSON list of objects with key and value, and the pairs of an object without
    its braces. Text is kept as written; true, false and numbers become their text, null stays null, a
    nested value stays JSON text. Of two equal keys the last counts, as JSON readers have it.
    """
    trimmed = F.trim(text)
    braced = F.when(F.startswith(trimmed, F.lit("{")), trimmed).otherwise(
        F.concat(F.lit("{"), trimmed, F.lit("}"))
    )
    is_list = F.startswith(trimmed, F.lit("["))
    return F.when(is_list, _of_list(trimmed)).otherwise(_strict(_quoted_numbers(braced), TAGS))


def native(tags: Column, kind: DataType) -> Column | None:
    """Tags of a Parquet file that are no text, as map<string,string>; None for a type that holds no tags."""
    if isinstance(kind, MapType):
        return tags.cast(TAGS)
    if (
        isinstance(kind, ArrayType)
        and isinstance(kind.elementType, StructType)
        and len(kind.elementType) == 2
    ):
        key, value = kind.elementType.fieldNames()
        pairs = F.filter(tags, lambda pair: pair.isNotNull() & pair[key].isNotNull())
        entry = F.transform(
            pairs,
            lambda pair: F.struct(
                pair[key].cast("string").alias("key"), pair[value].cast("string").alias("value")
            ),
        )
        return F.map_from_entries(entry)
    if isinstance(kind, StructType) and len(kind):
        pairs_of_struct: list[Column] = []
        for name in kind.fieldNames():
            pairs_of_struct += [F.lit(name), tags.getField(name).cast("string")]
        present = F.map_filter(F.create_map(*pairs_of_struct), lambda _key, value: value.isNotNull())
        return F.when(tags.isNotNull(), present)
    return None


def with_tags(lines: DataFrame, text_column: str) -> DataFrame:
    """Lines with PARSED: the tags, parsed once per distinct text and joined back; null for an unreadable text."""
    sets = lines.select(text_column).where(F.col(text_column).isNotNull()).distinct()
    read = sets.select(text_column, parsed(F.col(text_column)).alias(PARSED))
    return lines.join(F.broadcast(read), on=text_column, how="left")


def _strict(text: Column, kind: str) -> Column:
    """JSON of this kind; null where anything follows it, which Spark's reader would not see by itself."""
    wrapped = F.concat(F.lit('{"tags":'), text, F.lit(f',"{END}":"{END}"}}'))
    read = F.from_json(wrapped, f"tags {kind}, `{END}` string", STRICT)
    return F.when(read[END] == END, read["tags"])


def _of_list(text: Column) -> Column:
    pairs = _strict(text, f"array<{TAGS}>")

    def either(pair: Column, name: str) -> Column:
        return F.coalesce(pair[name], pair[name.capitalize()])

    entries = F.transform(
        pairs, lambda pair: F.struct(either(pair, "key").alias("key"), either(pair, "value").alias("value"))
    )
    all_have_keys = F.forall(entries, lambda entry: entry["key"].isNotNull())
    return F.when(all_have_keys, F.map_from_entries(entries))


def _quoted_numbers(text: Column) -> Column:
    """A flat object with its bare numbers made into strings, digit by digit as they stand."""
    marked = F.regexp_replace(text, TOKEN, f"$1{MARK}$2{MARK}")
    quoted = F.replace(F.replace(marked, F.lit(MARK * 2), F.lit("")), F.lit(MARK), F.lit('"'))
    return F.when(text.rlike(FLAT) & ~F.contains(text, F.lit(MARK)), quoted).otherwise(text)
