"""The JARs are believed by their sums alone: fetched by the real Ivy, here from a folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from weighbridge.adapters.jars import Jar, fetch, read_lock, sha256
from weighbridge.cli.setup import ivy_command
from weighbridge.errors import Refused, Unavailable
from weighbridge.wiring import Settings

CHECKOUT = Path(__file__).parents[2]
PINNED = read_lock((CHECKOUT / "infra" / "spark" / "jars.lock").read_text())
HERE = Path(Settings.from_environment({}).jars)
SMALL = sorted(PINNED, key=lambda jar: (HERE / jar.file_name).stat().st_size)[:2]
NO_IVY = ["false"]


def jars_command(folder: Path) -> subprocess.CompletedProcess[str]:
    """`weighbridge jars --json` for a folder, in a process of its own."""
    return subprocess.run(
        [sys.executable, str(CHECKOUT / "jobs" / "run.py"), "jars", "--json"],
        env={**os.environ, "WEIGHBRIDGE_JARS": str(folder)},
        capture_output=True,
        text=True,
        timeout=300,
    )


def linked(jars: Sequence[Jar], folder: Path) -> Path:
    """A folder with these JARs, as links to the fetched ones."""
    folder.mkdir()
    for jar in jars:
        (folder / jar.file_name).symlink_to(HERE / jar.file_name)
    return folder


def in_folder(folder: Path) -> set[str]:
    """What lies there, but for the lock."""
    return {path.name for path in folder.iterdir()} - {".lock"}


@pytest.fixture
def ivy(tmp_path: Path) -> list[str]:
    """PySpark's own Ivy, which finds the two smallest JARs in a folder and asks nobody else."""
    repository = linked(SMALL, tmp_path / "repository")
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(
        '<ivysettings><settings defaultResolver="folder"/><resolvers><filesystem name="folder">'
        f'<artifact pattern="{repository}/[artifact]-[revision].[ext]"/>'
        "</filesystem></resolvers></ivysettings>"
    )
    return ivy_command(settings)


def test_a_folder_that_has_every_jar_is_left_as_it_is(tmp_path: Path) -> None:
    folder = linked(PINNED, tmp_path / "jars")
    done = jars_command(folder)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["fetched"], len(answer["jars"])) == ([], len(PINNED))
    assert all((folder / jar.file_name).is_symlink() for jar in PINNED)


def test_a_jar_with_a_wrong_sum_is_refused_by_name_and_only_it_is_removed(tmp_path: Path) -> None:
    folder = linked(PINNED, tmp_path / "jars")
    wrong, *right = PINNED
    (folder / wrong.file_name).unlink()
    (folder / wrong.file_name).write_bytes(b"not what was pinned")
    found = sha256(folder / wrong.file_name)

    done = jars_command(folder)
    assert done.returncode == 2, done.stderr
    answer = json.loads(done.stdout)
    assert answer["kind"] == "Refused"
    assert f"{wrong.coordinates} has sha256 {found}, not {wrong.sha256}" in answer["error"]
    assert in_folder(folder) == {jar.file_name for jar in right}


def test_what_is_missing_is_fetched_and_then_nothing_is_left_to_do(tmp_path: Path, ivy: list[str]) -> None:
    folder = tmp_path / "jars"
    assert fetch(SMALL, folder, ivy, print) == SMALL
    assert {name: sha256(folder / name) for name in in_folder(folder)} == {
        jar.file_name: jar.sha256 for jar in SMALL
    }
    assert fetch(SMALL, folder, NO_IVY, print) == []


def test_a_jar_that_arrives_with_a_wrong_sum_is_refused_and_never_gets_into_the_folder(
    tmp_path: Path, ivy: list[str]
) -> None:
    good, other = SMALL
    folder = linked([good], tmp_path / "jars")
    mistaken = replace(other, sha256="0" * 64)
    with pytest.raises(Refused) as refused:
        fetch([good, mistaken], folder, ivy, print)
    assert f"{other.coordinates} has sha256 {other.sha256}, not {'0' * 64}" in str(refused.value)
    assert in_folder(folder) == {good.file_name}


def test_a_jar_that_does_not_arrive_may_arrive_later(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=SMALL[0].name):
        fetch(SMALL, tmp_path / "jars", NO_IVY, print)
    assert in_folder(tmp_path / "jars") == set()


def test_a_line_of_the_lock_without_a_sum_is_refused_by_its_number() -> None:
    with pytest.raises(Refused, match="line 2"):
        read_lock("# comment\nio.delta:delta-storage:4.4.0\n")
