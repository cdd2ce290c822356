"""docs/bench.md: what was measured, beside its floors and targets, and what is not reached, with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from nights import COMET, Nights
from rollups import Case, RollUps

NIGHT_TARGET = {"on": 3.0, "off": 6.0}
ROLLUP_TARGET = 1.8
PEAK_TARGET = 4e9
PEAK_ROWS = 20_000_000
LABELS = {"duckdb": "DuckDB", "spark": "plain Spark, one step", "comet": "Spark with Comet"}


@dataclass(frozen=True)
class Target:
    """One thing to reach: what, the figure found, the figure asked for, and why, where it is not reached."""

    what: str
    found: float
    asked: float
    unit: str
    because: str

    @property
    def reached(self) -> bool:
        """True where the figure is no higher than asked."""
        return self.found <= self.asked

    def __str__(self) -> str:
        end = "reached" if self.reached else f"NOT reached: {self.because}"
        return f"{self.what}: {self.found:.2f} {self.unit} of at most {self.asked:g} — {end}"


def targets(nights: Sequence[Nights], rollups: Sequence[RollUps]) -> list[Target]:
    """Every target that these measurements can speak of."""
    found = []
    for one in nights:
        for comet, limit in NIGHT_TARGET.items():
            ratio = one.nights[comet].cpu_s / one.floor_cpu_s
            what = f"night of {one.rows:,} lines {COMET[comet]}"
            found.append(Target(what, ratio, limit, "times its floor", _why(one, comet)))
            if one.rows >= PEAK_ROWS:
                peak = one.nights[comet].peak_bytes / 1e9
                heap = "the heap's limit (WEIGHBRIDGE_SPARK_DRIVER_MEMORY) and Comet's share outside it are in it"
                found.append(Target(f"peak memory, {what}", peak, PEAK_TARGET / 1e9, "GB", heap))
    for rollup in rollups:
        case = next(case for case in rollup.cases if (case.tags, case.money) == ("map", "decimal"))
        ratio = case.warm("comet") / case.floor_cpu_s
        what = f"roll-up of {rollup.rows:,} rows, map tags, decimals, with Comet"
        plan = f"planning and starting a job stay the same for few rows; the floor is {case.floor_cpu_s:.1f} CPU-s"
        found.append(Target(what, ratio, ROLLUP_TARGET, "times its floor", plan))
    return found


def _why(one: Nights, comet: str) -> str:
    """Where the CPU-seconds above the target are: what the JVM does for itself, and the dearest phases."""
    night = one.nights[comet]
    phases = sorted(night.by_phase.values(), key=lambda phase: -phase.cpu_s)
    dearest = ", ".join(f"{phase.name} {phase.cpu_s:.0f}" for phase in phases[:4])
    overheads = sum(sum(phase.overheads.values()) for phase in phases)
    return (
        f"of {night.cpu_s:.0f} CPU-s (floor {one.floor_cpu_s:.0f}) the JVM used {overheads:.0f} to compile and "
        f"collect; dearest phases: {dearest}"
    )


def page(machine: Mapping[str, str], nights: Sequence[Nights], rollups: Sequence[RollUps]) -> str:
    """The page as Markdown."""
    lines = [
        "# What is measured",
        "",
        "Written by `make bench`. Ratios of CPU-seconds, taken in one run: they hold on a machine that is busy",
        "with other work, wall times do not. Bills are invented and the same each time.",
        "",
        *_table(["", ""], machine.items()),
        "",
        "## Targets",
        "",
        *[f"- {target}" for target in targets(nights, rollups)],
        "",
        "Every table was the same in every engine: charges, daily_costs and marts of both nights row by row,",
        "daily_costs as DuckDB sums the charges, and each roll-up of all engines, to the last digit.",
    ]
    for one in nights:
        lines += ["", *_night(one)]
    for rollup in rollups:
        lines += ["", *_rollup(rollup)]
    return "\n".join(lines) + "\n"


def _night(one: Nights) -> list[str]:
    names = dict.fromkeys(name for night in one.nights.values() for name in night.by_phase)
    rows = []
    for name in names:
        cells = [name]
        for night in one.nights.values():
            phase = night.by_phase.get(name)
            cells += (
                ["", "", ""]
                if phase is None
                else _phase_cells(phase.cpu_s, phase.overheads, phase.peak_bytes)
            )
        rows.append(cells)
    total = ["**all**"]
    for night in one.nights.values():
        total += _phase_cells(night.cpu_s, _overheads(one, night.by_phase.values()), night.peak_bytes)
    ratios = "; ".join(f"{COMET[c]} {n.cpu_s / one.floor_cpu_s:.2f}" for c, n in one.nights.items())
    head = [
        "phase",
        *[f"{what} {COMET[c]}" for c in one.nights for what in ("CPU-s", "of it JVM", "peak GB")],
    ]
    return [
        f"## A night of {one.rows:,} lines",
        "",
        f"CUR 2.0, {one.bill_bytes / 1e6:,.0f} MB of Parquet with map tags and doubles; charges are "
        f"{one.charges_bytes / 1e6:,.0f} MB. Floor: pyarrow decodes the columns that are read "
        f"({one.decode_cpu_s:.1f} CPU-s) and writes the same charges ({one.write_cpu_s:.1f}): "
        f"{one.floor_cpu_s:.1f} CPU-s. **Times the floor: {ratios}.**",
        "",
        "`of it JVM` is what the JVM uses to compile itself and to collect garbage.",
        "",
        *_table(head, [*rows, total]),
    ]


def _overheads(one: Nights, phases: Iterable[object]) -> dict[str, float]:
    summed: dict[str, float] = {}
    for phase in phases:
        for kind, cpu_s in phase.overheads.items():
            summed[kind] = summed.get(kind, 0.0) + cpu_s
    return summed


def _phase_cells(cpu_s: float, overheads: Mapping[str, float], peak: int) -> list[str]:
    return [f"{cpu_s:.1f}", f"{sum(overheads.values()):.1f}", f"{peak / 1e9:.2f}"]


def _rollup(rollup: RollUps) -> list[str]:
    rows = [[case.tags, case.money, f"{case.floor_cpu_s:.2f}", *_runs(case)] for case in rollup.cases]
    peaks = ", ".join(f"{LABELS[engine]} {peak / 1e9:.2f} GB" for engine, peak in rollup.peaks.items())
    return [
        f"## The roll-up alone, {rollup.rows:,} rows",
        "",
        f"Month, business line, model version, region, category: {rollup.groups:,} groups of three exact sums. CPU-s "
        "of the first run in a process, of the next (median), and the latter in times of the floor, which is "
        f"pyarrow decoding the same columns. Peaks over all cases: {peaks}. JSON tags: plain Spark parses each "
        "row; DuckDB and Spark with Comet group by the text first and parse each distinct one.",
        "",
        *_table(["tags", "money", "floor", *LABELS.values()], rows),
    ]


def _runs(case: Case) -> list[str]:
    return [
        f"{case.runs[engine][0]:.1f} / {case.warm(engine):.1f} / **{case.warm(engine) / case.floor_cpu_s:.2f}**"
        for engine in LABELS
    ]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    return lines + [f"| {' | '.join(row)} |" for row in rows]
