"""What the proof shares: a lake with published deliveries, the undisturbed night, and the report."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from proof import nights, tables
from proof.nights import Answered, Process
from proof.report import Report


@dataclass(frozen=True)
class Place:
    """A lake in a folder with its policy."""

    lake: Path
    policy: Path

    @property
    def env(self) -> dict[str, str]:
        """What a process needs to work here."""
        return {"WEIGHBRIDGE_LAKE": str(self.lake), "WEIGHBRIDGE_POLICY": str(self.policy)}


@dataclass(frozen=True)
class Undisturbed:
    """The night that nothing ended: what it said, and what the lake held after it."""

    said: Answered
    digests: dict[str, str]
    ledger: list[dict[str, object]]
    archive: dict[str, str]
    versions_before: dict[str, int]
    versions: dict[str, int]

    def same_as(self, lake: Path) -> bool:
        """Whether a lake holds the same, to the last digit."""
        return (
            tables.digests(str(lake)) == self.digests
            and tables.ledger(str(lake)) == self.ledger
            and tables.files_below(lake / "_archive") == self.archive
        )


@pytest.fixture(scope="session")
def report(request: pytest.FixtureRequest) -> Report:
    """The page that this run writes."""
    here = Path(__file__).parent
    return Report(
        sum(here in item.path.parents and "report" in item.fixturenames for item in request.session.items)
    )


@pytest.fixture(scope="session")
def prepared(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A lake that published two periods; a newer delivery of one of them has landed since."""
    home = tmp_path_factory.mktemp("prepared")
    place = Place(home / "lake", home / "policy")
    nights.write_policy(place.policy, str(home / "bills"))
    nights.deliver(home / "bills", period=nights.EARLIER, rows=200)
    nights.deliver(home / "bills")
    said = nights.night_in_this_process(place.env, "before")
    assert said.code == 0, said.err
    nights.deliver(home / "bills", again=True)
    return place


@pytest.fixture
def place(prepared: Place, tmp_path: Path) -> Place:
    """A copy of the prepared lake: the case may do with it what it wants."""
    shutil.copytree(prepared.lake, tmp_path / "lake")
    return Place(tmp_path / "lake", prepared.policy)


@pytest.fixture(scope="session")
def undisturbed(prepared: Place, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """The fault-free night on a copy of the prepared lake."""
    lake = tmp_path_factory.mktemp("undisturbed") / "lake"
    shutil.copytree(prepared.lake, lake)
    before = tables.versions(str(lake))
    said = nights.weighbridge(Place(lake, prepared.policy).env, "night", "--run", "undisturbed", "--json")
    assert said.code == 0, said.err
    assert said.data["outcome"] == "published"
    return Undisturbed(
        said,
        tables.digests(str(lake)),
        tables.ledger(str(lake)),
        tables.files_below(lake / "_archive"),
        before,
        tables.versions(str(lake)),
    )


@pytest.fixture
def start() -> Iterator[Callable[..., Process]]:
    """Starts `weighbridge` in an environment; nothing of it outlives the case."""
    begun: list[Process] = []

    def make(env: dict[str, str], *arguments: str) -> Process:
        begun.append(Process(env, *arguments))
        return begun[-1]

    yield make
    for process in begun:
        process.end()
