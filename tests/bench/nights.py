"""Whole nights on invented CUR 2.0 deliveries, with Comet and without, beside their floor."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import compare
from deltalake import DeltaTable
from watch import Watched, watch

from weighbridge.billing.formats import cur2

CHECKOUT = Path(__file__).parents[2]
BUILD = CHECKOUT / "build" / "bench"
SOURCE, PERIOD, SEED = "aws-main", "2026-10", 7
ROWS_PER_FILE = 1_250_000
COMET = {"on": "with Comet", "off": "without Comet"}


@dataclass
class Nights:
    """What was measured on one bill: the nights by Comet on and off, the floor's parts in CPU-seconds."""

    rows: int
    bill_bytes: int
    charges_bytes: int
    nights: dict[str, Watched]
    decode_cpu_s: float
    write_cpu_s: float

    @property
    def floor_cpu_s(self) -> float:
        """Decoding and writing together."""
        return self.decode_cpu_s + self.write_cpu_s


def say(text: str) -> None:
    """One line of progress."""
    print(f"bench: {text}", file=sys.stderr, flush=True)


def environment(**more: str) -> dict[str, str]:
    """This environment without settings of its own lakes, with the package from this checkout."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("WEIGHBRIDGE_")}
    return kept | {"PYTHONPATH": str(CHECKOUT / "jobs")} | more


def weighbridge() -> str:
    """The product's own command, beside the Python that runs this."""
    return str(Path(sys.executable).parent / "weighbridge")


def bill(rows: int) -> tuple[Path, dict[str, Any]]:
    """The landing place of a bill of this size and what sample-bill says of it; made once, then kept."""
    landing = BUILD / f"bill-{rows}"
    said = landing / "said.json"
    if not said.is_file():
        say(f"inventing a bill of {rows:,} lines (kept under build/bench for the next time)")
        shutil.rmtree(landing, ignore_errors=True)
        landing.mkdir(parents=True)
        parts = max(4, -(-rows // ROWS_PER_FILE))
        command = [weighbridge(), "sample-bill", "--format", "cur2", "--rows", str(rows), "--period", PERIOD]
        command += ["--seed", str(SEED), "--parts", str(parts), "--out", str(landing / SOURCE), "--json"]
        done = subprocess.run(command, env=environment(), check=True, stdout=subprocess.PIPE, text=True)
        said.write_text(done.stdout)
    return landing / SOURCE, json.loads(said.read_text())


def run_night(landing: Path, rows: int, comet: str) -> tuple[Path, Watched]:
    """The lake that one night made of the bill, in a fresh process, and what it cost."""
    place = BUILD / f"night-{rows}-{comet}"
    shutil.rmtree(place, ignore_errors=True)
    policy = place / "policy"
    shutil.copytree(CHECKOUT / "jobs" / "weighbridge" / "policy", policy)
    source = {"name": SOURCE, "provider": "AWS", "payer_account": "100000000001"}
    source |= {"format": "cur-2.0", "landing": str(landing)}
    (policy / "sources.yaml").write_text(json.dumps({"sources": [source]}))
    env = environment(
        WEIGHBRIDGE_LAKE=str(place / "lake"),
        WEIGHBRIDGE_POLICY=str(policy),
        WEIGHBRIDGE_COMET=comet,
        WEIGHBRIDGE_SPARK_MASTER="local[2]",
    )
    watched = watch(
        [weighbridge(), "night", "--run", f"bench/{rows}/{comet}", "--json"],
        env,
        BUILD / f"night-{rows}-{comet}.log",
        name_of=lambda words: words.partition(f" {SOURCE}")[0],
    )
    if watched.exit_code != 0:
        raise SystemExit(f"bench: the night ended with {watched.exit_code}:\n{watched.stderr[-4000:]}")
    return place / "lake", watched


def measure(rows: int) -> Nights:
    """Both nights and the floor on a bill of this size; ends the bench where their tables differ."""
    landing, said = bill(rows)
    files = [str(Path(file["path"]).resolve()) for file in said["files"]]
    lakes: dict[str, Path] = {}
    nights: dict[str, Watched] = {}
    for comet in ("on", "off"):
        say(f"the night of {rows:,} lines {COMET[comet]}")
        lakes[comet], nights[comet] = run_night(landing, rows, comet)
        for phase in nights[comet].by_phase.values():
            say(f"  {phase.name:<20} {phase.cpu_s:8.1f} CPU-s  {phase.peak_bytes / 1e9:5.2f} GB")
        night = nights[comet]
        say(f"  {'all':<20} {night.cpu_s:8.1f} CPU-s  {night.peak_bytes / 1e9:5.2f} GB")
    say("comparing the tables of both nights, row by row and in DuckDB")
    compare.same_tables(lakes["on"], lakes["off"], rows, Decimal(said["totals"]["USD"]["billed"]))
    say("the floor: pyarrow decodes the same columns and writes the same charges")
    charges = sorted(DeltaTable(lakes["on"] / "charges").file_uris())
    found = floor(rows, files, charges)
    if found["decode_rows"] != rows or found["write_rows"] != rows:
        raise SystemExit(f"bench: the floor did not see {rows} rows: {found}")
    measured = Nights(
        rows,
        sum(Path(name).stat().st_size for name in files),
        sum(Path(name).stat().st_size for name in charges),
        nights,
        found["decode_cpu_s"],
        found["write_cpu_s"],
    )
    for comet, night in nights.items():
        say(f"  {COMET[comet]}: {night.cpu_s / measured.floor_cpu_s:.2f} times its floor")
    return measured


def floor(rows: int, files: list[str], charges: list[str]) -> dict[str, float]:
    """What floors.py measures, in a fresh process."""
    place = BUILD / f"floor-{rows}"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    spec = place / "spec.json"
    wanted = {"decode": files, "columns": list(cur2.READS), "write": charges, "to": str(place / "charges")}
    spec.write_text(json.dumps(wanted))
    command = [sys.executable, str(Path(__file__).with_name("floors.py")), str(spec)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    shutil.rmtree(place / "charges")
    return json.loads(done.stdout)
