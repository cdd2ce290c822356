"""The floors: what decoding the same columns and writing the same rows costs with pyarrow alone, in CPU-seconds.

Started as a program of its own: `floors.py SPEC` with a JSON file that names what to decode and what to write.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def decode(files: Sequence[str], columns: Sequence[str]) -> tuple[int, float]:
    """(rows, CPU-seconds) of decoding these columns of every file, row group by row group, on two threads."""
    started, rows = time.process_time(), 0
    for name in files:
        file = pq.ParquetFile(name)
        wanted = [column for column in columns if column in file.schema_arrow.names]
        for group in range(file.num_row_groups):
            rows += file.read_row_group(group, columns=wanted).num_rows
    return rows, time.process_time() - started


def write(files: Sequence[str], to: Path) -> tuple[int, float]:
    """(rows, CPU-seconds) of writing the rows of these files as Parquet, Snappy; reading them is not counted."""
    rows, cpu_s = 0, 0.0
    to.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(files):
        file = pq.ParquetFile(name)
        started = time.process_time()
        with pq.ParquetWriter(to / f"{number}.parquet", file.schema_arrow, compression="snappy") as writer:
            cpu_s += time.process_time() - started
            for batch in file.iter_batches(batch_size=125_000):
                table = pa.Table.from_batches([batch])
                started = time.process_time()
                writer.write_table(table)
                cpu_s += time.process_time() - started
                rows += table.num_rows
            started = time.process_time()
        cpu_s += time.process_time() - started
    return rows, cpu_s


def main() -> None:
    """Prints what was measured as one JSON object."""
    spec = json.loads(Path(sys.argv[1]).read_text())
    pa.set_cpu_count(2)
    found = {}
    found["decode_rows"], found["decode_cpu_s"] = decode(spec["decode"], spec["columns"])
    if spec.get("write"):
        found["write_rows"], found["write_cpu_s"] = write(spec["write"], Path(spec["to"]))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
