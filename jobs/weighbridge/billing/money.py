"""Numbers of a bill as exact decimals: each is rounded once, half up, and what is rounded away is kept.

A number is stored as DECIMAL(38,18). Its residual (number - stored) is counted in units of 1e-45, a whole
number that fits DECIMAL(38,0), so that sums of it are exact too. docs/adr/0003-money.md gives the reasons.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Protocol

import pyspark.sql.functions as F

from weighbridge.tables import AMOUNT

if TYPE_CHECKING:
    from pyspark.sql import Column

STORED_SCALE = 18
RESIDUAL_SCALE = 45
RESIDUAL = "decimal(38,0)"

# Two of these add up to DECIMAL(38,18). Two DECIMAL(38,18) would add up to DECIMAL(38,17): Spark cuts the scale.
SUMMAND = "decimal(37,18)"
RESIDUAL_SUMMAND = "decimal(37,0)"

# FOCUS's numeric format: no sign but minus, no thousands separator, an exponent without plus.
NUMBER = r"^ *-?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE]-?[0-9]{1,3})? *$"

# A text of this length without an exponent has at most 18 decimals, so it is stored without rounding.
SHORT = STORED_SCALE + 1

# From here on a double cannot hold single units.
LARGEST_DOUBLE = float(2**53)

# Powers of two whose shortest text Java 17 or Comet does not find: the gap below a power of two is half the
# gap above it. Every other power and every double between is written as Python's repr writes it; a test
# walks all powers, short decimals, and a million doubles.
UNEVEN_POWERS = (-24, -25, -31, -44, -45)


class Numbers(Protocol):
    """The numbers of a bill's columns, all as stored amounts or all as residuals: sums of them are alike."""

    def __call__(self, column: str) -> Column:
        """The column's number; null where the bill lacks the column or the row leaves it out."""

    def plus(self, one: Column, other: Column) -> Column:
        """Their exact sum; overflow raises."""

    def minus(self, one: Column, other: Column) -> Column:
        """Their exact difference; overflow raises."""

    @property
    def zero(self) -> Column:
        """Nothing, which is not null."""


@dataclass(frozen=True)
class Kind:
    """How amounts or residuals are typed."""

    type: str
    summand: str

    def plus(self, one: Column, other: Column) -> Column:
        """Their exact sum; overflow raises."""
        return (one.cast(self.summand) + other.cast(self.summand)).cast(self.type)

    def minus(self, one: Column, other: Column) -> Column:
        """Their exact difference; overflow raises."""
        return (one.cast(self.summand) - other.cast(self.summand)).cast(self.type)

    @property
    def zero(self) -> Column:
        """Nothing, which is not null."""
        return F.lit(Decimal(0)).cast(self.type)


STORED_KIND = Kind(AMOUNT, SUMMAND)
RESIDUAL_KIND = Kind(RESIDUAL, RESIDUAL_SUMMAND)


def double_text(number: Column) -> Column:
    """The shortest text that reads back as the same double, as Python's repr gives it."""
    text = number.cast("string")
    for power in UNEVEN_POWERS:
        value = 2.0**power
        text = (
            F.when(number == F.lit(value), F.lit(repr(value)))
            .when(number == F.lit(-value), F.lit(repr(-value)))
            .otherwise(text)
        )
    return text


def stored(text: Column) -> Column:
    """The number as DECIMAL(38,18), rounded half up (away from zero on a tie); null where it does not fit."""
    return F.trim(text).try_cast(AMOUNT)


def residual(text: Column) -> Column:
    """Number - stored in units of 1e-45 as DECIMAL(38,0); null for null; for numbers up to 45 decimals."""
    none = F.lit(None).cast(RESIDUAL)
    return (
        F.when(text.isNull(), none).when(_is_short(text), RESIDUAL_KIND.zero).otherwise(_rounded_away(text))
    )


def unreadable(text: Column) -> Column:
    """True where a text is there and is no number that can be stored."""
    return F.coalesce(~text.rlike(NUMBER) | stored(text).isNull(), F.lit(True)) & text.isNotNull()


def too_fine(text: Column) -> Column:
    """True where a number has more decimals than its residual can count."""
    long = ~_is_short(text) & (decimals(text) > RESIDUAL_SCALE)
    return F.coalesce(long, F.lit(False))


def too_coarse(number: Column) -> Column:
    """True for a double that is no amount: not a number, infinite, or too large to hold single units."""
    return number.isNotNull() & (F.isnan(number) | (F.abs(number) >= F.lit(LARGEST_DOUBLE)))


def decimals(text: Column) -> Column:
    """How many decimals the number is written with, its exponent counted in. Negative for 1E5."""
    mantissa, exponent = _mantissa(text), _exponent(text)
    return F.length(_fraction(mantissa)) - exponent


def residual_amount(units: int | Decimal) -> Decimal:
    """Units of 1e-45 as a decimal number, exactly."""
    sign, digits, _ = Decimal(units).as_tuple()
    return Decimal((sign, digits, -RESIDUAL_SCALE))


def _is_short(text: Column) -> Column:
    return (F.length(text) <= SHORT) & ~F.contains(F.lower(text), F.lit("e"))


def _mantissa(text: Column) -> Column:
    return F.substring_index(F.lower(F.trim(text)), "e", 1)


def _exponent(text: Column) -> Column:
    plain = F.lower(F.trim(text))
    written = F.substring_index(plain, "e", -1).try_cast("int")
    return F.when(F.contains(plain, F.lit("e")), F.coalesce(written, F.lit(0))).otherwise(0)


def _fraction(mantissa: Column) -> Column:
    """Digits behind the point, without the zeros at their end."""
    behind = F.substring_index(mantissa, ".", -1)
    return F.when(F.contains(mantissa, F.lit(".")), F.rtrim(behind, F.lit("0"))).otherwise("")


def _rounded_away(text: Column) -> Column:
    mantissa = _mantissa(text)
    fraction = _fraction(mantissa)
    count = F.length(fraction) - _exponent(text)
    whole = F.replace(F.substring_index(mantissa, ".", 1), F.lit("-"), F.lit(""))
    digits = F.concat(whole, fraction)
    wide = F.lpad(digits, F.greatest(count, F.length(digits)), F.lit("0"))
    tail = F.substring(wide, F.length(wide) - count + STORED_SCALE + 1, count - STORED_SCALE)
    units = F.rpad(tail, RESIDUAL_SCALE - STORED_SCALE, "0").try_cast(RESIDUAL_SUMMAND)
    unit_of_stored = F.lit(Decimal(10) ** (RESIDUAL_SCALE - STORED_SCALE)).cast(RESIDUAL_SUMMAND)
    was_rounded_up = F.substring(tail, 1, 1) >= "5"
    distance = F.when(was_rounded_up, RESIDUAL_KIND.minus(units, unit_of_stored)).otherwise(
        units.cast(RESIDUAL)
    )
    signed = F.when(
        F.startswith(mantissa, F.lit("-")), RESIDUAL_KIND.minus(RESIDUAL_KIND.zero, distance)
    ).otherwise(distance)
    return F.when(count > STORED_SCALE, signed).otherwise(RESIDUAL_KIND.zero)
