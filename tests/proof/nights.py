"""`weighbridge` as processes of their own: started, watched, stopped and killed together with their JVM."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from weighbridge.cli import run, to_json

SOURCE = "aws-main"
PERIOD = "2026-10"
EARLIER = "2026-09"
ROWS = 2000
SEED = 7

PHASE_LINE = re.compile(r"\d\d:\d\d:\d\d (.+)")

# A JVM that lives for a minute: the second compiler would cost more than it saves.
FAST = {
    "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "WEIGHBRIDGE_SPARK_MASTER": "local[1]",
}
PATIENCE_S = 800.0


def write_policy(folder: Path, landing: str) -> None:
    """The example policy with one source that delivers to `landing`."""
    shutil.copytree(str(files("weighbridge") / "policy"), folder)
    (folder / "sources.yaml").write_text(
        f'sources:\n  - name: {SOURCE}\n    provider: AWS\n    payer_account: "100000000001"\n'
        f"    format: cur-2.0\n    landing: {landing}\n"
    )


def deliver(landing: Path, *, period: str = PERIOD, rows: int = ROWS, again: bool = False) -> dict[str, Any]:
    """A sample bill in a folder; what the generator says of it, with its exact sum."""
    made = run("sample-bill", format="cur2", rows=rows, period=period, seed=SEED, out=landing, again=again)
    return dict(json.loads(to_json(made.data)))


@dataclass(frozen=True)
class Answered:
    """What a process that has ended said."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """Its JSON document."""
        return json.loads(self.out)

    @property
    def phases(self) -> list[str]:
        """The phases it went through, in order, each once."""
        return list(dict.fromkeys(phases(self.err.splitlines())))


def phases(lines: list[str]) -> list[str]:
    """Names of phases in lines of progress; what they are of is left out."""
    found = [match[1] for line in lines if (match := PHASE_LINE.fullmatch(line))]
    return [re.sub(rf" {SOURCE}( .*)?$", "", phase) for phase in found]


class Process:
    """One `weighbridge` process in a process group of its own; its JVM is in the same one."""

    def __init__(self, env: Mapping[str, str], *arguments: str) -> None:
        """Starts it."""
        self.begun = time.monotonic()
        self._process = subprocess.Popen(
            [str(Path(sys.executable).with_name("weighbridge")), *arguments],
            env={**os.environ, **FAST, **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.pid = self._process.pid
        self.err: list[str] = []
        self._out: list[str] = []
        self._readers = [
            threading.Thread(target=self._read, args=(self._process.stderr, self.err), daemon=True),
            threading.Thread(target=self._read, args=(self._process.stdout, self._out), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, stream: Any, into: list[str]) -> None:
        for line in stream:
            into.append(line.rstrip("\n"))

    @property
    def ended(self) -> bool:
        """Whether the driver is no more."""
        return self._process.poll() is not None

    def members(self) -> list[int]:
        """Ids of the living processes of its group, zombies left out: Python, its JVM, their helpers."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                state, group = _state_and_group(int(entry.name))
            except OSError:
                continue
            if group == self.pid and state != "Z":
                found.append(int(entry.name))
        return found

    def wait_until(self, there: Callable[[], bool], what: str) -> None:
        """Returns as soon as `there()`; fails when the process ends before."""
        until = time.monotonic() + PATIENCE_S
        while not there():
            if self.ended or time.monotonic() > until:
                for reader in self._readers:
                    reader.join(timeout=5)
                if there():
                    return
                raise AssertionError(f"the night never came to {what}:\n" + "\n".join(self.err[-30:]))
            time.sleep(0.001)

    def wait_for_phase(self, name: str) -> None:
        """Returns as soon as the process says that it enters this phase."""
        self.wait_until(lambda: name in phases(list(self.err)), f"the phase '{name}'")

    def kill(self) -> list[int]:
        """kill -9 of the driver, Python and its JVM at once; the ids that died. Returns when none is left."""
        victims = self.members()
        os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        while self.members():
            time.sleep(0.01)
        return victims

    def stop(self) -> None:
        """SIGSTOP of all of it; returns when every one stands still."""
        os.killpg(self.pid, signal.SIGSTOP)
        while any(_state_and_group(pid)[0] != "T" for pid in self.members()):
            time.sleep(0.01)

    def go_on(self) -> None:
        """SIGCONT of all of it."""
        os.killpg(self.pid, signal.SIGCONT)

    def answer(self) -> Answered:
        """Waits for its end; what it said."""
        try:
            code = self._process.wait(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError("the process did not end:\n" + "\n".join(self.err[-30:])) from None
        for reader in self._readers:
            reader.join()
        return Answered(code, "\n".join(self._out), "\n".join(self.err))

    def end(self) -> None:
        """Nothing of it is left, however it fared."""
        if self.members():
            self.kill()


def _state_and_group(pid: int) -> tuple[str, int]:
    """State letter and process group of a process; OSError where there is none."""
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return after_name[0], int(after_name[2])


@contextlib.contextmanager
def within(env: Mapping[str, str]) -> Iterator[None]:
    """Within, this process works where `env` says, and its Spark session knows no table of another lake."""
    before = dict(os.environ)
    session = SparkSession.getActiveSession()
    assert session is not None
    session.sql("DROP DATABASE IF EXISTS weighbridge CASCADE")
    os.environ.update(env)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def night_in_this_process(env: Mapping[str, str], name: str) -> Answered:
    """A whole night through the command's own function, in the Spark session that is already there."""
    told = io.StringIO()
    with within(env), contextlib.redirect_stderr(told):
        answer = run("night", run=name)
    return Answered(answer.exit_code, to_json(answer.data), told.getvalue())


def weighbridge(env: Mapping[str, str], *arguments: str) -> Answered:
    """One command, from its start to its end."""
    process = Process(env, *arguments)
    try:
        return process.answer()
    finally:
        process.end()
