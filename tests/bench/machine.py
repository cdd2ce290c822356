"""What the figures were measured with: versions, and the machine."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import nights


def described() -> dict[str, str]:
    """One line each, in the order of the page."""
    return {
        "Date (UTC)": f"{datetime.now(UTC):%Y-%m-%d %H:%M}",
        "Commit": _said("git", "-C", str(nights.CHECKOUT), "describe", "--always", "--dirty"),
        "Processor": _processor(),
        "Cores used": f"2 of {os.cpu_count()}",
        "Memory": f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB",
        "Kernel": platform.release(),
        "Load before": " ".join(f"{load:.1f}" for load in os.getloadavg()),
        "Python": platform.python_version(),
        "Java": _java(),
        "Spark": version("pyspark"),
        "Delta": version("delta-spark"),
        "Comet": _comet(),
        "delta-rs": version("deltalake"),
        "dbt-core": version("dbt-core"),
        "pyarrow": version("pyarrow"),
        "DuckDB": version("duckdb"),
    }


def _said(*command: str) -> str:
    try:
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return "not known"
    return (done.stdout or done.stderr).strip()


def _java() -> str:
    found = re.search(r'version "([^"]+)"', _said("java", "-version"))
    return found.group(1) if found else "not known"


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _comet() -> str:
    lock = (nights.CHECKOUT / "infra" / "spark" / "jars.lock").read_text()
    found = re.search(r"comet-spark[^:]*:(\S+)", lock)
    return found.group(1) if found else "not known"
