"""One loose file, taken as a delivery of its own by the same steps as a night."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from pathlib import Path

from weighbridge.billing.deliveries import Found, loose_delivery
from weighbridge.billing.formats import Declared, Part
from weighbridge.billing.night import run_record
from weighbridge.billing.night_context import Night, Outcome, highest_lease
from weighbridge.billing.proving import clear_scratch, the_period
from weighbridge.billing.publishing import finish_forward, publish, record_in_ledger
from weighbridge.billing.reading import open_bill
from weighbridge.billing.runs import RunRecord
from weighbridge.billing.taking import take_news
from weighbridge.errors import Refused


def ingest(night: Night, path: Path, source_name: str, delivered_at: datetime) -> RunRecord:
    """The file published as its period's delivery, or refused; the file itself is only read."""
    started = night.now()
    source = night.policy.source(source_name)
    if not path.is_file():
        raise Refused(f"{path} is not a file")
    store = night.landing(dataclasses.replace(source, landing=str(path.resolve().parent)))
    delivery = loose_delivery(source_name, store, path.name, delivered_at)
    declared = Declared(source.currency, source.dates, source.format, source.keep_tag_keys)
    bill = open_bill(night.lake.spark, [Part(key=path.name, store=store)], declared)
    delivery = dataclasses.replace(delivery, period=the_period(delivery, bill.survey()))
    finish_forward(night)
    with night.lease(highest_lease(night.lake)) as lease:
        known = night.lake.ledger()
        outcome = Outcome()
        take_news(night, Found([delivery]), {source_name: store}, known, outcome, lease)
        failures = publish(night, outcome, lease)
        record_in_ledger(night, [], known, outcome, failures, lease)
        clear_scratch(night.lake)
    return run_record(night, started, outcome, failures)
