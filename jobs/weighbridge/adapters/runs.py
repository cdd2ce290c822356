"""The run record: what one run of a night did, as a small JSON file in the lake that a scheduler reads."""

from __future__ import annotations

import hashlib
import re

from weighbridge.billing.runs import DeliveryNote, RunRecord
from weighbridge.errors import Refused
from weighbridge.ports import FileStore

__all__ = ["DeliveryNote", "RunRecord", "read_run", "run_key", "run_mark", "write_page", "write_run"]

RUNS = "_weighbridge/runs"
PAGES = "_weighbridge/checks"


def run_key(run: str) -> str:
    """Where the record of a run lies in its lake. Any text makes one safe name; two runs never share one."""
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", run).strip("-.")[:100]
    return f"{RUNS}/{readable or 'run'}-{hashlib.sha256(run.encode()).hexdigest()[:16]}.json"


def write_run(store: FileStore, record: RunRecord) -> None:
    """Puts the record into the lake (a store at the lake's root), in place of the run's earlier one."""
    store.write(run_key(record.run), record.to_json().encode())


def write_page(store: FileStore, run: str, html: str) -> str:
    """Puts the page of a run's checks into the lake; where it lies, for a person."""
    key = run_key(run).replace(RUNS, PAGES).removesuffix(".json") + ".html"
    store.write(key, html.encode())
    return f"{store.root}/{key}"


def read_run(store: FileStore, run: str) -> RunRecord | None:
    """The record of a run, or None where it never wrote one. A damaged record is refused."""
    key = run_key(run)
    if store.stat(key) is None:
        return None
    record = RunRecord.from_json(store.read(key).decode())
    if record.run != run:
        raise Refused(f"{store.root}/{key} is the record of '{record.run}', not of '{run}'")
    return record


def run_mark(store: FileStore, run: str) -> str | None:
    """What changes whenever the record is written: tells this attempt's record from an earlier attempt's."""
    file = store.stat(run_key(run))
    return file.etag if file else None
