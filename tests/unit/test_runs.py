"""The run record: written whole, read as written, one name per run."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from weighbridge.adapters.files import FolderStore
from weighbridge.adapters.runs import DeliveryNote, RunRecord, read_run, run_key, run_mark, write_run
from weighbridge.errors import Refused

RUN = "attribute_costs/scheduled__2026-11-30T02:00:00+00:00"
RECORD = RunRecord(
    run=RUN,
    outcome="refused",
    started_at=datetime(2026, 11, 30, 2, 0, 1, 5, tzinfo=UTC),
    finished_at=datetime(2026, 11, 30, 2, 4, tzinfo=UTC),
    published=(DeliveryNote("aws-main", "2026-10", "d1"), DeliveryNote("aws-main", "2026-10", "d2")),
    refused=(DeliveryNote("azure-main", None, "d3", "part 2 of 3 is missing"),),
    warnings=("tag coverage fell from 96 % to 81 %",),
    late=("aws-main: nothing since 2026-11-27",),
    versions={"charges": 4},
)


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    store = FolderStore(str(tmp_path))
    write_run(store, RECORD)
    assert read_run(store, RUN) == RECORD


def test_a_run_that_wrote_nothing_has_no_record(tmp_path: Path) -> None:
    assert read_run(FolderStore(str(tmp_path)), RUN) is None


def test_the_mark_changes_with_every_write_of_a_record(tmp_path: Path) -> None:
    store = FolderStore(str(tmp_path))
    marks = [run_mark(store, RUN)]
    for minute in range(3):
        write_run(store, replace(RECORD, finished_at=datetime(2026, 11, 30, 3, minute, tzinfo=UTC)))
        marks.append(run_mark(store, RUN))
    assert marks[0] is None
    assert len(set(marks)) == 4


@pytest.mark.parametrize("run", ["../../etc/passwd", "a/b:c+d", "", "..", "é\n%2F", "x" * 4000])
def test_any_run_name_is_one_short_file_under_the_runs_folder(run: str, tmp_path: Path) -> None:
    write_run(FolderStore(str(tmp_path)), replace(RECORD, run=run))
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    assert file.parent == tmp_path / "_weighbridge" / "runs"
    assert len(file.name) < 160


def test_two_runs_never_share_a_record() -> None:
    names = ["a/b", "a:b", "a-b", "a b", "x" * 150, "x" * 151]
    assert len({run_key(name) for name in names}) == len(names)


def test_a_damaged_record_is_refused_and_names_the_way_out(tmp_path: Path) -> None:
    store = FolderStore(str(tmp_path))
    store.write(run_key(RUN), b'{"run": "x", "outcome": "perhaps"}')
    with pytest.raises(Refused, match="delete it"):
        read_run(store, RUN)


def test_a_period_published_twice_in_a_run_is_named_once() -> None:
    assert RECORD.published_periods() == [{"source": "aws-main", "period": "2026-10"}]


def test_a_person_reads_what_was_refused_first_with_its_reason() -> None:
    assert RECORD.lines()[0] == "refused azure-main of unknown period (delivery d3): part 2 of 3 is missing"
