"""One writer per lake: an OS lock in a folder, a renewed record on S3. Each holder is numbered."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from weighbridge.adapters.files import FolderStore, S3Settings, open_store
from weighbridge.errors import LeaseHeld, LeaseLost, Refused, Unavailable, WeighbridgeError

LIFETIME_S = 120.0
RECORD = "_weighbridge/writer.json"
LOCK = "_weighbridge/writer.lock"

# S3 tells times in whole seconds: a lease counts as expired only when it is so by any rounding.
ROUNDING_S = 2.0

# Lock files of this process. A forked child closes its copies: it must not hold its parent's lake.
_locks: set[int] = set()


def _close_in_child() -> None:
    for descriptor in _locks:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    _locks.clear()


os.register_at_fork(after_in_child=_close_in_child)


@dataclass(frozen=True)
class Lease:
    """The right to write. `counter` grows by each holder: Delta's txnVersion, to drop a stale one."""

    counter: int
    holder: str
    since: datetime
    check: Callable[[], None]


@contextlib.contextmanager
def hold(
    root: str,
    settings: S3Settings,
    run: str,
    holder: str,
    *,
    at_least: int = 0,
    lifetime_s: float = LIFETIME_S,
) -> Iterator[Lease]:
    """The lake's lease while the context lasts; LeaseHeld says who has it and since when.

    `check()` raises LeaseLost when it is no longer ours: call it before each commit. `at_least` is the
    highest counter that the lake's tables know: the new one is above it even if the record was deleted.
    """
    store = open_store(root, settings)
    mine = {"run": run, "holder": holder, "host": socket.gethostname(), "pid": os.getpid()}
    if isinstance(store, FolderStore):
        with _hold_folder(store, mine, at_least) as lease:
            yield lease
        return
    with _S3Lease(store, mine, at_least, lifetime_s) as lease:
        yield lease


def _now() -> str:
    return datetime.now(tz=UTC).isoformat(timespec="seconds")


def _record(content: bytes, place: str) -> dict[str, Any]:
    try:
        record = json.loads(content)
        if int(record["counter"]) < 0:
            raise ValueError
    except (ValueError, KeyError, TypeError) as error:
        raise Refused(
            f"{place} is damaged; delete it when no run writes to the lake: "
            "the next one counts on from what the ledger knows"
        ) from error
    return dict(record)


def _held_by(record: dict[str, Any], root: str) -> LeaseHeld:
    return LeaseHeld(
        f"{root} is being written by {record.get('holder', 'somebody')}, run {record.get('run', '?')} "
        f"(pid {record.get('pid', '?')} on {record.get('host', '?')}), since {record.get('since', '?')}; "
        "wait for its end or stop it"
    )


def _as_lease(record: dict[str, Any], check: Callable[[], None]) -> Lease:
    return Lease(int(record["counter"]), record["holder"], datetime.fromisoformat(record["since"]), check)


# ---- A folder: the lock is the operating system's. Death frees it, a stopped process keeps it.


@contextlib.contextmanager
def _hold_folder(store: FolderStore, mine: dict[str, Any], at_least: int) -> Iterator[Lease]:
    path = Path(store.root, LOCK)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise Refused(f"{path} cannot be opened for writing: {error.strerror}") from error
    _locks.add(descriptor)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _held_by(_who_locked(store), store.root) from None
        before = (
            _record(store.read(RECORD), f"{store.root}/{RECORD}") if store.stat(RECORD) else {"counter": 0}
        )
        record = {"counter": max(int(before["counter"]), at_least) + 1, **mine, "since": _now()}
        store.write(RECORD, json.dumps(record | {"released": None}).encode())

        def check() -> None:
            """The lock holds as long as its file is the one that others would lock."""
            with contextlib.suppress(OSError):
                if os.path.samestat(os.fstat(descriptor), path.stat()):
                    return
            raise LeaseLost(f"{path} was removed or replaced while this run held it; start the run again")

        try:
            yield _as_lease(record, check)
        finally:
            # The lock alone decides; the record only tells, and keeps the counter.
            if os.getpid() == mine["pid"]:
                with contextlib.suppress(WeighbridgeError):
                    store.write(RECORD, json.dumps(record | {"released": _now()}).encode())
    finally:
        if descriptor in _locks:  # not in a forked child, which has closed it already
            _locks.discard(descriptor)
            os.close(descriptor)


def _who_locked(store: FolderStore) -> dict[str, Any]:
    """The record of who holds the lock; a holder that has only just begun gets a second to write it."""
    record: dict[str, Any] = {}
    for _ in range(20):
        with contextlib.suppress(WeighbridgeError):
            record = _record(store.read(RECORD), RECORD)
            if not record.get("released"):
                return record
        time.sleep(0.05)
    return {"since": record.get("released", "just now")}


# ---- S3: a record that is renewed. Only conditional writes change it, so two can never both succeed.


def _seconds() -> float:
    """Seconds on a clock that nobody sets and that goes on while the machine sleeps, where there is one."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class _S3Lease:
    def __init__(self, store: Any, mine: dict[str, Any], at_least: int, lifetime_s: float) -> None:
        self._store, self._at_least, self._lifetime_s = store, at_least, lifetime_s
        # Tells our own record from another's when the answer to a write was lost on the way.
        self._record = mine | {"token": secrets.token_hex(16), "lifetime_s": lifetime_s}
        self._etag = ""
        self._renewed = 0.0
        self._lost = ""
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._renew_until_the_end, name="lease", daemon=True)

    def __enter__(self) -> Lease:
        found = self._store.record(RECORD)
        counter = 0
        if found is not None:
            before = _record(found.content, f"{self._store.root}/{RECORD}")
            counter = int(before["counter"])
            lifetime_s = float(before.get("lifetime_s", LIFETIME_S))
            if not before.get("released") and found.age_s < lifetime_s + ROUNDING_S:
                raise _held_by(before, self._store.root)
        self._record |= {"counter": max(counter, self._at_least) + 1, "since": _now(), "released": None}
        if not self._put(found.etag if found else None):
            winner = self._store.record(RECORD)
            raise _held_by(_record(winner.content, RECORD) if winner else {}, self._store.root)
        self._thread.start()
        return _as_lease(self._record, self.check)

    def __exit__(self, *_: object) -> None:
        if os.getpid() != self._record["pid"]:  # a forked child holds nothing
            return
        self._end.set()
        self._thread.join()
        if not self._lost:
            self._record["released"] = _now()
            # What cannot be released expires by itself.
            with contextlib.suppress(Unavailable, Refused):
                self._put(self._etag)

    def check(self) -> None:
        """Raises LeaseLost when another holds the lease, or could by now."""
        if self._lost:
            raise LeaseLost(self._lost)
        age = _seconds() - self._renewed
        if age >= self._lifetime_s:
            raise LeaseLost(
                f"the lease on {self._store.root} was last renewed {age:.0f} s ago and lives "
                f"{self._lifetime_s:.0f} s: another run may write by now; start the run again"
            )

    def _renew_until_the_end(self) -> None:
        pause = self._lifetime_s / 4
        while not self._end.wait(pause):
            try:
                # Once it has run out it is not renewed: the run has been told that it is lost.
                self.check()
                if not self._put(self._etag):
                    winner = self._store.record(RECORD)
                    held = (
                        _held_by(_record(winner.content, RECORD), "it")
                        if winner
                        else "its record was deleted"
                    )
                    self._lost = f"the lease on {self._store.root} was taken over: {held}"
            except Unavailable:
                pause = min(self._lifetime_s / 4, 5.0)  # tried again until the lifetime is over
                continue
            except WeighbridgeError as error:
                self._lost = str(error)
            if self._lost:
                return
            pause = self._lifetime_s / 4

    def _put(self, match: str | None) -> bool:
        """Writes the record if it still is `match`. The lifetime counts from before the write is sent."""
        begin = _seconds()
        self._record["renewed"] = _now()
        content = json.dumps(self._record).encode()
        etag = self._store.put_if(RECORD, content, match)
        if etag is None:
            # A retried write finds its own first try: then the record is ours.
            found = self._store.record(RECORD)
            if found is None or json.loads(found.content).get("token") != self._record["token"]:
                return False
            etag = found.etag
        self._etag, self._renewed = etag, begin
        return True
