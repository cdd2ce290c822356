"""What a machine needs before the first night: what is missing, and the JARs."""

from __future__ import annotations

from pathlib import Path

import click

from weighbridge.cli import Answer, command, say
from weighbridge.errors import Refused


@command("doctor", example="weighbridge doctor --json")
def doctor() -> Answer:
    """Say what this machine has of what Weighbridge needs, and how to get what is missing."""
    from weighbridge.cli.doctor import examine
    from weighbridge.wiring import Settings

    findings = examine(Settings.from_environment())
    needed = [one for one in findings if one.needed and not one.ok]
    data = {
        "ok": not needed,
        "checks": [
            {"name": one.name, "ok": one.ok, "needed": one.needed, "found": one.found, "way": one.way}
            for one in findings
        ],
    }
    width = max(len(one.name) for one in findings)
    lines = [f"{one.mark:8}{one.name:{width}}  {one.found}" for one in findings]
    lines += ["", *(f"{one.name}: {one.way}" for one in findings if not one.ok)]
    missing = ", ".join(one.name for one in needed)
    lines.append(f"missing: {missing}" if needed else "Everything that is needed is here.")
    return Answer(data, "\n".join(lines), exit_code=2 if needed else 0)


@command("jars", example="weighbridge jars")
@click.option(
    "--ivy-settings",
    envvar="WEIGHBRIDGE_IVY_SETTINGS",
    type=click.Path(path_type=Path),
    help="Ivy's settings file, where JARs come from a repository of your own.",
)
def jars(ivy_settings: Path | None = None) -> Answer:
    """Fetch the pinned JARs that Spark needs (Delta, Comet, s3a), each proven by its sha256."""
    from weighbridge.adapters.jars import fetch, read_lock
    from weighbridge.wiring import Settings, share

    pinned = read_lock((share() / "infra/spark/jars.lock").read_text(encoding="utf-8"))
    folder = Path(Settings.from_environment().jars)
    fetched = fetch(pinned, folder, ivy_command(ivy_settings), say)
    data = {
        "folder": str(folder),
        "jars": [jar.coordinates for jar in pinned],
        "fetched": [jar.coordinates for jar in fetched],
    }
    return Answer(
        data, f"{len(pinned)} JARs in {folder}, {len(fetched)} of them fetched now; every sha256 is right"
    )


def ivy_command(settings: Path | None = None) -> list[str]:
    """The command that starts the Ivy that PySpark ships. Refused where Java or Ivy is missing."""
    from importlib.util import find_spec

    from weighbridge.adapters.machine import find_java

    java = find_java()
    if java is None:
        raise Refused("there is no Java: install version 17 or newer, or point JAVA_HOME at one")
    pyspark = find_spec("pyspark")
    places = list(pyspark.submodule_search_locations or ()) if pyspark else []
    found = sorted(ivy for place in places for ivy in Path(place).glob("jars/ivy-*.jar"))
    if not found:
        raise Refused("PySpark, which ships Ivy, is not installed whole: run 'make setup'")
    return [java.command, "-jar", str(found[-1]), *(("-settings", str(settings)) if settings else ())]
