"""The columns of a bill by the provider's own names, as texts, amounts and moments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyspark.sql.functions as F
from pyspark.sql import Column
from pyspark.sql.types import (
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntegralType,
    LongType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from weighbridge.billing import money, times
from weighbridge.tables import AMOUNT

NO_VALUES = ("", "NULL", "null")
TIME_TYPES = (TimestampType, TimestampNTZType, DateType)


class Fields:
    """Columns of one bill. A column that it lacks is null, whatever it is asked as."""

    def __init__(self, places: Mapping[str, tuple[str, DataType]], dates: str | None) -> None:
        """`places`: the provider's name -> (Spark's name, type). `dates`: the declared form of dates."""
        self._places = places
        self._dates = dates

    def __contains__(self, name: str) -> bool:
        return name in self._places

    def type_of(self, name: str) -> DataType | None:
        """The column's type, or None where the bill lacks it."""
        return self._places[name][1] if name in self._places else None

    def raw(self, name: str) -> Column:
        """The column as it is; null where the bill lacks it."""
        return F.col(f"`{self._places[name][0]}`") if name in self._places else F.lit(None).cast("string")

    @property
    def texts(self) -> list[str]:
        """The columns of the bill that are text; `shaping` puts what `cleaned` and `trimmed` give beside them."""
        return [name for name, (_, kind) in self._places.items() if isinstance(kind, StringType)]

    def cleaned(self, name: str) -> Column:
        """A text of the bill for the column `clean_name(name)`; empty text and the words NULL and null are null."""
        return F.when(~F.trim(self.raw(name)).isin(*NO_VALUES), self.raw(name))

    def text(self, name: str) -> Column:
        """The column as text, null where it has no value."""
        is_text = isinstance(self.type_of(name), StringType)
        return F.col(clean_name(name)) if is_text else self.raw(name).cast("string")

    def code(self, name: str) -> Column:
        """A code as text, without space round it."""
        is_text = isinstance(self.type_of(name), StringType)
        return F.col(code_name(name)) if is_text else F.trim(self.text(name))

    def moment(self, name: str) -> Column:
        """A time in UTC; null where it is absent or not of the declared form."""
        kind = self.type_of(name)
        if isinstance(kind, TIME_TYPES):
            return self.raw(name).cast("timestamp")
        if isinstance(kind, LongType):  # Parquet's nanoseconds, see headers.py; whole microseconds are kept
            return F.timestamp_micros(F.call_function("div", self.raw(name), F.lit(1000)))
        return times.instant(self.text(name), self._dates)

    def bad_start(self, name: str) -> Column:
        """True where a time that decides on the period or the day is absent or cannot be read."""
        return F.col(moment_name(name)).isNull()

    def bad_end(self, name: str) -> Column:
        """True where an end is written in another form.

        One of the right form that does not exist (`2023-02-01T30:00:00Z`, in bills of the FOCUS
        specification) is null: nothing is summed by it.
        """
        is_text = isinstance(self.type_of(name), StringType)
        if name not in self or not is_text:
            return F.lit(False)
        return self.text(name).isNotNull() & ~times.is_of_form(self.text(name), self._dates)

    def is_number(self, name: str) -> bool:
        """False for a column that is there and of a type that holds no exact number: truth, time or 32-bit float."""
        kind = self.type_of(name)
        exact = (StringType, DoubleType, DecimalType, IntegralType)
        return kind is None or isinstance(kind, exact)

    def is_double(self, name: str) -> bool:
        """True for a number that comes as a double."""
        return isinstance(self.type_of(name), DoubleType)

    def units(self, name: str) -> Column:
        """A double in units of 1e-10, for the column `units_name(name)`."""
        return money.whole_units(self.raw(name))

    def number_text(self, name: str) -> Column:
        """A number as the text that is read; null for a double that its units say exactly."""
        if not self.is_double(name):
            return self.text(name)
        number = self.raw(name)
        needed = number.isNotNull() & ~money.is_whole(number, F.col(units_name(name)))
        return F.when(needed, money.double_text(number))

    def needs_text(self, name: str) -> bool:
        """True for a number that becomes exact by way of its text; others are exact as they are."""
        kind = self.type_of(name)
        whole = isinstance(kind, IntegralType)
        fits = isinstance(kind, DecimalType) and kind.scale <= money.STORED_SCALE
        return not (whole or fits)

    def stored(self, name: str) -> Column:
        """A number as it is stored, from its text in the column `text_name(name)` where it needs one."""
        if not self.needs_text(name):
            return self.raw(name).try_cast(AMOUNT)
        text = F.col(text_name(name))
        if not self.is_double(name):
            return money.stored_strictly(text)
        return F.when(text.isNull(), money.of_units(F.col(units_name(name)))).otherwise(money.stored(text))

    def bad_number(self, name: str, is_cost: bool) -> Column:
        """True where a number is there and cannot be stored. A cost must be exact to the last single unit too."""
        amount = F.col(stored_name(name))
        if not self.needs_text(name):
            return self.raw(name).isNotNull() & amount.isNull()
        text = F.col(text_name(name))
        if not self.is_double(name):
            bad = text.isNotNull() & amount.isNull()
            return bad | F.col(fine_name(name)) if is_cost else bad
        if not is_cost:
            return F.coalesce(money.too_large(self.raw(name)), F.lit(False))
        return text.isNotNull() & (money.too_coarse(self.raw(name)) | F.col(fine_name(name)))


@dataclass(frozen=True)
class FieldNumbers:
    """Numbers by column name, from the columns that `shaping` puts them in: stored amounts or residuals."""

    fields: Fields
    kind: money.Kind

    def __call__(self, column: str) -> Column:
        """The column's number, stored or its residual."""
        if column not in self.fields:
            return F.lit(None).cast(self.kind.type)
        if self.kind is money.STORED_KIND:
            return F.col(stored_name(column))
        known = F.col(stored_name(column)).isNotNull()
        if self.fields.needs_text(column):
            return F.when(known, F.coalesce(F.col(left_name(column)), self.kind.zero))
        return F.when(known, self.kind.zero)

    def plus(self, one: Column, other: Column) -> Column:
        """Their exact sum; overflow raises."""
        return self.kind.plus(one, other)

    def minus(self, one: Column, other: Column) -> Column:
        """Their exact difference; overflow raises."""
        return self.kind.minus(one, other)

    @property
    def zero(self) -> Column:
        """Nothing, which is not null."""
        return self.kind.zero


def clean_name(column: str) -> str:
    """The column that holds a text, null where it has no value."""
    return f"x_clean_{column}"


def code_name(column: str) -> str:
    """The column that holds such a text without space round it."""
    return f"x_code_{column}"


def text_name(column: str) -> str:
    """The column that holds a number's text."""
    return f"x_text_{column}"


def units_name(column: str) -> str:
    """The column that holds a double in units of 1e-10."""
    return f"x_units_{column}"


def stored_name(column: str) -> str:
    """The column that holds a number as it is stored."""
    return f"x_stored_{column}"


def left_name(column: str) -> str:
    """The column that holds what storing a number rounded away."""
    return f"x_left_{column}"


def fine_name(column: str) -> str:
    """The column that says whether a number has more decimals than can be counted."""
    return f"x_fine_{column}"


def moment_name(column: str) -> str:
    """The column that holds a time."""
    return f"x_moment_{column}"
