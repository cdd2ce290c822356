"""One writer per lake, in a folder and on a real S3 server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from weighbridge.adapters import lease as lease_module
from weighbridge.adapters.files import open_store
from weighbridge.adapters.lease import RECORD, Lease, hold
from weighbridge.errors import LeaseHeld, LeaseLost, Refused, Unavailable

if TYPE_CHECKING:
    from s3_server import S3Server

pytest_plugins = ("s3_server",)

JOBS = Path(__file__).parents[2] / "jobs"


@dataclass(frozen=True)
class Place:
    """What a lease asks of the settings."""

    s3_endpoint: str = ""
    s3_region: str = "us-east-1"


@dataclass(frozen=True)
class Lake:
    """A lake's root and how its store is reached."""

    root: str
    place: Place


@pytest.fixture
def s3_lake(s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    for name, value in s3_server.env.items():
        monkeypatch.setenv(name, value)
    return Lake(f"s3://{s3_server.bucket}/lakes/{tmp_path.name}", Place(s3_server.endpoint))


@pytest.fixture(params=["folder", "s3"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    if request.param == "folder":
        return Lake(str(tmp_path / "lake"), Place())
    found: Lake = request.getfixturevalue("s3_lake")
    return found


def counter_of(lake: Lake) -> int:
    return int(json.loads(open_store(lake.root, lake.place).read(RECORD))["counter"])


def test_a_second_holder_is_told_who_holds_it_and_since_when(lake: Lake) -> None:
    with hold(lake.root, lake.place, "night-1", "ann") as lease:
        lease.check()
        with pytest.raises(LeaseHeld) as refused, hold(lake.root, lake.place, "night-2", "bob"):
            pass
        since = lease.since.isoformat()
    assert all(word in str(refused.value) for word in ("ann", "night-1", str(os.getpid()), since))


def test_each_holder_has_a_higher_counter_than_the_one_before(lake: Lake) -> None:
    counters = []
    for run in range(3):
        with hold(lake.root, lake.place, str(run), "ann") as lease:
            counters.append(lease.counter)
    with pytest.raises(RuntimeError), hold(lake.root, lake.place, "x", "ann") as lease:
        raise RuntimeError
    counters.append(lease.counter)
    open_store(lake.root, lake.place).delete(RECORD)
    with hold(lake.root, lake.place, "y", "ann", at_least=41) as lease:
        counters.append(lease.counter)
    assert counters == [1, 2, 3, 4, 42]
    assert counter_of(lake) == 42


def test_a_damaged_record_is_refused_with_a_way_out(lake: Lake) -> None:
    open_store(lake.root, lake.place).write(RECORD, b'{"counter": ')
    with pytest.raises(Refused, match="delete it"), hold(lake.root, lake.place, "x", "ann"):
        pass


def race(lake: Lake, contenders: int, lifetime_s: float = 120.0) -> tuple[list[Lease], list[BaseException]]:
    """Everybody at once; the winners hold until all have tried."""
    start, tried = threading.Barrier(contenders), threading.Barrier(contenders)
    won: list[Lease] = []
    lost: list[BaseException] = []

    def contend(name: str) -> None:
        with ExitStack() as stack:
            start.wait()
            try:
                won.append(
                    stack.enter_context(hold(lake.root, lake.place, name, name, lifetime_s=lifetime_s))
                )
            except BaseException as error:
                lost.append(error)
            tried.wait()

    threads = [threading.Thread(target=contend, args=(f"t{n}",)) for n in range(contenders)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return won, lost


def test_of_eight_at_once_exactly_one_wins(lake: Lake) -> None:
    for expected in (1, 2):  # a new lake, then one that was released
        won, lost = race(lake, 8)
        assert [lease.counter for lease in won] == [expected]
        assert [type(error) for error in lost] == [LeaseHeld] * 7


# ---- A folder: real processes.

HOLDER = """
import os, sys, time
from weighbridge.adapters.lease import hold
from weighbridge.wiring import Settings
with hold(sys.argv[1], Settings(), "night-1", "ann") as lease:
    in_child = "fork" in sys.argv and os.fork() == 0
    if in_child or "fork" not in sys.argv:  # a forked child says so itself: only now has it closed the lock
        print(lease.counter, flush=True)
    time.sleep(60)
    if in_child:
        os._exit(0)
"""

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def run(*words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(tmp_path / "lake"), *words],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(JOBS)},
            start_new_session=True,
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline().strip().isdigit()
        return process

    yield run
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_a_killed_process_frees_the_lake_and_the_counter_goes_on(tmp_path: Path, start: Start) -> None:
    process = start()
    with pytest.raises(LeaseHeld, match=f"ann, run night-1 .pid {process.pid} "):
        hold(str(tmp_path / "lake"), Place(), "night-2", "bob").__enter__()
    process.kill()
    process.wait()
    with hold(str(tmp_path / "lake"), Place(), "night-2", "bob") as lease:
        assert lease.counter == 2


def test_a_stopped_process_keeps_the_lake(tmp_path: Path, start: Start) -> None:
    process = start()
    os.kill(process.pid, signal.SIGSTOP)
    with pytest.raises(LeaseHeld, match="ann"):
        hold(str(tmp_path / "lake"), Place(), "night-2", "bob").__enter__()


def test_a_forked_child_does_not_keep_the_lake_of_its_dead_parent(tmp_path: Path, start: Start) -> None:
    process = start("fork")
    process.kill()
    process.wait()
    with hold(str(tmp_path / "lake"), Place(), "night-2", "bob") as lease:
        assert lease.counter == 2


def test_a_removed_lock_is_noticed(tmp_path: Path) -> None:
    with hold(str(tmp_path), Place(), "x", "ann") as lease:
        (tmp_path / "_weighbridge" / "writer.lock").unlink()
        with pytest.raises(LeaseLost, match="removed or replaced"):
            lease.check()


# ---- S3: lifetimes.


def stalled(lake: Lake, monkeypatch: pytest.MonkeyPatch, lifetime_s: float) -> tuple[ExitStack, Lease]:
    """A holder that renews no more, as a stopped process or a cut network would leave it."""
    monkeypatch.setattr("weighbridge.adapters.lease._S3Lease._renew_until_the_end", lambda self: None)
    stack = ExitStack()
    lease = stack.enter_context(hold(lake.root, lake.place, "night-1", "ann", lifetime_s=lifetime_s))
    return stack, lease


def wait_until_taken(lake: Lake, lifetime_s: float) -> tuple[ExitStack, Lease]:
    stack = ExitStack()
    for _ in range(200):
        try:
            return stack, stack.enter_context(
                hold(lake.root, lake.place, "night-2", "bob", lifetime_s=lifetime_s)
            )
        except LeaseHeld:
            time.sleep(0.1)
    raise AssertionError("the expired lease was never taken over")


def test_an_expired_lease_is_taken_over_and_its_holder_notices_first(
    s3_lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    first_stack, first = stalled(s3_lake, monkeypatch, 2.0)
    second_stack, second = wait_until_taken(s3_lake, 60.0)
    assert second.counter == first.counter + 1
    with pytest.raises(LeaseLost, match="last renewed"):
        first.check()
    first_stack.close()  # its release must not free what is another's now
    second.check()
    with pytest.raises(LeaseHeld, match="bob"):
        hold(s3_lake.root, s3_lake.place, "night-3", "eve").__enter__()
    second_stack.close()


def test_of_eight_at_an_expired_lease_exactly_one_wins(
    s3_lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, first = stalled(s3_lake, monkeypatch, 0.1)
    time.sleep(4)
    won, lost = race(s3_lake, 8)
    assert [lease.counter for lease in won] == [first.counter + 1]
    assert [type(error) for error in lost] == [LeaseHeld] * 7


def test_a_renewed_lease_outlives_its_lifetime(s3_lake: Lake) -> None:
    with hold(s3_lake.root, s3_lake.place, "night-1", "ann", lifetime_s=6.0) as lease:
        time.sleep(9)
        lease.check()
        with pytest.raises(LeaseHeld):
            hold(s3_lake.root, s3_lake.place, "night-2", "bob").__enter__()
    with hold(s3_lake.root, s3_lake.place, "night-2", "bob") as second:
        assert second.counter == lease.counter + 1


def test_a_holder_whose_record_was_taken_learns_it_by_the_next_renewal(s3_lake: Lake) -> None:
    store = open_store(s3_lake.root, s3_lake.place)
    with hold(s3_lake.root, s3_lake.place, "night-1", "ann", lifetime_s=20.0) as lease:
        thief = {"counter": 9, "holder": "bob", "run": "night-2", "since": "2026-01-01T00:00:00+00:00"}
        store.write(RECORD, json.dumps(thief).encode())
        for _ in range(300):
            with suppress(LeaseLost):
                lease.check()
                time.sleep(0.1)
                continue
            break
        with pytest.raises(LeaseLost, match="taken over: it is being written by bob"):
            lease.check()
    assert json.loads(store.read(RECORD)) == thief


def test_a_lost_answer_to_its_own_write_is_no_loss(s3_lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server wrote the record, the answer got lost, and the retry was told that another was faster."""
    from weighbridge.adapters.s3 import S3Store

    real = S3Store.put_if

    def twice(self: S3Store, key: str, content: bytes, match: str | None) -> str | None:
        real(self, key, content, match)
        return real(self, key, content, match)

    monkeypatch.setattr(S3Store, "put_if", twice)
    with hold(s3_lake.root, s3_lake.place, "night-1", "ann", lifetime_s=20.0) as lease:
        first = open_store(s3_lake.root, s3_lake.place).read(RECORD)
        for _ in range(300):
            if open_store(s3_lake.root, s3_lake.place).read(RECORD) != first:
                break
            time.sleep(0.1)
        else:
            raise AssertionError("the lease was never renewed")
        lease.check()


def test_a_server_that_does_not_answer_costs_the_lease_only_after_its_lifetime(
    s3_lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    from weighbridge.adapters.s3 import S3Store

    later_s = [0.0]
    clock = lease_module._seconds
    monkeypatch.setattr(lease_module, "_seconds", lambda: clock() + later_s[0])
    with hold(s3_lake.root, s3_lake.place, "night-1", "ann", lifetime_s=1000.0) as lease:

        def silent(*_: object) -> str | None:
            raise Unavailable("no answer")

        monkeypatch.setattr(S3Store, "put_if", silent)
        later_s[0] = 900.0
        lease.check()
        later_s[0] = 1000.0
        with pytest.raises(LeaseLost, match="another run may write by now"):
            lease.check()
