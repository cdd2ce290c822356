"""Numbers of a bill as exact decimals: each is rounded once, half up, and what is rounded away is kept.

A number is stored as DECIMAL(38,18). Its residual (number - stored) is counted in units of 1e-45, a whole
number that fits DECIMAL(38,0), so that sums of it are exact too. docs/adr/0003-money.md gives the reasons.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Protocol

import pyspark.sql.functions as F

from weighbridge.tables import AMOUNT

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

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

# Below this a double in units of 1e-10 has 15 digits at most.
MOST_IN_UNITS = 1e5

# Exact powers of two of which Java 17 writes another text than Python's repr, down to the smallest that has
# no more than RESIDUAL_SCALE decimals; a test walks all of them.
UNEVEN_POWERS = (-24, -31, -44, -45, -61, -62, -71, -72, -77, -78, -94, -95, -96, -97)


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
    """The shortest text that reads back as the same double, as Python's repr gives it.

    Java writes it, with Comet and without: Comet's own cast breaks ties another way (2**-25 and many like it).
    Comet leaves `elt`, which gives its argument back, and what is in it to Java.
    """
    at = F.array_position(F.lit([2.0**power for power in UNEVEN_POWERS]), F.abs(number)).cast("int")
    uneven = F.get(F.lit([repr(2.0**power) for power in UNEVEN_POWERS]), at - 1)
    sign = F.when(number < 0, "-").otherwise("")
    text = F.elt(F.lit(1), number.cast("string"))
    return F.coalesce(F.concat(sign, uneven), text)


def whole_units(number: Column) -> Column:
    """A double in units of 1e-10, rounded; null for one of 1e5 or more, not a number or infinite."""
    return F.when(F.abs(number) < F.lit(MOST_IN_UNITS), F.floor(number * F.lit(1e10) + F.lit(0.5)))


def is_whole(number: Column, units: Column) -> Column:
    """True for a double that is written with ten decimals or fewer; `units` are its whole_units.

    Most amounts are, and reading them needs no text: units below 1e15 have 15 digits, and of all decimals
    of 15 digits only one reads back as a given double. So `units / 1e10`, which is divided exactly and
    rounded once, equals the double just when its shortest text is those digits.
    """
    return F.coalesce(units.cast("double") / F.lit(1e10) == number, F.lit(False))


def of_units(units: Column) -> Column:
    """Units of 1e-10 as DECIMAL(38,18), exactly."""
    return (units.cast("decimal(16,0)") * F.lit(Decimal("1E-10"))).cast(AMOUNT)


def stored(text: Column) -> Column:
    """The number as DECIMAL(38,18), rounded half up (away from zero on a tie); null where it does not fit."""
    return F.trim(text).try_cast(AMOUNT)


def stored_strictly(text: Column) -> Column:
    """As `stored`, and null for a text that is no NUMBER. Spark would take +333, and fail on 1E-2000000000."""
    return F.when(text.rlike(NUMBER), stored(text))


def too_coarse(number: Column) -> Column:
    """True for a double too large to hold single units; not a number counts as that."""
    return F.abs(number) >= F.lit(LARGEST_DOUBLE)


def too_large(number: Column) -> Column:
    """True for a double that does not fit DECIMAL(38,18); not a number counts as that."""
    return F.abs(number) >= F.lit(1e20)


def residual_amount(units: int | Decimal) -> Decimal:
    """Units of 1e-45 as a decimal number, exactly."""
    sign, digits, _ = Decimal(units).as_tuple()
    return Decimal((sign, digits, -RESIDUAL_SCALE))


def with_residuals(rows: DataFrame, texts: Mapping[str, tuple[str, str]]) -> DataFrame:
    """Rows with the residual of each number, and whether it has more decimals than a residual can count.

    `texts`: column with the number's text -> (name of the residual in units of 1e-45 as DECIMAL(38,0), null
    for none; name of the boolean). Each step stands in columns of its own, so that it is computed once: a
    residual as one expression repeats its parts some hundred times, and compiling that takes seconds.
    """
    for step in (_mantissas, _digits, _tails):
        rows = rows.select("*", *[column for text in texts for column in step(text)])
    ends = [column for text, (left, fine) in texts.items() for column in _residual(text, left, fine)]
    passing = [name for name in rows.columns if not name.startswith(STEP)]
    return rows.select(*[F.col(f"`{name}`") for name in passing], *ends)


STEP = "x_step_"


def _step(name: str, text: str) -> str:
    return f"{STEP}{name}_{text}"


def _mantissas(text: str) -> list[Column]:
    """The number without its exponent, and the exponent; null for a short number, which is stored whole."""
    plain = F.lower(F.trim(F.col(text)))
    has_exponent = F.contains(plain, F.lit("e"))
    is_long = (F.length(F.col(text)) > SHORT) | has_exponent
    # Three digits and a sign, as NUMBER allows: a longer one is refused, and must not be padded to until then.
    written = F.substring(F.substring_index(plain, "e", -1), 1, 4)
    exponent = F.when(has_exponent, written.try_cast("int"))
    return [
        F.when(F.col(text).isNotNull() & is_long, F.substring_index(plain, "e", 1)).alias(
            _step("mantissa", text)
        ),
        F.when(F.col(text).isNotNull(), exponent).alias(_step("exponent", text)),
    ]


def _digits(text: str) -> list[Column]:
    """The digits, and how many of them are decimals, the exponent counted in."""
    mantissa = F.col(_step("mantissa", text))
    point = F.instr(mantissa, ".")
    written = F.when(point > 0, F.length(mantissa) - point).otherwise(0)
    return [
        F.translate(mantissa, "-.", "").alias(_step("digits", text)),
        F.when(mantissa.isNotNull(), written - F.coalesce(F.col(_step("exponent", text)), F.lit(0))).alias(
            _step("decimals", text)
        ),
    ]


def _tails(text: str) -> list[Column]:
    """The digits behind the last stored decimal; null where there are none."""
    digits, beyond = F.col(_step("digits", text)), F.col(_step("decimals", text)) - STORED_SCALE
    padded = F.lpad(digits, F.greatest(beyond, F.length(digits)), F.lit("0"))
    return [F.when(beyond > 0, F.right(padded, beyond)).alias(_step("tail", text))]


def _residual(text: str, left: str, fine: str) -> list[Column]:
    tail, mantissa = F.col(_step("tail", text)), F.col(_step("mantissa", text))
    kept = RESIDUAL_SCALE - STORED_SCALE
    units = F.rpad(tail, kept, "0").try_cast(RESIDUAL_SUMMAND)
    next_stored = F.lit(Decimal(10) ** kept).cast(RESIDUAL_SUMMAND)
    was_rounded_up = F.substring(tail, 1, 1) >= "5"
    distance = F.when(was_rounded_up, units - next_stored).otherwise(units.cast(RESIDUAL))
    signed = F.when(F.startswith(mantissa, F.lit("-")), -distance).otherwise(distance).cast(RESIDUAL)
    beyond = F.ltrim(F.substring(tail, kept + 1, 400), F.lit("0"))
    return [
        F.when(tail.isNotNull(), signed).alias(left),
        F.when(tail.isNotNull(), beyond != "").otherwise(F.lit(False)).alias(fine),
    ]
