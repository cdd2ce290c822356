"""Archives the classes that a session loads, so that each later JVM starts some seconds sooner.

A missing archive, or one of another Java, is only a slower start: the JVM compares and goes on without.
A truncated one would crash it, so it is written beside and renamed.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from weighbridge.wiring import Settings, build_session, class_archive


def main() -> int:
    """0 when the archive is there, made by one small session that reads and writes a Delta table."""
    settings = Settings.from_environment({"WEIGHBRIDGE_SPARK_MASTER": "local[2]"})
    archive = class_archive(settings)
    unfinished = archive.with_suffix(f".{os.getpid()}")
    flags = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ArchiveClassesAtExit={unfinished}"
    session = build_session(settings, {"spark.driver.extraJavaOptions": flags, "spark.log.level": "OFF"})
    with tempfile.TemporaryDirectory() as folder:
        plain, table = f"{folder}/plain", f"{folder}/table"
        rows = session.range(1000).selectExpr("id", "id % 7 as line", "cast(id as decimal(38,18)) as billed")
        rows.write.parquet(plain)
        sums = session.read.parquet(plain).groupBy("line").agg({"billed": "sum"}).toDF("line", "billed")
        sums.join(rows, on="line", how="inner").drop("billed").write.format("delta").save(table)
        session.read.format("delta").load(table).orderBy("id").collect()
    jvm = session.sparkContext._gateway.proc if session.sparkContext._gateway else None
    session.stop()
    if jvm is not None:  # the archive is written as the JVM ends
        jvm.stdin.close()
        jvm.wait(timeout=300)
    if not unfinished.is_file():
        return 1
    for old in Path(settings.jars).glob("classes-*.jsa"):
        old.unlink()
    unfinished.rename(archive)
    return 0


if __name__ == "__main__":
    sys.exit(main())
