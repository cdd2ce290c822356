"""What a lake holds, as text that two lakes can be compared by; read by delta-rs, without Spark."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from weighbridge.tables import CHARGES, DAILY_COSTS, MARTS, TABLES

COMPARED = (CHARGES.name, DAILY_COSTS.name, *MARTS)
ALL = tuple(dict.fromkeys((*(table.name for table in TABLES), *MARTS)))


def _open(lake: str, table: str, options: Mapping[str, str] | None) -> DeltaTable:
    return DeltaTable(f"{lake}/{table}", storage_options=dict(options) if options else None)


def dumped(lake: str, table: str, options: Mapping[str, str] | None = None) -> bytes:
    """Every row of a table as one line of text, sorted: decimals exact, maps ordered by key."""
    found = _open(lake, table, options).to_pyarrow_table()
    names = sorted(found.column_names)
    lines = [repr([_plain(row[name]) for name in names]) for row in found.to_pylist()]
    return "\n".join([repr(names), *sorted(lines)]).encode()


def _plain(value: Any) -> Any:
    # A map comes as a list of pairs, in the order in which its file has them.
    if isinstance(value, list) and all(isinstance(one, tuple) for one in value):
        return sorted(value)
    return value


def digests(lake: str, options: Mapping[str, str] | None = None) -> dict[str, str]:
    """sha256 of the dump of charges, daily_costs and every mart."""
    return {table: hashlib.sha256(dumped(lake, table, options)).hexdigest() for table in COMPARED}


def sum_of(lake: str, table: str, column: str, options: Mapping[str, str] | None = None) -> Decimal:
    """The exact sum of one column of a table."""
    values = _open(lake, table, options).to_pyarrow_table(columns=[column])[column].to_pylist()
    with localcontext(prec=60):
        return sum((value for value in values if value is not None), Decimal(0))


def versions(lake: str, options: Mapping[str, str] | None = None) -> dict[str, int]:
    """The newest version of every table that exists."""
    found = {}
    for table in ALL:
        try:
            found[table] = int(_open(lake, table, options).version())
        except TableNotFoundError:
            continue
    return found


def ledger(lake: str, options: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """What the ledger says of each delivery, without what tells one run from another."""
    rows = _open(lake, "deliveries", options).to_pyarrow_table().to_pylist()
    of_a_run = {"run", "lease", "recorded_at", "commits", "versions", "parts"}
    return sorted(({k: v for k, v in row.items() if k not in of_a_run} for row in rows), key=repr)


def outcomes(lake: str, options: Mapping[str, str] | None = None) -> dict[tuple[str, str], str]:
    """The ledger's outcome of each (delivery, billing period)."""
    return {(row["delivery"], row["billing_period"]): row["outcome"] for row in ledger(lake, options)}


def runs_of(lake: str, table: str, after: int, options: Mapping[str, str] | None = None) -> list[str]:
    """Runs that committed to a table after a version, one a commit."""
    import json

    history = _open(lake, table, options).history()
    metadata = [json.loads(info.get("userMetadata") or "{}") for info in history if info["version"] > after]
    return [one.get("run", "") for one in metadata]


def files_below(folder: Path) -> dict[str, str]:
    """sha256 of every file under a folder."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def commit_file(lake: Path, table: str, version: int) -> Path:
    """The file that makes a version of a table."""
    return lake / table / "_delta_log" / f"{version:020d}.json"
