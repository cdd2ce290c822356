"""The nightly DAG on a real Airflow: four processes, a true schedule, the REST API, and Spark."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import urllib.error
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from landing import PERIOD, Landing

CHECKOUT = Path(__file__).parents[2]
sys.path.insert(0, str(CHECKOUT / "infra" / "airflow"))

from airflow_stack import AirflowStack, free_ports  # noqa: E402  # a script beside the start script, no package

# A whole night for each: minutes on two cores.
pytestmark = pytest.mark.proof

DAG = "/api/v2/dags/attribute_costs"
NIGHT_S = 300


class Webhook(ThreadingHTTPServer):
    """A web server that remembers what it was told."""

    def __init__(self) -> None:
        """Listens on a free port of 127.0.0.1."""
        self.told: list[dict[str, Any]] = []
        super().__init__(("127.0.0.1", 0), _Remember)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Remember(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        """Keeps the JSON document."""
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.told.append(json.loads(body))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *arguments: Any) -> None:
        """Says nothing."""


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> Landing:
    return Landing(tmp_path_factory.mktemp("night"))


@pytest.fixture(scope="module")
def webhook() -> Iterator[Webhook]:
    server = Webhook()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def stack(
    landing: Landing, webhook: Webhook, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AirflowStack]:
    """A running Airflow over the landing; its DAG is the project's, but late after seconds."""
    dags = tmp_path_factory.mktemp("dags")
    text = (CHECKOUT / "dags" / "attribute_costs.py").read_text()
    assert "late_after_h=3" in text
    (dags / "attribute_costs.py").write_text(text.replace("late_after_h=3", "late_after_h=0.002"))
    hook = {"conn_type": "http", "schema": "http", "host": "127.0.0.1", "port": webhook.server_port}
    env = _plain_environment() | landing.env
    env |= {"WEIGHBRIDGE_NOTIFY_WEBHOOK_CONN": "finance_hook", "AIRFLOW_CONN_FINANCE_HOOK": json.dumps(hook)}
    home = tmp_path_factory.mktemp("airflow")
    airflow = AirflowStack(home=home, dags=dags, env=env, port=free_ports(1)[0])
    try:
        airflow.prepare()
        airflow.start(within_s=180)
        yield airflow
    finally:
        airflow.stop()
        assert airflow.alive() == []


def _plain_environment() -> dict[str, str]:

    return {
        name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "WEIGHBRIDGE"))
    }


def wait_for(what: str, look: Any, within_s: float) -> Any:
    """What `look` finds, as soon as it finds something."""
    until = time.monotonic() + within_s
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < until, f"{what}: not within {within_s:.0f} s"
        time.sleep(1)


def finished_run(stack: AirflowStack, run_id: str) -> dict[str, Any]:
    """The run when it is over; on the way, a part of Airflow that ended fails the test."""

    def look() -> Any:
        for part, process in stack.processes.items():
            assert process.poll() is None, f"{part} ended; logs in {stack.home}\n{stack.tail(part)}"
        if task(stack, run_id, "night")["state"] == "up_for_retry":
            raise AssertionError("\n".join(log(stack, run_id, "night")[-60:]))
        run = stack.call("GET", f"{DAG}/dagRuns/{quote(run_id)}")
        return run if run["state"] in ("success", "failed") else None

    return wait_for(f"the end of {run_id}", look, NIGHT_S)


def task(stack: AirflowStack, run_id: str, name: str) -> dict[str, Any]:
    """A task of a run, as the API describes it."""
    return stack.call("GET", f"{DAG}/dagRuns/{quote(run_id)}/taskInstances/{name}")


def log(stack: AirflowStack, run_id: str, name: str, attempt: int = 1) -> list[str]:
    """The lines that a task's attempt logged."""
    path = f"{DAG}/dagRuns/{quote(run_id)}/taskInstances/{name}/logs/{attempt}"
    return [line["event"] for line in stack.call("GET", path)["content"] if isinstance(line, dict)]


def events(stack: AirflowStack, run_id: str) -> dict[str, Any]:
    """Asset events of a run: address → what it carries."""
    found = stack.call("GET", f"/api/v2/assets/events?source_run_id={quote(run_id)}&limit=100")
    return {event["uri"]: event["extra"] for event in found["asset_events"]}


def test_a_scheduled_night_publishes_the_bill_of_the_day_before(
    stack: AirflowStack, landing: Landing, webhook: Webhook
) -> None:
    landing.deliver()
    wait_for("the DAG", lambda: _dag(stack), 60)
    stack.call("PATCH", DAG, {"is_paused": False})
    runs = wait_for("a run", lambda: stack.call("GET", f"{DAG}/dagRuns")["dag_runs"], 60)
    run_id = runs[0]["dag_run_id"]
    run = finished_run(stack, run_id)
    lines = log(stack, run_id, "night")
    assert run["state"] == "success", "\n".join(lines[-60:])
    assert run["run_type"] == "scheduled"
    day = run["data_interval_start"][:10]
    assert run["data_interval_start"][11:16] == run["data_interval_end"][11:16] == "02:00"
    ours = [line for line in lines if line.startswith("weighbridge ")]
    assert ours[0] == f"weighbridge night --run attribute_costs/{run_id} --day {day}"
    found = events(stack, run_id)
    assert found["weighbridge://lake/charges"]["periods"] == [{"source": "aws-main", "period": PERIOD}]
    assert len(found) == 7
    told = [news["outcome"] for news in webhook.told if news["run"] == f"attribute_costs/{run_id}"]
    assert "is late" in told
    assert "failed" not in told


def _dag(stack: AirflowStack) -> Any:
    try:
        return stack.call("GET", DAG)
    except urllib.error.HTTPError as missing:
        if missing.code != 404:
            raise
        return None


def test_a_damaged_delivery_makes_a_red_night_at_the_first_attempt_and_tells(
    stack: AirflowStack, landing: Landing, webhook: Webhook
) -> None:
    part = landing.deliver(again=True)
    part.unlink()
    run_id = "asked-for-by-a-test"
    stack.call("POST", f"{DAG}/dagRuns", {"logical_date": None, "dag_run_id": run_id, "conf": {}})
    run = finished_run(stack, run_id)
    night = task(stack, run_id, "night")
    text = "\n".join(log(stack, run_id, "night"))
    assert (run["state"], night["state"], night["try_number"]) == ("failed", "failed", 1), text[-4000:]
    assert part.name in text
    assert events(stack, run_id) == {}
    news = wait_for("the news", lambda: [one for one in webhook.told if one["outcome"] == "refused"], 30)
    assert news[0]["run"] == f"attribute_costs/{run_id}"
    assert part.name in news[0]["what"][0]


def test_a_form_with_a_wrong_month_is_refused_by_the_api(stack: AirflowStack) -> None:
    body = {"logical_date": None, "conf": {"source": "aws-main", "period": "2026-13"}}
    with pytest.raises(urllib.error.HTTPError) as refused:
        stack.call("POST", f"{DAG}/dagRuns", body)
    assert refused.value.code == 400
