"""The JARs of `infra/spark/jars.lock`: fetched by PySpark's own Ivy, believed by their sha256 alone."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from weighbridge.errors import Refused, Unavailable

Say = Callable[[str], None]

LINE = re.compile(r"([\w.-]+):([\w.-]+):([\w.-]+) ([0-9a-f]{64})")
# Ivy's words for one JAR that arrived: `[SUCCESSFUL ] io.delta#delta-storage;4.4.0!delta-storage.jar (90ms)`.
ARRIVED = re.compile(r"\[SUCCESSFUL ?\] \S+#([\w.-]+);([\w.-]+)!\S+ \((\d+)ms\)")
TRIES = 3


@dataclass(frozen=True)
class Jar:
    """One pinned JAR: Maven coordinates and the sha256 of its bytes."""

    organisation: str
    name: str
    revision: str
    sha256: str

    @property
    def file_name(self) -> str:
        """Its file's name in the JAR folder."""
        return f"{self.name}-{self.revision}.jar"

    @property
    def coordinates(self) -> str:
        """Its name for people: organisation:name:revision."""
        return f"{self.organisation}:{self.name}:{self.revision}"


def read_lock(text: str) -> tuple[Jar, ...]:
    """The JARs of a lock file; a line that is not `organisation:name:revision sha256` is refused."""
    jars: list[Jar] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        found = LINE.fullmatch(line.strip())
        if found is None:
            raise Refused(f"jars.lock, line {number}: '{line}' is not organisation:name:revision sha256")
        jars.append(Jar(*found.groups()))
    return tuple(jars)


def sha256(file: Path) -> str:
    """The sha256 of a file's bytes, in hex."""
    with file.open("rb") as bytes_of_it:
        return hashlib.file_digest(bytes_of_it, "sha256").hexdigest()


def missing(jars: Sequence[Jar], folder: Path) -> list[Jar]:
    """The JARs that are not in the folder."""
    return [jar for jar in jars if not (folder / jar.file_name).is_file()]


def wrong(jars: Sequence[Jar], folder: Path) -> list[tuple[Jar, str]]:
    """The JARs in the folder whose bytes are not the pinned ones, each with the sum it has."""
    found = [(jar, sha256(folder / jar.file_name)) for jar in jars if (folder / jar.file_name).is_file()]
    return [(jar, is_) for jar, is_ in found if is_ != jar.sha256]


def refuse_wrong(jars: Sequence[Jar], folder: Path) -> None:
    """Nothing, or a refusal that names each JAR with both sums; its file is gone then, never used."""
    bad = wrong(jars, folder)
    for jar, _ in bad:
        (folder / jar.file_name).unlink()
    if bad:
        told = "; ".join(f"{jar.coordinates} has sha256 {found}, not {jar.sha256}" for jar, found in bad)
        raise Refused(
            f"{told}. The file is deleted. Run 'weighbridge jars' to fetch it again; if it comes back wrong, "
            "the server that gives it out is not to be trusted, or infra/spark/jars.lock is mistaken"
        )


def fetch(jars: Sequence[Jar], folder: Path, ivy: Sequence[str], say: Say) -> list[Jar]:
    """The JARs that were fetched into the folder just now; those that are there and right stay untouched.

    `ivy` is the command that starts Ivy. A wrong sum, in the folder or as it arrives, is refused and its
    file deleted; what does not arrive is Unavailable.
    Safe beside another fetch into the same folder: it waits, and then finds nothing left to do.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with alone_in(folder):
        refuse_wrong(jars, folder)
        wanted = missing(jars, folder)
        if wanted:
            say(f"fetching {len(wanted)} JARs into {folder} (Delta, Comet, s3a: about 120 MB)")
            with tempfile.TemporaryDirectory(dir=folder, prefix=".fetching-") as workplace:
                retrieve(wanted, Path(workplace), ivy, say)
                arrived = Path(workplace) / "jars"
                refuse_wrong(wanted, arrived)
                for jar in wanted:
                    os.replace(arrived / jar.file_name, folder / jar.file_name)
        return wanted


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Holds the folder's lock; the system frees it when the process ends, however it ends."""
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def retrieve(wanted: Sequence[Jar], workplace: Path, ivy: Sequence[str], say: Say) -> None:
    """Nothing; the wanted JARs are then in `workplace/jars`, unproven. What arrived is kept between tries."""
    (workplace / "ivy.xml").write_text(ivy_xml(wanted), encoding="utf-8")
    command = [
        *ivy,
        *("-cache", str(workplace / "cache"), "-ivy", str(workplace / "ivy.xml"), "-types", "jar", "bundle"),
        *("-retrieve", str(workplace / "jars/[artifact]-[revision].[ext]")),
    ]
    for trial in range(1, TRIES + 1):
        last_words = run_ivy(command, len(wanted), say)
        left = missing(wanted, workplace / "jars")
        if not left:
            return
        say(f"try {trial} of {TRIES}: {len(left)} JARs did not arrive")
    raise Unavailable(
        f"{len(left)} JARs could not be fetched, the first is {left[0].coordinates}. A Maven repository has "
        "to be in reach (name one with --ivy-settings); try again later. Ivy's last words:\n" + last_words
    )


def run_ivy(command: Sequence[str], expected: int, say: Say) -> str:
    """Ivy's last lines; each JAR that arrives is told, for some repositories answer slowly."""
    lines: list[str] = []
    arrived = 0
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        for line in process.stdout or ():
            lines.append(line.rstrip())
            if found := ARRIVED.search(line):
                arrived += 1
                say(f"  {arrived} of {expected}: {found[1]} {found[2]} ({int(found[3]) / 1000:.1f} s)")
    return "\n".join(lines[-15:])


def ivy_xml(jars: Sequence[Jar]) -> str:
    """Ivy's list of exactly these JARs, none of what they would pull in."""
    dependencies = "\n".join(
        f"    <dependency org={quoteattr(jar.organisation)} name={quoteattr(jar.name)} "
        f'rev={quoteattr(jar.revision)} transitive="false" conf="default->*"/>'
        for jar in jars
    )
    return (
        '<ivy-module version="2.0">\n  <info organisation="weighbridge" module="jars"/>\n'
        f'  <configurations><conf name="default"/></configurations>\n'
        f"  <dependencies>\n{dependencies}\n  </dependencies>\n</ivy-module>\n"
    )
