"""What the night's task makes of each end of a night, with a stand-in for the night.

Tests marked `real_spark_submit` start the JVM; the others are about what Airflow makes of an exit code.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from landing import Landing

HERE = Path(__file__).parent
DAY = datetime(2026, 11, 30, 12, tzinfo=UTC)

PUBLISHED = {
    "record": {
        "outcome": "published",
        "published": [{"source": "aws-main", "period": "2026-11", "delivery": "d1"}],
    },
    "exit": 0,
}
REFUSED = {
    "record": {
        "outcome": "refused",
        "published": [{"source": "aws-main", "period": "2026-11", "delivery": "d1"}],
        "refused": [
            {"source": "azure-main", "period": "2026-11", "delivery": "d2", "reason": "part 2 is missing"}
        ],
    },
    "exit": 2,
}
NOTHING_NEW = {"record": {"outcome": "nothing_new"}, "exit": 0}
CRASHED = {"record": {"outcome": "failed", "error": "no space left"}, "exit": 1}
KILLED = {"record": {"outcome": "running"}, "exit": "killed"}
DIED_BEFORE_A_RECORD = {"record": None, "exit": "killed"}
SAID_NOTHING = {"record": None, "exit": 0}
REFUSED_BEFORE_A_LAKE = {"record": None, "exit": 2}


@dataclass
class Night:
    """One run of the DAG: its states, what its attempts were called with, whom it told."""

    state: str
    tasks: dict[str, str]
    attempts: list[dict[str, Any]]
    told: list[Any]
    events: list[Any]
    outcome: dict[str, Any] | None
    run: str
    log: str


@pytest.fixture
def run_night(
    request: pytest.FixtureRequest,
    runnable: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Callable[..., Night]:
    """A function that runs the DAG once with the stand-in, attempt by attempt as planned."""
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

    from weighbridge import orchestration
    from weighbridge.wiring import share

    if "real_spark_submit" not in request.keywords:
        quick = [sys.executable, str(HERE / "quick_submit.py")]
        monkeypatch.setattr(SparkSubmitHook, "_get_spark_binary_path", lambda hook: list(quick))
    (tmp_path / "jobs").mkdir()
    shutil.copy(HERE / "stand_in.py", tmp_path / "jobs" / "run.py")
    monkeypatch.setattr(orchestration, "share", lambda: tmp_path)
    told: list[Any] = []
    monkeypatch.setattr(orchestration, "_by_email", lambda news, settings, context: told.append(news))
    monkeypatch.setenv("WEIGHBRIDGE_NOTIFY_EMAIL", "finance@example.com")
    for name, value in Landing(tmp_path).env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("STAND_IN_HOME", str(tmp_path))
    monkeypatch.setenv("STAND_IN_JOBS", str(share() / "jobs"))

    def run(*plan: dict[str, Any], conf: dict[str, Any] | None = None, day: datetime | None = DAY) -> Night:
        from airflow.models.asset import AssetEvent
        from airflow.utils.session import create_session
        from sqlalchemy import select

        monkeypatch.setenv("STAND_IN", json.dumps(plan))
        done = runnable.test(logical_date=day, run_conf=conf)
        tasks = {task.task_id: task for task in done.get_task_instances()}
        with create_session() as session:
            where = (AssetEvent.source_run_id == done.run_id) & (AssetEvent.timestamp >= done.start_date)
            found = session.scalars(select(AssetEvent).where(where)).all()
            events = [(event.asset.uri, event.extra) for event in found]
        return Night(
            state=str(done.state),
            tasks={name: f"{task.state} {task.try_number}" for name, task in tasks.items()},
            attempts=[json.loads(file.read_text()) for file in sorted(tmp_path.glob("attempt-*"))],
            told=told,
            events=events,
            outcome=tasks["night"].xcom_pull(task_ids="night", key="outcome"),
            run=f"attribute_costs/{done.run_id}",
            log="".join(capfd.readouterr()),
        )

    return run


@pytest.mark.real_spark_submit
def test_a_night_that_published_is_green_and_names_its_periods_on_every_asset(run_night: Any) -> None:
    night = run_night(PUBLISHED)
    assert (night.state, night.tasks) == ("success", {"night": "success 1", "announce": "success 1"})
    assert night.attempts[0]["arguments"] == ["night", "--run", night.run, "--day", "2026-11-29"]
    assert night.attempts[0]["python"] == sys.executable
    assert f"weighbridge night --run {night.run} --day 2026-11-29" in night.log
    assert night.outcome == {"run": night.run, "outcome": "published", "published": 1, "refused": 0}
    assert {uri for uri, _ in night.events} == {
        f"weighbridge://lake/{name}"
        for name in (
            "charges", "daily_costs", "monthly_cost", "cost_by_business_line", "cost_by_model_version",
            "cost_by_region", "tag_coverage",
        )
    }  # fmt: skip
    assert night.events[0][1] == {
        "run": night.run,
        "periods": [{"source": "aws-main", "period": "2026-11"}],
    }
    assert night.told == []


def test_a_night_without_news_is_green_and_sets_off_no_asset(run_night: Any) -> None:
    night = run_night(NOTHING_NEW)
    assert (night.state, night.tasks) == ("success", {"night": "success 1", "announce": "skipped 1"})
    assert night.events == []


@pytest.mark.real_spark_submit
def test_a_refusal_is_red_at_once_and_told_while_what_was_published_is_announced(run_night: Any) -> None:
    night = run_night(REFUSED)
    assert (night.state, night.tasks) == ("failed", {"night": "failed 1", "announce": "success 1"})
    assert len(night.events) == 7
    assert "Running it again cannot help" in night.log
    (news,) = night.told
    assert news.outcome == "refused"
    assert news.what[0] == "refused azure-main 2026-11 (delivery d2): part 2 is missing"


@pytest.mark.parametrize("first", [CRASHED, KILLED, DIED_BEFORE_A_RECORD, SAID_NOTHING])
def test_a_night_that_died_is_tried_again_and_told_to_nobody_when_that_helps(
    run_night: Any, first: dict[str, Any]
) -> None:
    night = run_night(first, PUBLISHED)
    assert (night.state, night.tasks) == ("success", {"night": "success 2", "announce": "success 1"})
    assert night.told == []


def test_an_earlier_attempts_record_never_stands_for_a_later_attempt(run_night: Any) -> None:
    published_then_crashed = {**PUBLISHED, "exit": 1}
    night = run_night(published_then_crashed, DIED_BEFORE_A_RECORD, SAID_NOTHING)
    assert (night.state, night.tasks["night"]) == ("failed", "failed 3")
    assert [news.outcome for news in night.told] == ["failed"]


@pytest.mark.real_spark_submit
def test_a_night_that_keeps_dying_is_red_after_three_attempts_and_told_once(run_night: Any) -> None:
    night = run_night(KILLED, CRASHED, CRASHED)
    assert (night.state, night.tasks) == ("failed", {"night": "failed 3", "announce": "skipped 1"})
    (news,) = night.told
    assert (news.outcome, news.what) == ("failed", ("error: no space left",))


def test_a_refusal_before_there_is_a_lake_is_not_tried_again(run_night: Any) -> None:
    assert run_night(REFUSED_BEFORE_A_LAKE).tasks["night"] == "failed 1"


def test_a_night_with_warnings_is_green_and_told(run_night: Any) -> None:
    record = {**PUBLISHED["record"], "warnings": ["tag coverage fell from 96 % to 81 %"]}
    night = run_night({"record": record, "exit": 0})
    assert night.state == "success"
    (news,) = night.told
    assert news.what[0] == "warning: tag coverage fell from 96 % to 81 %"


def test_the_form_reads_one_past_period_again_and_has_no_day(run_night: Any) -> None:
    night = run_night(PUBLISHED, conf={"source": "aws-main", "period": "2026-03"}, day=None)
    wanted = ["night", "--run", night.run, "--source", "aws-main", "--period", "2026-03"]
    assert night.attempts[0]["arguments"] == wanted


@pytest.mark.parametrize(
    ("conf", "says"),
    [
        ({"sorce": "aws-main"}, "the form has no field sorce; it has source, period"),
        ({"source": "aws-main"}, "give both source and period"),
        (
            {"source": "aws-typo", "period": "2026-03"},
            "no source 'aws-typo' in policy/sources.yaml; known: aws-main",
        ),
    ],
)
def test_a_wrong_form_is_refused_before_spark_starts(run_night: Any, conf: dict[str, str], says: str) -> None:
    night = run_night(conf=conf)
    assert night.tasks["night"] == "failed 1"
    assert night.attempts == []
    assert says in night.log


def test_a_missing_spark_connection_is_refused_instead_of_becoming_yarn(
    run_night: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_SPARK_DEFAULT")
    night = run_night()
    assert night.tasks["night"] == "failed 1"
    assert "there is no connection 'spark_default': set AIRFLOW_CONN_SPARK_DEFAULT" in night.log


def test_no_secret_of_the_environment_stands_in_the_log(
    run_night: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "do-not-show-me")
    monkeypatch.setenv("WEIGHBRIDGE_S3_ENDPOINT", "http://127.0.0.1:1")
    night = run_night(PUBLISHED)
    assert night.state == "success"
    assert "spark.hadoop.fs.s3a.endpoint" in night.log
    assert "do-not-show-me" not in night.log
