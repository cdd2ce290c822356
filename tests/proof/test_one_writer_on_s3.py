"""One writer per lake on S3: a dead holder is taken over after its lifetime, and one that awakes commits nothing."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from proof import nights, tables
from proof.on_s3 import Bucket
from weighbridge.adapters.lease import LIFETIME_S, RECORD, ROUNDING_S

if TYPE_CHECKING:
    from pathlib import Path

    from proof.nights import Process
    from proof.report import Report
    from s3_server import S3Server

pytest_plugins = ("s3_server",)

pytestmark = pytest.mark.proof

LONGER_THAN_IT_LIVES_S = LIFETIME_S + ROUNDING_S + 2


@pytest.fixture
def bucket(s3_server: S3Server, tmp_path: Path) -> Bucket:
    """A place of its own with one delivery that has landed."""
    made = Bucket(s3_server, tmp_path.name, tmp_path)
    made.set_up()
    made.deliver()
    return made


@pytest.fixture(scope="module")
def in_a_folder(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Digests of the tables after one undisturbed night on the same bill, in a folder."""
    home = tmp_path_factory.mktemp("in-a-folder")
    nights.write_policy(home / "policy", str(home / "bills"))
    nights.deliver(home / "bills")
    env = {"WEIGHBRIDGE_LAKE": str(home / "lake"), "WEIGHBRIDGE_POLICY": str(home / "policy")}
    assert nights.night_in_this_process(env, "in-a-folder").code == 0
    return tables.digests(str(home / "lake"))


def test_a_holder_killed_on_s3_is_taken_over_after_its_lifetime(
    bucket: Bucket, in_a_folder: dict[str, str], start: Callable[..., Process], report: Report
) -> None:
    with report.case(
        "on S3: holder killed at *stage*; the next comes at once, and again after 2 minutes"
    ) as row:
        holder = start(bucket.env, "night", "--run", "killed")
        holder.wait_for_phase("stage")
        holder.kill()
        killed_at = time.monotonic()
        at_once = refused_by_the_lease(bucket, "at-once")
        assert "run killed" in at_once
        assert "since " + held(bucket)["since"] in at_once
        time.sleep(max(0.0, killed_at + LONGER_THAN_IT_LIVES_S - time.monotonic()))
        later = bucket.weighbridge("night", "--run", "later", "--json")
        assert (later.code, later.data["outcome"]) == (0, "published"), later.err
        row.then = "at once: left, naming run and begin; after the lifetime: took over and published"
        row.identical = tables.digests(bucket.lake, bucket.options) == in_a_folder
        assert row.identical


@pytest.mark.parametrize("phase", ["prove", "commit charges", "commit daily_costs"])
def test_a_holder_that_stood_still_for_longer_commits_nothing_when_it_awakes(
    phase: str,
    bucket: Bucket,
    in_a_folder: dict[str, str],
    start: Callable[..., Process],
    report: Report,
) -> None:
    with report.case(
        f"on S3: holder stopped at *{phase}* for longer than its lease, another ran, SIGCONT"
    ) as row:
        stale = start(bucket.env, "night", "--run", "stale", "--json")
        stale.wait_for_phase(phase)
        stale.stop()
        time.sleep(LONGER_THAN_IT_LIVES_S)
        other = bucket.weighbridge("night", "--run", "other", "--json")
        assert (other.code, other.data["outcome"]) == (0, "published"), other.err
        before = tables.versions(bucket.lake, bucket.options)
        stale.go_on()
        said = stale.answer()
        assert said.code == 1, said.err
        assert tables.versions(bucket.lake, bucket.options) == before
        row.then = f"the other published; the stale one ended with 1: {why(said.data['error'], bucket)}"
        row.identical = tables.digests(bucket.lake, bucket.options) == in_a_folder
        assert row.identical


def refused_by_the_lease(bucket: Bucket, run: str) -> str:
    """What a night says that finds the lake held; it has to change nothing."""
    before = tables.versions(bucket.lake, bucket.options)
    said = bucket.weighbridge("night", "--run", run, "--json")
    assert (said.code, said.data["kind"]) == (1, "LeaseHeld"), said.err
    assert tables.versions(bucket.lake, bucket.options) == before
    return str(said.data["error"])


def held(bucket: Bucket) -> dict[str, Any]:
    """The lease's record as it is now."""
    return dict(json.loads(bucket.server.contents(f"{bucket.prefix}/lake/{RECORD}")[""]))


def why(error: str, bucket: Bucket) -> str:
    """The first sentence of an error, without the place of this test."""
    return error.replace(bucket.lake, "the lake").split("; ")[0]
