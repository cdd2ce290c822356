"""Numbers of a bill, where no Spark is needed to say what they are."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest

from weighbridge.billing import money, times
from weighbridge.errors import PolicyRefused


@pytest.mark.parametrize("text", ["4", "-3", "1.234", "-100.2", "0", "35.2E-7", "1.5E-3", "35.2E7", " 48 "])
def test_what_focus_calls_a_number_is_one(text: str) -> None:
    assert re.match(money.NUMBER, text)


@pytest.mark.parametrize(
    "text",
    ["35.2E+7", "1.5E+3", "35.24 x 10^7", "2.3^3", "3,432,342", "+333", "abc", "$10", "", "-", ".", "NaN"],
)
def test_nothing_else_is_a_number(text: str) -> None:
    assert not re.match(money.NUMBER, text)


def test_residual_units_are_the_45th_decimal() -> None:
    assert money.residual_amount(-1) == Decimal("-1E-45")
    assert money.residual_amount(10**26) == Decimal("1E-19")


@pytest.mark.parametrize("form", ["M/d/yy", "dd.MM.yyyy", "yyyy-MM-dd", "M/d/yyyy H:mm"])
def test_a_form_of_dates_with_day_month_and_year_can_be_declared(form: str) -> None:
    assert times.checked_form(form) == form


@pytest.mark.parametrize("form", ["M/d", "M/d/yy HH", "M/M/yy", "d/d/yyyy", "MMM d", "M/d.yy", "M/d/y", ""])
def test_a_form_that_leaves_a_date_open_is_refused(form: str) -> None:
    with pytest.raises(PolicyRefused, match="is no form of dates"):
        times.checked_form(form)
