"""The wheel, installed where no checkout is: a night in an empty folder, by the command and by spark-submit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from weighbridge.adapters.files import FolderStore
from weighbridge.adapters.runs import read_run
from weighbridge.billing.runs import RunRecord
from weighbridge.tables import MARTS, TABLES, Table
from weighbridge.wiring import Settings

CHECKOUT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
PERIOD = "2026-11"
OF_IT = ("--source", "aws-main", "--period", PERIOD)
SHIPPED = ("dags", "models", "sql", "tests/dbt")
SHIPPED_FILES = ("dbt_project.yml", "infra/dbt/profiles.yml", "infra/spark/jars.lock", "jobs/run.py")


@dataclass(frozen=True)
class Installed:
    """A wheel, a Python that has it and the locked packages, and an empty folder to work in."""

    wheel: Path
    python: Path
    place: Path

    @property
    def env(self) -> dict[str, str]:
        """All that a process of it knows: nothing of the checkout."""
        return {
            "PATH": os.pathsep.join([str(self.python.parent), "/usr/bin", "/bin"]),
            **{name: os.environ[name] for name in ("JAVA_HOME",) if name in os.environ},
            "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # short lives: one compiler is enough
            "WEIGHBRIDGE_JARS": Settings.from_environment({}).jars,
            "WEIGHBRIDGE_LAKE": "lake",
            "WEIGHBRIDGE_POLICY": str(self.package / "policy"),
            "WEIGHBRIDGE_SPARK_MASTER": "local[2]",
            "PYSPARK_PYTHON": str(self.python),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }

    @property
    def package(self) -> Path:
        """Where the wheel's package lies."""
        return next(self.python.parents[1].glob("lib/python3*/site-packages/weighbridge"))

    def run(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        """What a process came to that was started in the empty folder."""
        return subprocess.run(
            list(map(str, command)), cwd=self.place, env=self.env, capture_output=True, text=True, timeout=600
        )

    def weighbridge(self, *arguments: str) -> Any:
        """The JSON answer of a command that ends well."""
        done = self.run(self.python.with_name("weighbridge"), *arguments, "--json")
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout)

    def record(self, run: str) -> RunRecord:
        """What a night left in the lake; spark-submit mixes what it prints with what is told meanwhile."""
        found = read_run(FolderStore(str(self.place / "lake")), run)
        assert found is not None
        return found

    def submit(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command by spark-submit, with the settings that the DAG hands it."""
        code = (
            "import json; from weighbridge.wiring import Settings, spark_conf; "
            "print(json.dumps(spark_conf(Settings.from_environment())))"
        )
        conf = json.loads(self.run(self.python, "-c", code).stdout)
        options = [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
        application = self.package / "share" / "jobs" / "run.py"
        return self.run(BIN / "spark-submit", "--master", "local[2]", *options, application, *arguments)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """This checkout's wheel in a Python of its own, which finds the locked packages but not the checkout."""
    home = tmp_path_factory.mktemp("wheel")
    (home / "place").mkdir()

    def do(*command: str | Path) -> None:
        subprocess.run(list(map(str, command)), cwd=home, check=True, capture_output=True, timeout=300)

    do(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", home, CHECKOUT)
    (wheel,) = home.glob("*.whl")
    do(sys.executable, "-m", "venv", "--without-pip", home / "venv")
    python = home / "venv" / "bin" / "python"
    # The folder alone: what it links to (the checkout, editable) is not followed from another one.
    (site,) = (home / "venv").glob("lib/python3*/site-packages")
    (site / "locked_packages.pth").write_text(sysconfig.get_path("purelib") + "\n")
    do(BIN / "uv", "pip", "install", "--offline", "--no-deps", "--python", python, wheel)
    return Installed(wheel, python, home / "place")


@pytest.fixture(scope="module")
def after_a_night(installed: Installed) -> Any:
    """What a night said that took one sample bill, with the policy that the wheel carries."""
    installed.weighbridge(
        "sample-bill", "--format", "cur2", "--rows", "120", "--period", PERIOD, "--out", "bills/aws-main"
    )
    return installed.weighbridge("night", "--run", "first")


def test_the_wheel_carries_every_file_that_a_night_and_the_scheduler_need(installed: Installed) -> None:
    wanted = {file for folder in SHIPPED for file in (CHECKOUT / folder).rglob("*") if file.is_file()}
    wanted = {file for file in wanted if "__pycache__" not in file.parts and file.name != ".keep"}
    assert {file.suffix for file in wanted} >= {".py", ".sql", ".yml"}
    names = set(zipfile.ZipFile(installed.wheel).namelist())
    lacking = {str(file.relative_to(CHECKOUT)) for file in wanted}.union(SHIPPED_FILES)
    assert {name for name in lacking if f"weighbridge/share/{name}" not in names} == set()
    assert not [name for name in names if "__pycache__" in name]


def test_what_is_imported_is_the_wheel_and_not_the_checkout(installed: Installed) -> None:
    done = installed.run(
        installed.python, "-c", "import sys, weighbridge; print(weighbridge.__file__, sys.path)"
    )
    assert done.stdout.startswith(str(installed.package)), done.stdout + done.stderr
    assert str(CHECKOUT / "jobs") not in done.stdout


def test_a_night_of_the_wheel_in_an_empty_folder_ties_in_every_layer(
    installed: Installed, after_a_night: Any
) -> None:
    assert after_a_night["outcome"] == "published"
    totals = installed.weighbridge("totals", *OF_IT)
    assert totals["behind"] == []
    assert {"ledger", "charges", "daily_costs", "monthly_cost", "cost_by_region"} <= set(totals["layers"])
    sums = {layer: found["USD"] for layer, found in totals["layers"].items()}
    assert all(found == sums["charges"] for found in sums.values()), sums
    assert sums["charges"]["billed"] is not None


def test_finance_gets_an_answer_from_the_wheel(installed: Installed, after_a_night: Any) -> None:
    answer = installed.weighbridge("query", "who_spends_most", "--param", f"period={PERIOD}")
    lines = [row["business_line"] for row in answer["rows"]]
    assert "Search" in lines


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_table_of_the_lake_says_its_grain_its_columns_and_how_long_it_keeps_versions(
    installed: Installed, after_a_night: Any, table: Table
) -> None:
    made = DeltaTable(str(installed.place / "lake" / table.name))
    assert made.metadata().description == table.grain
    said = {field.name: field.metadata.get("comment") for field in made.schema().fields}
    assert said == {column.name: column.says for column in table.columns}
    days = 35 if table.name == "charges" else 400
    kept = made.metadata().configuration
    assert kept["delta.logRetentionDuration"] == f"interval {days} days"
    assert kept["delta.deletedFileRetentionDuration"] == f"interval {days} days"
    assert made.metadata().partition_columns == list(table.partition_by)


@pytest.mark.parametrize("name", [*(table.name for table in TABLES), *MARTS])
def test_no_table_or_mart_of_the_lake_holds_a_binary_fraction(
    installed: Installed, after_a_night: Any, name: str
) -> None:
    made = DeltaTable(str(installed.place / "lake" / name)).schema()
    assert made.fields
    assert [word for word in ("float", "double") if f'"{word}"' in made.to_json()] == []


def test_spark_submit_of_the_wheel_finds_nothing_new_and_then_refuses_a_damaged_delivery(
    installed: Installed, after_a_night: Any
) -> None:
    second = installed.submit("night", "--run", "second")
    assert second.returncode == 0, second.stderr[-3000:]
    assert installed.record("second").outcome == "nothing_new"

    bill = ("sample-bill", "--format", "cur2", "--rows", "120", "--period", PERIOD, "--out", "bills/aws-main")
    again = installed.weighbridge(*bill, "--again")
    part = installed.place / again["files"][0]["path"]
    part.write_bytes(part.read_bytes()[:-100])
    third = installed.submit("night", "--run", "third")
    assert third.returncode == 2, third.stderr[-3000:]
    record = installed.record("third")
    assert record.outcome == "refused"
    assert [part.name in note.reason for note in record.refused] == [True]
