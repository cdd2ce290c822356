"""The DAGs as they are loaded: which there are, what they promise, what parsing them costs."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = Path(__file__).parents[2]

HEAVY = ("pyspark", "delta", "deltalake", "great_expectations", "dbt", "pyarrow.dataset", "duckdb")


def test_exactly_these_dags_load_without_an_error(dag_bag: Any) -> None:
    assert not dag_bag.import_errors
    assert set(dag_bag.dags) == {"attribute_costs"}


def test_every_task_is_a_weighbridge_command_or_the_announcement(dag_bag: Any) -> None:
    from weighbridge.cli import COMMANDS

    for dag in dag_bag.dags.values():
        commands = {task.task_id: getattr(task, "command", None) for task in dag.tasks}
        assert commands.pop("announce", None) is None
        assert commands
        assert set(commands.values()) <= set(COMMANDS)


def test_every_argument_of_a_task_is_an_option_of_its_command(dag_bag: Any) -> None:
    import click

    from weighbridge.cli import main

    for dag in dag_bag.dags.values():
        for task in dag.tasks:
            if task.task_id != "announce":
                command = main.get_command(click.Context(main), task.command)
                options = {parameter.name for parameter in command.params}
                assert set(task.arguments) <= options


def test_nights_do_not_overlap_and_none_is_made_up_for_the_past(attribute_costs: Any) -> None:
    night = attribute_costs.get_task("night")
    assert attribute_costs.max_active_runs == 1
    assert attribute_costs.catchup is False
    assert (night.pool, night.pool_slots) == ("spark", 1)


def test_a_night_is_tried_three_times_with_growing_pauses() -> None:
    from weighbridge.orchestration import spark_step

    night = spark_step("night", run="r")
    assert (night.retries, night.retry_delay, night.retry_exponential_backoff) == (2, timedelta(minutes=5), 3)


def test_a_nightly_run_has_the_whole_day_before_as_its_data_interval(attribute_costs: Any) -> None:
    from airflow.serialization.encoders import coerce_to_core_timetable
    from airflow.timetables.base import TimeRestriction

    timetable = coerce_to_core_timetable(attribute_costs.timetable)
    first = timetable.next_dagrun_info(
        last_automated_data_interval=None,
        restriction=TimeRestriction(earliest=datetime(2026, 11, 29, tzinfo=UTC), latest=None, catchup=True),
    )
    assert first.data_interval.start == datetime(2026, 11, 29, 2, tzinfo=UTC)
    assert first.data_interval.end == datetime(2026, 11, 30, 2, tzinfo=UTC)
    assert first.run_after == first.data_interval.end


def test_a_night_is_late_after_three_hours(attribute_costs: Any) -> None:
    (deadline,) = attribute_costs.deadline
    assert deadline.interval == timedelta(hours=3)
    assert deadline.callback.path == "weighbridge.orchestration.Tell"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("source", "aws-main; rm -rf /"),
        ("source", "--help"),
        ("source", "AWS"),
        ("source", "aws\n"),
        ("period", "2026-13"),
        ("period", "2026-1"),
        ("period", "2026-01\n"),
        ("period", "{{ 1 }}"),
    ],
)
def test_the_form_takes_no_other_text_than_a_name_and_a_month(
    attribute_costs: Any, field: str, value: str
) -> None:
    from airflow.sdk.exceptions import ParamValidationError

    with pytest.raises(ParamValidationError):
        attribute_costs.params.get_param(field).resolve(value)


def test_the_form_takes_a_source_and_a_month_or_nothing(attribute_costs: Any) -> None:
    assert attribute_costs.params.get_param("source").resolve("aws-main") == "aws-main"
    assert attribute_costs.params.get_param("period").resolve("2026-01") == "2026-01"
    assert attribute_costs.params.get_param("period").resolve(None) is None


def test_parsing_the_dags_imports_no_spark_and_reads_no_setting(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        f"for dag in sorted(__import__('pathlib').Path({str(CHECKOUT / 'dags')!r}).glob('*.py')):\n"
        "    exec(compile(dag.read_text(), dag.name, 'exec'), {'__name__': dag.stem, '__doc__': ''})\n"
        f"loaded = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "assert not loaded, loaded\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": str(CHECKOUT / "jobs"),
            "AIRFLOW_HOME": str(tmp_path),
            "WEIGHBRIDGE_COMET": "nonsense",  # who reads this is refused
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
