"""An Airflow of the tests' own: its home, database and settings stand before anything imports Airflow."""

from __future__ import annotations

import json
import os
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = Path(__file__).parents[2]

_home = tempfile.TemporaryDirectory(prefix="weighbridge-airflow-")
os.environ |= {
    "AIRFLOW_HOME": _home.name,
    "AIRFLOW__CORE__DAGS_FOLDER": str(CHECKOUT / "dags"),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
    "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
}


@pytest.fixture(scope="session")
def airflow_database() -> None:
    """An empty Airflow database, made once."""
    from airflow.utils.db import initdb

    initdb()


@pytest.fixture(scope="session")
def dag_bag(airflow_database: None) -> Any:
    """Every DAG of the project, really loaded."""
    from airflow.dag_processing.dagbag import DagBag

    return DagBag(str(CHECKOUT / "dags"))


@pytest.fixture
def attribute_costs(dag_bag: Any) -> Any:
    """The nightly DAG."""
    return dag_bag.dags["attribute_costs"]


@pytest.fixture
def runnable(airflow_database: None) -> Any:
    """The nightly DAG for `dag.test()`: retries do not wait, and no deadline stands.

    `dag.test()` of Airflow 3.3 looks a deadline up by an id that only a stored DAG has; the deadline is
    tested on the real scheduler.
    """
    from airflow.dag_processing.dagbag import DagBag

    dag = DagBag(str(CHECKOUT / "dags")).dags["attribute_costs"]
    dag.deadline = None
    for task in dag.tasks:
        task.retry_delay, task.retry_exponential_backoff = timedelta(0), 0
    return dag
