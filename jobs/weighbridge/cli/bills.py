"""Looking at bills without taking them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from weighbridge.cli import Answer, command


@command("inspect", example="weighbridge inspect bill.csv --currency USD --json")
@click.argument("paths", nargs=-1, required=True)
@click.option("--currency", help="ISO 4217 code, for a bill that names none.")
@click.option("--dates", help="The form of its dates, where its format leaves it open: M/d/yy.")
def inspect(paths: tuple[str, ...], currency: str | None = None, dates: str | None = None) -> Answer:
    """Say what each file or delivery is, with exact totals, or why it would be refused; publish nothing."""
    from weighbridge import wiring
    from weighbridge.adapters.files import open_store
    from weighbridge.billing.formats import Declared
    from weighbridge.billing.inspection import as_text, inspect_all
    from weighbridge.billing.times import checked_form

    if dates is not None:
        checked_form(dates)
    settings = wiring.Settings.from_environment()
    spark = wiring.build_session(settings)

    def place(path: str) -> tuple[Any, str | None]:
        if wiring.is_s3(path):
            folder, _, name = path.rpartition("/")
            return (
                (open_store(path, settings), None)
                if path.endswith("/")
                else (open_store(folder, settings), name)
            )
        here = Path(path).resolve()
        if here.is_dir():
            return open_store(str(here), settings), None
        return open_store(str(here.parent), settings), here.name

    found = inspect_all(spark, paths, place, Declared(currency=currency, dates=dates))
    refused = any("refused" in one for one in found)
    return Answer(found, as_text(found), 2 if refused else 0)
