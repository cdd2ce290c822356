"""The nightly DAG in `dag.test()` with the night itself: real Spark, a real lake, a sample bill."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from landing import PERIOD, Landing
from weighbridge.adapters.files import FolderStore
from weighbridge.adapters.runs import read_run

# A whole night for each: minutes on two cores.
pytestmark = pytest.mark.proof


@pytest.fixture
def landing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Landing:
    place = Landing(tmp_path)
    for name, value in place.env.items():
        monkeypatch.setenv(name, value)
    return place


def billed(landing: Landing) -> Decimal:
    """Exact sum of billed_cost in the published charges, without what was rounded away."""
    charges = DeltaTable(str(landing.home / "lake" / "charges")).to_pyarrow_table(columns=["billed_cost"])
    return sum(charges["billed_cost"].to_pylist(), Decimal(0))


def test_the_dag_publishes_a_bill_and_its_form_reads_it_again_to_the_same_digit(
    landing: Landing, runnable: Any
) -> None:
    landing.deliver()
    first = runnable.test(logical_date=datetime(2026, 11, 30, 12, tzinfo=UTC))
    record = read_run(FolderStore(str(landing.home / "lake")), f"attribute_costs/{first.run_id}")
    assert first.state == "success"
    assert record is not None
    assert [(note.source, note.period) for note in record.published] == [("aws-main", PERIOD)]
    told = json.loads(landing.told)["totals"]["USD"]["billed"]
    total = billed(landing)
    assert abs(total - Decimal(told)) < Decimal("0.000000000001")

    again = runnable.test(logical_date=None, run_conf={"source": "aws-main", "period": PERIOD})
    assert again.state == "success"
    assert billed(landing) == total
