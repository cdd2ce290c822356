"""Times of a bill, read strictly by the form that its format or source declares; no other form is guessed."""

from __future__ import annotations

import re

import pyspark.sql.functions as F
from pyspark.sql import Column

from weighbridge.errors import PolicyRefused

# ISO 8601 as providers write it: T or space, seconds optional, Z, UTC or an offset; without one it is UTC.
ISO = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?( ?(Z|UTC|[+-][0-9]{2}:?[0-9]{2}))?)?$"
)
MINUTES = len("2026-11-01T00:00")

# Forms that a source may declare: day, month and year once each, parted by / - or . and a time behind them.
DECLARABLE = re.compile(
    r"^(?=[^ ]*M)(?=[^ ]*d)(?=[^ ]*y)"
    r"(M{1,2}|d{1,2}|yy|yyyy)([/.-])(M{1,2}|d{1,2}|yy|yyyy)\2(M{1,2}|d{1,2}|yy|yyyy)"
    r"( (H{1,2}:mm(:ss)?|h{1,2}:mm(:ss)? a))?$"
)


def checked_form(form: str) -> str:
    """The declared form, or a refusal that shows what can be declared. Two-digit years are 20yy."""
    if not DECLARABLE.match(form):
        raise PolicyRefused(
            f"'{form}' is no form of dates: write day, month and year once each, parted by /, - or ., "
            "for example M/d/yy, dd.MM.yyyy or yyyy-MM-dd; a time may follow, for example M/d/yyyy H:mm"
        )
    return form


def is_of_form(text: Column, form: str | None) -> Column:
    """True where a text is written in the form, be it a time that exists or not (`2023-02-01T30:00:00Z`)."""
    return F.trim(text).rlike(ISO) if form is None else instant(text, form).isNotNull()


def instant(text: Column, form: str | None) -> Column:
    """The moment in UTC, to the microsecond; null where the text is not of the form or no such day exists."""
    trimmed = F.trim(text)
    if form is not None:
        return F.try_to_timestamp(trimmed, F.lit(checked_form(form)))
    # Spark wants seconds where there are minutes.
    without_seconds = (F.length(trimmed) >= MINUTES) & (F.substring(trimmed, MINUTES + 1, 1) != ":")
    whole = F.when(
        without_seconds,
        F.concat(F.substring(trimmed, 1, MINUTES), F.lit(":00"), F.substring(trimmed, MINUTES + 1, 40)),
    ).otherwise(trimmed)
    return F.when(trimmed.rlike(ISO), whole.try_cast("timestamp"))
