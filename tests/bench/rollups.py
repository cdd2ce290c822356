"""The roll-up alone: its floor, DuckDB, plain Spark in one step, and Spark with Comet; the same rows from all."""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import rollup_bill
from compare import Differ
from nights import BUILD, environment, say
from watch import watch

RUNS = 3
ENGINES = ("duckdb", "spark", "comet")
CASES = tuple({"tags": tags, "money": money} for tags in ("map", "json") for money in ("decimal", "double"))
KEYS = ("month", "business_line", "model_version", "region", "category")


@dataclass
class Case:
    """CPU-seconds of one case: the floor's, and each run of each engine. `peak_bytes`: per engine, all cases."""

    tags: str
    money: str
    floor_cpu_s: float
    runs: dict[str, list[float]]

    def warm(self, engine: str) -> float:
        """The median of every run but the first, which still compiles."""
        return statistics.median(self.runs[engine][1:])


@dataclass
class RollUps:
    """What was measured on one bill."""

    rows: int
    groups: int
    cases: list[Case]
    peaks: dict[str, int]


def measure(rows: int) -> RollUps:
    """Each case in each engine; ends the bench where two engines have different rows."""
    place = BUILD / f"rollup-{rows}"
    if not (place / "whole").is_file():
        say(f"inventing {rows:,} rows for the roll-up (kept under build/bench for the next time)")
        rollup_bill.make(rows, place)
    floors = {
        name: _floor(place, name, rows)
        for name in ("map decimal", "map double", "json decimal", "json double")
    }
    runs: dict[str, dict[str, list[float]]] = {}
    peaks: dict[str, int] = {}
    for engine in ENGINES:
        say(f"the roll-up of {rows:,} rows in {engine}: {len(CASES)} cases, {RUNS} runs each")
        runs[engine], peaks[engine] = _run(engine, place)
    groups = _same_rows()
    cases = []
    for case in CASES:
        name = f"{case['tags']} {case['money']}"
        cases.append(Case(**case, floor_cpu_s=floors[name], runs={e: runs[e][name] for e in ENGINES}))
        told = ", ".join(f"{e} {cases[-1].warm(e) / floors[name]:.2f}" for e in ENGINES)
        say(f"  {name}: floor {floors[name]:.2f} CPU-s; times that: {told}")
    return RollUps(rows, groups, cases, peaks)


def _floor(place: Path, name: str, rows: int) -> float:
    """CPU-seconds of decoding what this case needs, the least of RUNS in fresh processes."""
    tags, money = name.split()
    columns = ["BillingPeriodStart", "RegionId", "ChargeCategory", "Tags" if tags == "map" else "TagsJson"]
    columns += [
        f"{cost}{'Cost' if money == 'decimal' else 'Double'}" for cost in ("Billed", "Effective", "List")
    ]
    spec = BUILD / "rollup-floor.json"
    spec.write_text(
        json.dumps({"decode": [str(p) for p in sorted(place.glob("part-*"))], "columns": columns})
    )
    found = []
    for _ in range(RUNS):
        command = [sys.executable, str(Path(__file__).with_name("floors.py")), str(spec)]
        done = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        if done["decode_rows"] != rows:
            raise Differ(f"bench: the floor decoded {done['decode_rows']} of {rows} rows")
        found.append(done["decode_cpu_s"])
    return min(found)


def _to(engine: str, name: str) -> Path:
    return BUILD / f"rollup-made-{engine}-{name.replace(' ', '-')}"


def _run(engine: str, place: Path) -> tuple[dict[str, list[float]], int]:
    """(CPU-seconds of each run by case, peak bytes) of one engine in one fresh process."""
    for case in CASES:
        made = _to(engine, "{tags} {money}".format(**case))
        shutil.rmtree(made, ignore_errors=True)
        made.unlink(missing_ok=True)
    found = BUILD / f"rollup-{engine}.json"
    cases = [case | {"to": str(_to(engine, "{tags} {money}".format(**case)))} for case in CASES]
    spec = {"engine": engine, "place": str(place), "runs": RUNS, "cases": cases, "found": str(found)}
    program = "rollup_duckdb.py" if engine == "duckdb" else "rollup_spark.py"
    command = [sys.executable, str(Path(__file__).with_name(program)), json.dumps(spec)]
    done = watch(command, environment(), BUILD / f"rollup-{engine}.log")
    if done.exit_code != 0:
        raise SystemExit(f"bench: {engine} ended with {done.exit_code}:\n{done.stderr[-4000:]}")
    return json.loads(found.read_text() if engine != "duckdb" else done.stdout), done.peak_bytes


def _same_rows() -> int:
    """How many groups there are; all engines and all cases must have made the same rows of the same money."""
    first: pa.Table | None = None
    for engine in ENGINES:
        for case in CASES:
            table = pq.read_table(_to(engine, "{tags} {money}".format(**case)))
            table = table.sort_by([(key, "ascending") for key in KEYS]).combine_chunks()
            table = pa.table(
                {name: table[name].cast(_plain(table[name].type)) for name in table.column_names}
            )
            if first is None:
                first = table
            if not table.equals(first):
                raise Differ(f"bench: {engine} makes other rows of {case} than {ENGINES[0]} of {CASES[0]}")
    assert first is not None
    return first.num_rows


def _plain(kind: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_large_string(kind) or pa.types.is_string(kind) else kind
