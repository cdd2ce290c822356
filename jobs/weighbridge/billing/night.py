"""The night: what was delivered is read, proven, published in order, and written into the ledger."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import datetime

from weighbridge.billing.check_page import check_page
from weighbridge.billing.checking import failed
from weighbridge.billing.lateness import late_sources
from weighbridge.billing.ledger import DISMISSED, PUBLISHED, REFUSED, LedgerRow
from weighbridge.billing.night_context import Night, Outcome, highest_lease
from weighbridge.billing.proving import clear_scratch
from weighbridge.billing.publishing import finish_forward, publish, record_in_ledger
from weighbridge.billing.runs import DeliveryNote, RunRecord
from weighbridge.billing.taking import again, keep, look, take_again, take_news, take_policy
from weighbridge.errors import Refused
from weighbridge.quality import WARNING


def run_night(night: Night, reread: tuple[str, str] | None = None) -> RunRecord:
    """One night: unfinished business first, then what is new (or `reread`: one period from the archive)."""
    started = night.now()
    finish_forward(night)
    with night.lease(highest_lease(night.lake)) as lease:
        found, landings = look(night)
        known = night.lake.ledger()
        outcome = Outcome()
        if reread is None:
            take_news(night, found, landings, known, outcome, lease)
            take_policy(night, known, outcome, lease)
        else:
            take_again(night, known, reread, outcome, lease)
        mart_failures = publish(night, outcome, lease)
        record_in_ledger(night, found.broken, known, outcome, mart_failures, lease)
        clear_scratch(night.lake)
    return run_record(night, started, outcome, mart_failures)


def dismiss_delivery(night: Night, delivery: str, reason: str) -> LedgerRow:
    """The ledger's row of a refused delivery, settled by a person. Refused for any other delivery."""
    with night.lease(highest_lease(night.lake)) as lease:
        rows = [row for row in night.lake.ledger() if row.delivery == delivery]
        if not rows:
            raise Refused(f"the ledger knows no delivery {delivery}")
        if rows[0].outcome != REFUSED:
            raise Refused(f"delivery {delivery} is {rows[0].outcome}; only a refused one can be dismissed")
        at = night.now()
        settled = [
            dataclasses.replace(row.becoming(DISMISSED, reason, night.run, at), lease=lease.counter)
            for row in rows
        ]
        metadata = {"run": night.run, "lease": lease.counter, "kind": "dismiss"}
        night.lake.record(settled, metadata, lease.counter)
        return settled[0]


def reattribute_period(night: Night, period: str, source: str | None, reason: str) -> RunRecord:
    """Published deliveries of a period, attributed by today's policy; the reason stands in the ledger."""
    started = night.now()
    finish_forward(night)
    with night.lease(highest_lease(night.lake)) as lease:
        known = night.lake.ledger()
        meant = [
            row
            for row in known
            if row.outcome == PUBLISHED and row.billing_period == period and source in (None, row.source)
        ]
        if not meant:
            raise Refused(f"nothing of {source or 'any source'} is published for {period}")
        outcome = Outcome()
        for row in meant:
            proven = again(night, row, outcome, lease)
            reasoned = dataclasses.replace(proven.row, reason=f"attributed again: {reason}")
            keep(outcome, dataclasses.replace(proven, row=reasoned))
        failures = publish(night, outcome, lease)
        record_in_ledger(night, [], known, outcome, failures, lease)
        clear_scratch(night.lake)
    return run_record(night, started, outcome, failures)


def run_record(night: Night, started: datetime, outcome: Outcome, failures: Sequence[str]) -> RunRecord:
    """What the run did, for the scheduler and for people; also what an earlier attempt of it has published.

    A run that is tried again keeps its name, and what was published under it stands in the ledger.
    """
    ledger = night.lake.ledger()
    refused = [_note(row, row.reason or "") for row in outcome.refused]
    if failures:
        reason = "the marts were brought back to their version before: " + "; ".join(failures)
        refused += [_note(proven.row, reason) for proven in outcome.proven]
    done = [row for row in ledger if row.run == night.run and row.outcome == PUBLISHED]
    done.sort(key=lambda row: (row.source, row.billing_period or ""))
    return RunRecord(
        run=night.run,
        outcome="refused" if refused else "published" if done else "nothing_new",
        started_at=started,
        finished_at=night.now(),
        published=tuple(_note(row) for row in done),
        refused=tuple(refused),
        warnings=tuple(
            f"{row.source} {row.billing_period}: {check.line}"
            for row, checks in outcome.checked
            for check in failed(checks, WARNING)
        ),
        late=late_sources(night.policy.sources, ledger, night.now()),
        versions=night.lake.versions(),
        page=night.keep_page(check_page(night.run, night.now(), outcome.checked)) if outcome.checked else "",
    )


def _note(row: LedgerRow, reason: str = "") -> DeliveryNote:
    return DeliveryNote(row.source, row.billing_period, row.delivery, reason)
