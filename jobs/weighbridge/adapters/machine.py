"""What this machine has: Java, cores, memory, disk. Facts only; `weighbridge doctor` judges them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

JAVA_NEEDED = 17
VERSION = re.compile(r'version "(\d+)([^"]*)"')


@dataclass(frozen=True)
class Java:
    """A Java that runs: its command and its version, as `17` and `17.0.15`."""

    command: str
    major: int
    version: str


def find_java() -> Java | None:
    """The Java that Spark would start: `JAVA_HOME` first, then PATH; None where none runs."""
    home = os.environ.get("JAVA_HOME", "")
    command = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if command is None:
        return None
    try:
        told = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return read_java_version(command, told.stderr + told.stdout)


def read_java_version(command: str, told: str) -> Java | None:
    """The Java that `java -version` told of; None where it told something else."""
    found = VERSION.search(told)
    if found is None:
        return None
    return Java(command, int(found[1]), found[1] + found[2])


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0))


def memory_bytes() -> int:
    """Memory this process may use, in bytes: the machine's, or its control group's where that is less."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return machine
    return min(machine, int(limit)) if limit.isdigit() else machine


def free_bytes(folder: Path) -> int:
    """Free disk in bytes where the folder is, or would be."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return shutil.disk_usage(folder).free
