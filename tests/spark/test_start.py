"""What is refused before anything is read: a newer lake, and a Spark that would hide damaged files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from landing import Landing
from weighbridge.adapters.files import FolderStore
from weighbridge.adapters.lake import MARKER, DeltaLake
from weighbridge.cli import run
from weighbridge.errors import LakeTooNew
from weighbridge.tables import LAKE_FORMAT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def newer_lake(root: Path) -> Path:
    """A lake that the next format's program made."""
    marker = root / MARKER
    marker.parent.mkdir(parents=True)
    marker.write_text(json.dumps({"format": LAKE_FORMAT + 1}))
    return root


def files(root: Path) -> dict[str, bytes]:
    """Everything under a folder."""
    return {str(file.relative_to(root)): file.read_bytes() for file in root.rglob("*") if file.is_file()}


def test_a_newer_lake_is_refused_and_nothing_is_written(spark: SparkSession, tmp_path: Path) -> None:
    root = newer_lake(tmp_path / "lake")
    before = files(tmp_path)
    spark.sql("DROP DATABASE IF EXISTS weighbridge CASCADE")
    with pytest.raises(
        LakeTooNew, match=f"format {LAKE_FORMAT + 1}.*up to {LAKE_FORMAT}.*upgrade weighbridge"
    ):
        DeltaLake(spark, FolderStore(str(root)), {}).open()
    assert files(tmp_path) == before


def test_a_night_on_a_newer_lake_is_refused_and_leaves_only_its_own_record(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    landing = Landing(tmp_path)
    landing.deliver()
    for name, value in landing.env.items():
        monkeypatch.setenv(name, value)
    root = newer_lake(tmp_path / "lake")
    before = files(tmp_path)
    with pytest.raises(LakeTooNew):
        run("night", run="too-old")
    after = files(tmp_path)
    assert {name: after.get(name) for name in before} == before
    (record,) = after.keys() - before.keys()
    assert record.startswith(str(root.relative_to(tmp_path) / "_weighbridge" / "runs"))
    assert json.loads(after[record])["outcome"] == "refused"


STARTS = """
from weighbridge.errors import Refused
from weighbridge.wiring import Settings, build_session
for extra in ({}, {"spark.sql.files.ignoreCorruptFiles": "true"}):
    try:
        build_session(Settings.from_environment(), extra)
    except Refused as error:
        print(error)
    else:
        print("a session was made")
"""


def test_a_spark_that_would_skip_damaged_or_missing_files_is_refused_at_start(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.sql.files.ignoreMissingFiles true\n")
    env = {
        "SPARK_CONF_DIR": str(tmp_path),
        "WEIGHBRIDGE_COMET": "off",
        "WEIGHBRIDGE_SPARK_MASTER": "local[1]",
    }
    paths = os.pathsep.join(path for path in sys.path if path)
    started = subprocess.run(
        [sys.executable, "-c", STARTS],
        env={**os.environ, **env, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    said = started.stdout.splitlines()
    assert len(said) == 2, started.stderr
    for line, name in zip(said, ("ignoreMissingFiles", "ignoreCorruptFiles"), strict=True):
        assert line.startswith(f"spark.sql.files.{name} is true: damaged bill files would be skipped")
