"""The roll-up in DuckDB, in a process of its own: prints CPU-seconds of each run, writes the rows as Parquet."""

from __future__ import annotations

import json
import sys
import time

import duckdb

KEYS = "month, business_line, model_version, region, category"


def query(place: str, tags: str, money: str) -> str:
    """The roll-up as SQL; JSON is parsed once a distinct text, as everybody's best way does it."""
    names = ("Billed", "Effective", "List")
    if money == "decimal":
        amounts = [f"sum({name}Cost) AS {name.lower()}" for name in names]
        again = [f"sum({name.lower()})::DECIMAL(38,18) AS {name.lower()}" for name in names]
    else:
        amounts = [f"sum(floor({name}Double * 1e10 + 0.5)::BIGINT) AS {name.lower()}" for name in names]
        again = [
            f"(sum({name.lower()})::DECIMAL(28,0) * 0.0000000001::DECIMAL(10,10))::DECIMAL(38,18) AS {name.lower()}"
            for name in names
        ]
    if tags == "map":
        by = "Tags['business_line'] AS business_line, Tags['model_version'] AS model_version"
        outer = "business_line, model_version"
    else:
        by = "TagsJson AS tags"
        outer = "tags->>'business_line' AS business_line, tags->>'model_version' AS model_version"
    rows = f"read_parquet('{place}/part-*.parquet')"
    month = "strftime(BillingPeriodStart, '%Y-%m') AS month"
    inner = f"""SELECT {month}, {by}, RegionId AS region, ChargeCategory AS category,
        {", ".join(amounts)}, count(*) AS n FROM {rows} GROUP BY ALL"""
    return f"""SELECT month, {outer}, region, category, {", ".join(again)}, sum(n)::BIGINT AS n
        FROM ({inner}) GROUP BY ALL ORDER BY ALL"""


def main() -> None:
    """`rollup_duckdb.py SPEC`."""
    spec = json.loads(sys.argv[1])
    db = duckdb.connect()
    db.execute("SET threads = 2; SET TimeZone = 'UTC'")
    found: dict[str, list[float]] = {}
    for case in spec["cases"]:
        sql = query(spec["place"], case["tags"], case["money"])
        runs = found.setdefault(f"{case['tags']} {case['money']}", [])
        for _ in range(spec["runs"]):
            started = time.process_time()
            db.sql(f"COPY ({sql}) TO '{case['to']}' (FORMAT parquet)")
            runs.append(time.process_time() - started)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
