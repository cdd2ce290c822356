"""The whole program on a real S3 server: bills, policy, lake and archive lie there, and nothing in a folder."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from proof import nights, tables
from proof.nights import PERIOD, SOURCE, Answered
from proof.on_s3 import Bucket

if TYPE_CHECKING:
    from s3_server import S3Server

pytest_plugins = ("s3_server",)


@dataclass(frozen=True)
class FirstNight:
    """A night on S3 that has ended, and what the generator told of its bill."""

    bucket: Bucket
    told: dict[str, Any]
    said: Answered

    @property
    def billed(self) -> str:
        """The generator's exact sum."""
        return str(self.told["totals"]["USD"]["billed"])


@pytest.fixture(scope="module")
def first_night(s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> FirstNight:
    """One night on S3, from an empty lake."""
    bucket = Bucket(s3_server, "whole", tmp_path_factory.mktemp("on-s3"))
    bucket.set_up()
    told = bucket.deliver()
    said = bucket.weighbridge("night", "--run", "s3/first", "--json")
    assert said.code == 0, said.err
    return FirstNight(bucket, told, said)


def test_a_night_on_s3_publishes_the_bill_to_its_last_digit(first_night: FirstNight) -> None:
    lake, options = first_night.bucket.lake, first_night.bucket.options
    assert first_night.said.data["outcome"] == "published"
    (row,) = tables.ledger(lake, options)
    (billed,) = [total for total in row["totals"] if total["measure"] == "billed_cost"]
    assert row["outcome"] == "published"
    assert billed["total"] == first_night.billed
    for table in ("charges", "daily_costs", "monthly_cost", "cost_by_region"):
        assert tables.sum_of(lake, table, "billed_cost", options) == billed["stored"]
    assert billed["stored"] + Decimal(billed["residual"]) == Decimal(first_night.billed)


def test_the_archive_on_s3_holds_the_delivered_files_unchanged(first_night: FirstNight) -> None:
    server, prefix = first_night.bucket.server, first_night.bucket.prefix
    landed = {sha(body) for body in server.contents(f"{prefix}/landing/").values()}
    kept = server.contents(f"{prefix}/lake/_archive/")
    assert {sha(body) for key, body in kept.items() if not key.endswith("/_delivery.json")} == landed
    assert len(kept) == len(first_night.told["files"]) + 2  # its manifest, and the record of the delivery


@pytest.mark.proof
def test_every_command_works_on_s3_and_the_tables_are_those_of_a_folder(
    first_night: FirstNight, spark: Any, tmp_path: Path
) -> None:
    bucket = first_night.bucket
    totals = bucket.weighbridge("totals", "--source", SOURCE, "--period", PERIOD, "--json")
    assert (totals.code, totals.data["behind"]) == (0, [])
    assert totals.data["delivered"]["USD"]["billed"] == first_night.billed
    asked = bucket.weighbridge("query", "who_spends_most", "--param", f"period={PERIOD}", "--format", "json")
    assert asked.code == 0, asked.err
    spent = sum((Decimal(row["billed_cost"]) for row in asked.data["rows"]), Decimal(0))
    assert spent == Decimal(totals.data["layers"]["charges"]["USD"]["billed"])

    again = bucket.deliver(again=True)
    second = bucket.weighbridge("night", "--run", "s3/second", "--json")
    assert (second.code, second.data["outcome"]) == (0, "published"), second.err
    after = tables.versions(bucket.lake, bucket.options)
    third = bucket.weighbridge("night", "--run", "s3/third", "--json")
    assert (third.code, third.data["outcome"]) == (0, "nothing_new"), third.err
    assert tables.versions(bucket.lake, bucket.options) == after
    totals = bucket.weighbridge("totals", "--source", SOURCE, "--period", PERIOD, "--json")
    assert totals.data["delivered"]["USD"]["billed"] == again["totals"]["USD"]["billed"]

    folder = the_same_in_a_folder(tmp_path)
    assert tables.digests(bucket.lake, bucket.options) == tables.digests(str(folder))
    assert tables.ledger(bucket.lake, bucket.options) == tables.ledger(str(folder))

    marts = bucket.weighbridge("marts", "--json")
    assert marts.code == 0, marts.err
    assert tables.digests(bucket.lake, bucket.options) == tables.digests(str(folder))


def the_same_in_a_folder(home: Path) -> Path:
    """A lake in a folder after the same two nights."""
    nights.write_policy(home / "policy", str(home / "bills"))
    env = {"WEIGHBRIDGE_LAKE": str(home / "lake"), "WEIGHBRIDGE_POLICY": str(home / "policy")}
    for again in (False, True):
        nights.deliver(home / "bills", again=again)
        assert nights.night_in_this_process(env, f"folder/{again}").code == 0
    return home / "lake"


def sha(content: bytes) -> str:
    """sha256 of a file."""
    return hashlib.sha256(content).hexdigest()
