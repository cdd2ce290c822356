"""A command watched from outside: CPU-seconds and memory of all its processes, phase by phase."""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
EVERY_S = 0.3
LOOKS_PER_THREADS = 10  # a JVM has a hundred threads: looking at each costs more
# Threads of the JVM that do no work of ours, by how their names begin.
OVERHEADS = {"compiling": ("C1 Compiler", "C2 Compiler"), "collecting": ("GC Thread", "G1 ")}
PHASE = re.compile(r"^\d\d:\d\d:\d\d (.+)$")


@dataclass
class Phase:
    """What ran from one phase line to the next: CPU-seconds, wall seconds, and the highest memory seen.

    `overheads`: CPU-seconds of the JVM's own threads, by OVERHEADS; they are part of `cpu_s`.
    """

    name: str
    cpu_s: float = 0.0
    overheads: Counter[str] = field(default_factory=Counter)
    wall_s: float = 0.0
    peak_bytes: int = 0


@dataclass
class Watched:
    """One finished command. `peak_bytes`: highest sum of resident memory; `highest_bytes`: sum of VmHWM."""

    exit_code: int
    stdout: str
    stderr: str
    phases: list[Phase]
    highest_bytes: int

    @property
    def cpu_s(self) -> float:
        """CPU-seconds of all its processes."""
        return sum(phase.cpu_s for phase in self.phases)

    @property
    def wall_s(self) -> float:
        """From start to end."""
        return sum(phase.wall_s for phase in self.phases)

    @property
    def peak_bytes(self) -> int:
        """The highest sum of resident memory at one moment, as sampled."""
        return max(phase.peak_bytes for phase in self.phases)

    @property
    def by_phase(self) -> dict[str, Phase]:
        """Phases by name in the order of their first start; those that came several times are added up."""
        merged: dict[str, Phase] = {}
        for phase in self.phases:
            known = merged.setdefault(phase.name, Phase(phase.name))
            known.cpu_s += phase.cpu_s
            known.overheads.update(phase.overheads)
            known.wall_s += phase.wall_s
            known.peak_bytes = max(known.peak_bytes, phase.peak_bytes)
        return merged


@dataclass
class Session:
    """The processes of one session id, also those whose parent has gone."""

    leader: int
    cpu: dict[int, float] = field(default_factory=dict)
    highest: dict[int, int] = field(default_factory=dict)
    threads: dict[str, tuple[str, float]] = field(default_factory=dict)

    def overheads(self) -> Counter[str]:
        """CPU-seconds of the JVM's own threads that were ever seen, by kind."""
        for pid in self.cpu:
            for task in Path(f"/proc/{pid}/task").glob("*/stat"):
                try:
                    before, _, after = task.read_text().rpartition(")")
                except (FileNotFoundError, ProcessLookupError):
                    continue
                name = before.partition("(")[2]
                for kind, beginnings in OVERHEADS.items():
                    if name.startswith(beginnings):
                        fields = after.split()
                        self.threads[task.parent.name] = kind, (int(fields[11]) + int(fields[12])) / TICKS
        found: Counter[str] = Counter()
        for kind, cpu_s in self.threads.values():
            found[kind] += cpu_s
        return found

    def sample(self) -> tuple[float, int]:
        """(CPU-seconds that all its processes have ever used, resident bytes of those that live)."""
        living: dict[int, tuple[int, tuple[str, str], int]] = {}
        for entry in os.scandir("/proc"):
            if not entry.name.isdigit():
                continue
            try:
                fields = Path(entry.path, "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) != self.leader:
                    continue
                pid = int(entry.name)
                self.cpu[pid] = (int(fields[11]) + int(fields[12])) / TICKS
                living[pid] = int(fields[1]), (fields[20], fields[25]), int(fields[21]) * PAGE
                self.highest[pid] = max(self.highest.get(pid, 0), _high_water(pid))
            except (FileNotFoundError, ProcessLookupError):
                continue
        # A child that has not become another program yet still shows its parent's memory: size and stack are alike.
        resident = 0
        for parent, memory, size in living.values():
            if parent in living and living[parent][1] == memory:
                continue
            resident += size
        return sum(self.cpu.values()), resident


def _high_water(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def watch(
    command: Sequence[str],
    env: Mapping[str, str],
    log: Path,
    name_of: Callable[[str], str] = str,
    first: str = "start",
) -> Watched:
    """Runs the command to its end. A line on stderr like `05:59:01 WORDS` begins the phase `name_of(WORDS)`."""
    process = subprocess.Popen(
        command,
        env=dict(env),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    session, phases, lines, lock = Session(process.pid), [Phase(first)], [], threading.Lock()
    last = [0.0, time.monotonic()]
    before: Counter[str] = Counter()
    looks = [0]
    peeks: list[str] = []

    def look(next_phase: str | None = None) -> None:
        with lock:
            cpu, resident = session.sample()
            now = time.monotonic()
            current = phases[-1]
            current.cpu_s += cpu - last[0]
            current.wall_s += now - last[1]
            current.peak_bytes = max(current.peak_bytes, resident)
            last[:] = [cpu, now]
            looks[0] += 1
            if next_phase is not None or looks[0] % LOOKS_PER_THREADS == 0:
                overheads = session.overheads()
                current.overheads.update({kind: overheads[kind] - before[kind] for kind in overheads})
                before.update({kind: overheads[kind] - before[kind] for kind in overheads})
            if next_phase is not None:
                phases.append(Phase(next_phase))

    def read_errors() -> None:
        for line in process.stderr or ():
            lines.append(line)
            if begins := PHASE.match(line.rstrip()):
                look(name_of(begins.group(1)))

    readers = [
        threading.Thread(target=read_errors),
        threading.Thread(target=lambda: peeks.append(process.stdout.read() if process.stdout else "")),
    ]
    for reader in readers:
        reader.start()
    while process.poll() is None:
        look()
        time.sleep(EVERY_S)
    for reader in readers:
        reader.join()
    look()
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("".join(lines))
    return Watched(process.returncode, peeks[0], "".join(lines), phases, sum(session.highest.values()))
