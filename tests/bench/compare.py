"""Whether engines made the same of the same bill: exact totals and rows, or the end of the bench."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import duckdb
from deltalake import DeltaTable

from weighbridge.billing.roll_up import TAKEN_FROM
from weighbridge.tables import CHARGES, DAILY_COSTS, MARTS, MEASURES

SAME_NIGHT = ("policy_digest", "x_policy_digest")


class Differ(SystemExit):
    """Two engines made different tables; nothing measured on them means anything."""


def same_tables(one: Path, other: Path, rows: int, billed: Decimal) -> None:
    """Passes where both lakes hold the same charges, days and marts, and DuckDB sums the charges to the same."""
    db = duckdb.connect()
    db.execute("SET memory_limit = '4GB'; SET threads = 2; SET preserve_insertion_order = false")
    for table in (CHARGES.name, DAILY_COSTS.name, *MARTS):
        for name, lake in (("one", one), ("other", other)):
            register(db, f"{table}_{name}", lake / table)
        left, right = (fingerprint(db, f"{table}_{name}") for name in ("one", "other"))
        if left != right:
            raise Differ(f"bench: {table} differs with Comet and without: {left} and {right}")
    (found, total) = db.sql("SELECT count(*), sum(billed_cost) FROM charges_one").fetchall()[0]
    if (found, total) != (rows, billed):
        raise Differ(f"bench: {found} charges of {total}, but the bill has {rows} rows of {billed}")
    days_as_duckdb_sums_them(db)


def register(db: duckdb.DuckDBPyConnection, name: str, place: Path) -> None:
    """A view of what a Delta table holds now."""
    files = DeltaTable(place).file_uris()
    db.read_parquet(files, hive_partitioning=True).create_view(name)


def fingerprint(db: duckdb.DuckDBPyConnection, view: str) -> tuple[int, int]:
    """(rows, sum of the rows' hashes): alike for the same rows in any order, how often each stands counted in."""
    columns = sorted(row[0] for row in db.sql(f"DESCRIBE {view}").fetchall())
    named = ", ".join(f'"{column}"' for column in columns)
    return db.sql(f"SELECT count(*), sum(hash({named})::HUGEINT) FROM {view}").fetchall()[0]


def days_as_duckdb_sums_them(db: duckdb.DuckDBPyConnection) -> None:
    """Passes where DuckDB's own roll-up of the charges is daily_costs, row by row."""
    keys = (*DAILY_COSTS.key, "delivery", "policy_digest")
    taken = [
        f"{'charge_period_start::DATE' if key == 'usage_day' else TAKEN_FROM.get(key, key)} AS {key}"
        for key in keys
    ]
    sums = [f"sum({name}) AS {name}" for name in (*MEASURES, "consumed_quantity")]
    summed = (
        f"SELECT {', '.join(taken)}, {', '.join(sums)}, count(*) AS charge_rows FROM charges_one GROUP BY ALL"
    )
    kept = f"SELECT {', '.join((*keys, *MEASURES, 'consumed_quantity', 'charge_rows'))} FROM daily_costs_one"
    for first, second in ((summed, kept), (kept, summed)):
        lost = db.sql(f"SELECT count(*) FROM ({first} EXCEPT ALL {second})").fetchall()[0][0]
        if lost:
            raise Differ(f"bench: {lost} rows of daily_costs are not what DuckDB sums")
