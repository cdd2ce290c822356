"""The night and what a person does around it."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weighbridge.cli import Answer, command, say
from weighbridge.errors import Refused, WeighbridgeError

if TYPE_CHECKING:
    from weighbridge.billing.night_context import Night
    from weighbridge.billing.runs import RunRecord


class Spoken:
    """Progress as lines on stderr."""

    def say(self, text: str) -> None:
        """One line."""
        say(text)

    def phase(self, name: str, of: Sequence[str] = ()) -> None:
        """One line that names the phase."""
        say(f"{datetime.now(UTC):%H:%M:%S} {name} {' '.join(of)}".rstrip())


def _day(text: str | None) -> date:
    if not text:
        return datetime.now(UTC).date()
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise Refused(f"--day {text}: write it as 2026-11-29") from None


def _night(run: str, day: date, sources: Sequence[Any] | None = None, progress: Any = None) -> Night:
    """A night of this environment; `sources` instead of the policy's, where only those are meant."""
    from weighbridge import wiring
    from weighbridge.adapters.files import open_store
    from weighbridge.adapters.lease import hold
    from weighbridge.adapters.marts import refresh_marts
    from weighbridge.adapters.runs import write_page
    from weighbridge.billing.archive import Below
    from weighbridge.billing.night_context import Night

    settings = wiring.Settings.from_environment()
    policy = wiring.load_policy(settings)
    if sources is not None:
        policy = replace(policy, sources=tuple(sources))
    root = settings.lake_root()
    lake = wiring.open_lake(settings, wiring.build_session(settings))

    def build_marts(places: Sequence[tuple[str, str]], metadata: str, lease: int) -> list[str]:
        return list(refresh_marts(lake.spark, root, wiring.share(), places, metadata, lease).failures)

    return Night(
        run=run,
        day=day,
        lake=lake,
        policy=policy,
        landing=lambda source: open_store(source.landing, settings),
        lease=lambda at_least: hold(root, settings, run, getpass.getuser(), at_least=at_least),
        build_marts=build_marts,
        archive=Below(lake.store, "_archive/") if settings.archive else None,
        keep_page=lambda html: write_page(lake.store, run, html),
        now=lambda: datetime.now(UTC),
        progress=progress or Spoken(),
    )


def _recorded(run: str, started: datetime, work: Callable[[], RunRecord]) -> Answer:
    """Runs `work` with its record in the lake: running, then what it did, or why it failed."""
    from weighbridge import wiring
    from weighbridge.adapters.runs import write_run
    from weighbridge.billing.runs import RunRecord
    from weighbridge.errors import LeaseHeld

    store = wiring.lake_store(wiring.Settings.from_environment())
    write_run(store, RunRecord(run, "running", started))
    try:
        record = work()
    except Exception as error:
        said = str(error) if isinstance(error, WeighbridgeError) else f"{type(error).__name__}: {error}"
        outcome: Any = "refused" if isinstance(error, Refused) else "failed"
        first_line = said.splitlines()[0][:500] if said else ""
        write_run(store, RunRecord(run, outcome, started, datetime.now(UTC), error=first_line))
        if isinstance(error, LeaseHeld):
            say("another run is writing; this one has changed nothing")
        raise
    write_run(store, record)
    lines = record.lines() or ["nothing new"]
    import json

    text = "\n".join([f"{record.run}: {record.outcome}", *(f"  {line}" for line in lines)])
    return Answer(json.loads(record.to_json()), text, 2 if record.outcome == "refused" else 0)


@command("night", example="weighbridge night --run by-hand-1")
@click.option("--run", help="Name of the run; a scheduler gives its own.")
@click.option("--day", help="The day that the run is named after, YYYY-MM-DD; default: today (UTC).")
@click.option("--source", help="With --period: read the current delivery of a period again.")
@click.option("--period", help="Billing period, YYYY-MM.")
def night(
    run: str | None = None, day: str | None = None, source: str | None = None, period: str | None = None
) -> Answer:
    """Take every delivery that is not in the ledger: prove it, attribute it, publish it, build the marts."""
    from weighbridge.billing.night import run_night

    if bool(source) != bool(period):
        raise Refused("--source and --period go together: they name one period to read again")
    started = datetime.now(UTC)
    name = run or f"by-hand/{started:%Y-%m-%dT%H:%M:%S.%fZ}"
    again = (source, period) if source and period else None
    return _recorded(name, started, lambda: run_night(_night(name, _day(day)), again))


@command(
    "ingest-file",
    example="weighbridge ingest-file bill.csv --source azure-main --delivered-at 2026-11-02T06:00:00Z",
)
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--source", required=True, help="Name of the source in policy/sources.yaml.")
@click.option(
    "--delivered-at", required=True, help="When it was delivered, with a zone: 2026-11-02T06:00:00Z."
)
def ingest_file(path: Path, source: str, delivered_at: str) -> Answer:
    """Take one loose file as a delivery of its own."""
    from weighbridge.billing.loose import ingest

    try:
        at = datetime.fromisoformat(delivered_at)
    except ValueError:
        raise Refused(f"--delivered-at {delivered_at}: write it as 2026-11-02T06:00:00Z") from None
    started = datetime.now(UTC)
    name = f"ingest-file/{started:%Y-%m-%dT%H:%M:%S.%fZ}"
    return _recorded(name, started, lambda: ingest(_night(name, started.date()), Path(path), source, at))


@command("dismiss", example='weighbridge dismiss 3f2a9c0d11e4b587 --reason "a test export"')
@click.argument("delivery")
@click.option("--reason", required=True, help="Why; it stands in the ledger.")
def dismiss(delivery: str, reason: str) -> Answer:
    """Settle a refused delivery by hand, so that it no longer turns the night red."""
    from weighbridge.billing.night import dismiss_delivery

    started = datetime.now(UTC)
    name = f"dismiss/{started:%Y-%m-%dT%H:%M:%S.%fZ}"
    row = dismiss_delivery(_night(name, started.date()), delivery, reason)
    data = {
        "delivery": row.delivery,
        "source": row.source,
        "period": row.billing_period,
        "outcome": row.outcome,
    }
    return Answer(data, f"dismissed {row.source} {row.billing_period or ''} {row.delivery}: {reason}")


@command("reattribute", example='weighbridge reattribute --period 2026-03 --reason "new cost centres"')
@click.option("--period", required=True, help="Billing period, YYYY-MM, open or not.")
@click.option("--reason", required=True, help="Why; it stands in the ledger.")
@click.option("--source", help="Only this source; default: all.")
def reattribute(period: str, reason: str, source: str | None = None) -> Answer:
    """Attribute a past period by today's policy; totals do not move by a cent."""
    from weighbridge.billing.night import reattribute_period

    started = datetime.now(UTC)
    name = f"reattribute/{started:%Y-%m-%dT%H:%M:%S.%fZ}"
    return _recorded(
        name, started, lambda: reattribute_period(_night(name, started.date()), period, source, reason)
    )


@command("totals", example="weighbridge totals --source aws-main --period 2026-10 --json")
@click.option("--source", required=True, help="Name of the source.")
@click.option("--period", required=True, help="Billing period, YYYY-MM.")
def totals(source: str, period: str) -> Answer:
    """Show the exact totals of every layer of one period, and which layer is behind."""
    from weighbridge import wiring
    from weighbridge.billing.totals import as_text, layers

    settings = wiring.Settings.from_environment()
    found = layers(wiring.open_lake(settings, wiring.build_session(settings)), source, period)
    return Answer(found.to_data(), as_text(found), 2 if found.behind else 0)
