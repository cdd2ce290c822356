"""Every command of the one interface: its help, its row of the README, its JSON, its exit codes."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import click
import pytest

from weighbridge.cli import COMMANDS, main, to_json

CHECKOUT = Path(__file__).parents[2]
TARGETS = {"setup", "demo", "test", "proof", "bench", "check", "fix", "help"}

# A call of each command that is refused before Spark starts, where nothing is set and nothing is there.
REFUSED = {
    "dismiss": ["dismiss", "3f2a9c0d11e4b587", "--reason", "a test"],
    "doctor": ["doctor"],
    "ingest-file": ["ingest-file", "bill.csv", "--source", "aws-main", "--delivered-at", "yesterday"],
    "inspect": ["inspect", "bill.csv"],
    "jars": ["jars"],
    "marts": ["marts"],
    "night": ["night"],
    "query": ["query", "who_spends_nothing"],
    "reattribute": ["reattribute", "--period", "2026-10", "--reason", "a test"],
    "sample-bill": ["sample-bill", "--format", "cur9", "--rows", "9", "--period", "2026-10", "--out", "bill"],
    "totals": ["totals", "--source", "aws-main", "--period", "2026-10"],
}

# Calls that end well without Spark.
DONE = {
    "doctor": ["doctor"],
    "jars": ["jars"],
    "query": ["query", "--list"],
    "sample-bill": ["sample-bill", "--format", "cur2", "--rows", "9", "--period", "2026-10", "--out", "bill"],
}


def called(name: str) -> click.Command:
    """A command, as the shell finds it."""
    found = main.get_command(click.Context(main), name)
    assert found is not None
    return found


def shell(place: Path, words: list[str], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """What a command came to in a process of its own, with `--json`."""
    line = [sys.executable, str(CHECKOUT / "jobs" / "run.py"), *words, "--json"]
    return subprocess.run(line, cwd=place, env=env, capture_output=True, text=True, timeout=300)


def example(name: str) -> str:
    """The last line of a command's help, without its first word."""
    return (called(name).help or "").split("Example: ")[1]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_one_sentence_of_help(name: str) -> None:
    sentence, _, rest = (called(name).help or "").partition("\n\n")
    assert re.fullmatch(r"[A-Z][^.!?]*(?:\d\.\d[^.!?]*)*\.", sentence), sentence
    assert rest.startswith("Example: "), rest
    assert called(name).short_help == sentence


@pytest.mark.parametrize("name", COMMANDS)
def test_the_example_of_a_command_is_a_call_that_it_takes(name: str) -> None:
    program, subcommand, *arguments = shlex.split(example(name))
    assert (program, subcommand) == ("weighbridge", name)
    assert called(name).make_context(name, arguments).params


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_takes_json(name: str) -> None:
    assert "--json" in [option for parameter in called(name).params for option in parameter.opts]


def test_the_readme_has_one_row_for_each_command() -> None:
    readme = (CHECKOUT / "README.md").read_text()
    assert re.findall(r"^\| `weighbridge ([a-z-]+)` \| \S.*\|$", readme, re.MULTILINE) == sorted(COMMANDS)


def test_make_help_lists_the_targets_of_this_house() -> None:
    told = subprocess.run(
        ["make", "help"], cwd=CHECKOUT, capture_output=True, text=True, timeout=60, check=True
    )
    said = dict(re.findall(r"^ +make ([a-z-]+) +(\S.*)$", told.stdout, re.MULTILINE))
    assert set(said) >= TARGETS


@pytest.mark.parametrize("name", sorted(REFUSED.keys() | set(COMMANDS)))
def test_a_refused_command_exits_with_2_and_says_why_in_one_json_document(name: str, tmp_path: Path) -> None:
    env = {"PATH": "/nowhere", "WEIGHBRIDGE_JARS": str(tmp_path / "jars")}
    done = shell(tmp_path, REFUSED[name], env)
    assert done.returncode == 2, done.stderr[-2000:]
    answer = json.loads(done.stdout)
    if name == "doctor":
        assert answer["ok"] is False
    else:
        assert answer["kind"].endswith("Refused")
        assert f"{name}: {answer['error']}" in done.stderr


@pytest.mark.parametrize("name", DONE)
def test_a_command_that_is_done_exits_with_0_and_prints_one_json_document(name: str, tmp_path: Path) -> None:
    done = shell(tmp_path, DONE[name], {k: v for k, v in os.environ.items() if k[:11] != "WEIGHBRIDGE"})
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert json.loads(done.stdout)


def probe(ending: str) -> subprocess.CompletedProcess[str]:
    """A command of one's own that prints in two ways and then ends like this, with `--json`."""
    code = (
        "import os\n"
        "from decimal import Decimal\n"
        "from weighbridge import errors\n"
        "from weighbridge.cli import Answer, command\n"
        "@command('probe', example='weighbridge probe')\n"
        "def probe():\n"
        "    print('printed')\n"
        "    os.write(1, b'written')\n"
        f"    {ending}\n"
        "probe()\n"
    )
    env = {"PYTHONPATH": str(CHECKOUT / "jobs")}
    line = [sys.executable, "-c", code, "--json"]
    return subprocess.run(line, env=env, capture_output=True, text=True, timeout=300)


def test_only_the_answer_stands_on_stdout() -> None:
    done = probe("return Answer({'cost': Decimal('12.40')}, '12.40')")
    assert done.returncode == 0
    assert json.loads(done.stdout) == {"cost": "12.40"}
    assert "printed" in done.stderr
    assert "written" in done.stderr


@pytest.mark.parametrize(
    ("error", "code"),
    [("Refused", 2), ("PolicyRefused", 2), ("LakeTooNew", 2), ("Unavailable", 1), ("LeaseHeld", 1)],
)
def test_refusals_exit_with_2_and_what_may_pass_by_itself_with_1(error: str, code: int) -> None:
    done = probe(f"raise errors.{error}('no')")
    assert done.returncode == code
    assert json.loads(done.stdout) == {"error": "no", "kind": error}


def test_an_error_that_nobody_thought_of_exits_with_1_and_one_json_document() -> None:
    done = probe("raise ZeroDivisionError('by zero')")
    assert done.returncode == 1
    assert json.loads(done.stdout) == {"error": "by zero", "kind": "ZeroDivisionError"}
    assert "Traceback" in done.stderr


def test_a_command_that_was_called_wrongly_also_answers_with_one_document(tmp_path: Path) -> None:
    done = shell(tmp_path, ["totals"], {})
    assert done.returncode == 2
    assert json.loads(done.stdout) == {"error": "Missing option '--source'.", "kind": "UsageError"}
    assert "Missing option" in done.stderr


def test_money_in_json_is_decimal_text_and_times_are_utc() -> None:
    value = {
        "cost": Decimal("1E+3"),
        "small": [Decimal("1E-18")],
        "at": datetime(2026, 11, 2, tzinfo=UTC),
        "day": date(2026, 11, 2),
        "rows": 3,
    }
    assert json.loads(to_json(value)) == {
        "cost": "1000",
        "small": ["0.000000000000000001"],
        "at": "2026-11-02T00:00:00Z",
        "day": "2026-11-02",
        "rows": 3,
    }


@pytest.mark.parametrize("value", [1.5, {"cost": 0.1}, [{"costs": (1.0,)}], float("nan")])
def test_no_float_gets_into_json(value: Any) -> None:
    with pytest.raises(TypeError, match="float"):
        to_json(value)


def doctor(place: Path, **env: str) -> dict[str, dict[str, Any]]:
    """What `weighbridge doctor` found where almost nothing is set, by name."""
    done = shell(place, ["doctor"], {"PATH": "/nowhere", "WEIGHBRIDGE_JARS": str(place / "jars"), **env})
    return {check["name"]: check for check in json.loads(done.stdout)["checks"]}


def test_the_doctor_names_what_an_empty_machine_lacks_and_how_to_get_it(tmp_path: Path) -> None:
    found = doctor(tmp_path)
    assert {name for name, check in found.items() if check["needed"] and not check["ok"]} >= {"java", "jars"}
    assert found["java"]["found"] == "none"
    assert "apt-get install openjdk-17-jre-headless" in found["java"]["way"]
    assert "JAVA_HOME" in found["java"]["way"]
    assert "are missing" in found["jars"]["found"]
    assert "weighbridge jars" in found["jars"]["way"]
    for name in ("policy", "lake"):
        assert found[name]["found"] == f"WEIGHBRIDGE_{name.upper()} is not set"
        assert f"set WEIGHBRIDGE_{name.upper()}" in found[name]["way"]
    assert all(check["way"] for check in found.values() if not check["ok"])


def test_the_doctor_reads_the_policy_and_says_what_a_night_would_refuse(tmp_path: Path) -> None:
    example = Path(doctor(tmp_path)["policy"]["way"].split("; ")[1].split(" is an example")[0])
    assert doctor(tmp_path, WEIGHBRIDGE_POLICY=str(example))["policy"]["ok"] is True
    policy = tmp_path / "policy"
    shutil.copytree(example, policy)
    (policy / "sources.yaml").write_text((policy / "sources.yaml").read_text() + "surces: []\n")
    found = doctor(tmp_path, WEIGHBRIDGE_POLICY=str(policy))["policy"]
    assert (found["ok"], found["needed"]) == (False, True)
    assert "sources.yaml" in found["found"]
    assert "surces" in found["found"]


def test_the_doctor_refuses_a_java_that_is_too_old(tmp_path: Path) -> None:
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    found = doctor(tmp_path, JAVA_HOME=str(tmp_path / "jdk"))["java"]
    assert found["ok"] is False
    assert found["found"].startswith("11.0.2")
