"""What this machine has of what Weighbridge needs: one finding each, with the way to get it."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from weighbridge.adapters import machine
from weighbridge.adapters.jars import Jar, missing, read_lock, wrong
from weighbridge.errors import WeighbridgeError
from weighbridge.wiring import COMET_JAR, Settings, is_s3, load_policy, share

GIB = 1024**3
DISK_WANTED = 5 * GIB
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PINNED = re.compile(r"^([A-Za-z0-9][\w.-]*)==([^\s;]+)\s*(?:;\s*([^\\]+?))?\s*\\?$", re.MULTILINE)


@dataclass(frozen=True)
class Finding:
    """One thing: whether it is right, whether a night needs it, what was found, and the way to get it."""

    name: str
    ok: bool
    found: str
    way: str = ""
    needed: bool = True

    @property
    def mark(self) -> str:
        """How a person sees it at a glance."""
        return "ok" if self.ok else "MISSING" if self.needed else "without"


def examine(settings: Settings) -> list[Finding]:
    """Every finding about this machine, in the order in which to mend them."""
    pinned = read_lock((share() / "infra/spark/jars.lock").read_text(encoding="utf-8"))
    java = machine.find_java()
    return [
        python(),
        java_finding(java),
        packages(),
        jars(pinned, Path(settings.jars)),
        comet(settings, java),
        *resources(settings),
        *places(settings),
        *test_tools(),
    ]


def python() -> Finding:
    """Whether this Python is new enough; it always is where Weighbridge could be installed."""
    found = f"{platform.python_version()} ({sys.executable})"
    return Finding("python", sys.version_info >= (3, 11), found, "install Python 3.11 or newer")


def java_finding(java: machine.Java | None) -> Finding:
    """Whether the Java that Spark would start is 17 or newer."""
    way = (
        "install a Java 17 runtime (Debian and Ubuntu: apt-get install openjdk-17-jre-headless) "
        "or point JAVA_HOME at one"
    )
    if java is None:
        return Finding("java", False, "none", way)
    return Finding("java", java.major >= machine.JAVA_NEEDED, f"{java.version} ({java.command})", way)


def packages() -> Finding:
    """Whether the installed packages are the locked ones; without a lock, those that the project asks for."""
    lock = share() / "requirements.lock"
    if lock.is_file():
        wanted = locked(lock.read_text(encoding="utf-8"))
        off = sorted(differing(wanted))
        found = (
            f"{len(wanted)} as locked"
            if not off
            else f"{len(off)} differ from the lock: " + ", ".join(off[:5])
        )
        return Finding("packages", not off, found, "run 'make setup'")
    unmet = sorted(unmet_requirements())
    found = "all that the project asks for" if not unmet else "not met: " + ", ".join(unmet[:5])
    return Finding("packages", not unmet, found, "run 'pip install --upgrade weighbridge'")


def locked(lock: str) -> dict[str, str]:
    """Name and version of each package that a lock holds for this Python and platform."""
    from packaging.markers import Marker

    return {
        found[1]: found[2]
        for found in PINNED.finditer(lock)
        if found[3] is None or Marker(found[3]).evaluate()
    }


def differing(wanted: Mapping[str, str]) -> Iterator[str]:
    """Packages whose installed version is not the wanted one, as text for a person."""
    for name, wanted_version in wanted.items():
        try:
            found = version(name)
        except PackageNotFoundError:
            yield f"{name} is missing"
            continue
        if found != wanted_version:
            yield f"{name} is {found}, not {wanted_version}"


def unmet_requirements() -> Iterator[str]:
    """What the installed project asks for and this Python does not have, as text for a person."""
    from packaging.requirements import Requirement

    for text in requires("weighbridge") or ():
        wanted = Requirement(text)
        if wanted.marker is not None and not wanted.marker.evaluate():
            continue
        try:
            found = version(wanted.name)
        except PackageNotFoundError:
            yield f"{wanted.name} is missing"
            continue
        if not wanted.specifier.contains(found, prereleases=True):
            yield f"{wanted.name} is {found}, not {wanted.specifier}"


def jars(pinned: tuple[Jar, ...], folder: Path) -> Finding:
    """Whether each pinned JAR is in the folder with its sha256."""
    lacking = missing(pinned, folder)
    bad = wrong(pinned, folder)
    told = [f"{len(lacking)} are missing, the first is {lacking[0].coordinates}"] if lacking else []
    told += [f"{jar.coordinates} has sha256 {found}, not {jar.sha256}" for jar, found in bad]
    return Finding(
        "jars",
        not told,
        "; ".join(told) or f"{len(pinned)} in {folder}, sums right",
        "run 'weighbridge jars'",
    )


def comet(settings: Settings, java: machine.Java | None) -> Finding:
    """Whether Comet's native library loads here; a night runs without it, only slower."""
    if not settings.comet:
        return Finding("comet", True, "off by WEIGHBRIDGE_COMET", needed=False)
    found = sorted(Path(settings.jars).glob(f"{COMET_JAR}-*.jar"))
    if not found or java is None:
        return Finding("comet", False, "not tried: Java or its JAR is missing", "mend these first")
    problem = load_comet(found[-1], java)
    way = "set WEIGHBRIDGE_COMET=off: the same tables, from slower nights"
    return Finding("comet", not problem, problem or f"{found[-1].name} loads", way)


def load_comet(jar: Path, java: machine.Java) -> str:
    """Why Comet's native library cannot be loaded; empty text when it can. Tried in a process of its own."""
    architecture = {"x86_64": "amd64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
    member = f"org/apache/comet/linux/{architecture}/libcomet.so"
    load = "import ctypes, sys; [ctypes.CDLL(one, ctypes.RTLD_GLOBAL) for one in sys.argv[1:]]"
    with tempfile.TemporaryDirectory() as folder:
        try:
            with zipfile.ZipFile(jar) as archive:
                library = archive.extract(member, folder)
            libjvm = Path(os.path.realpath(java.command)).parents[1] / "lib/server/libjvm.so"
            command = [sys.executable, "-c", load, str(libjvm), library]
            told = subprocess.run(command, capture_output=True, text=True, timeout=120)
        except KeyError:
            return f"it has no build for {platform.system()} {platform.machine()}"
        except (OSError, zipfile.BadZipFile, subprocess.SubprocessError) as error:
            return f"{type(error).__name__}: {error}"
    return told.stderr.strip().splitlines()[-1] if told.returncode else ""


def resources(settings: Settings) -> Iterator[Finding]:
    """Cores, memory and disk: too little is said, and refused by nobody."""
    count = machine.cores()
    yield Finding("cores", count >= 2, str(count), "with one core a night takes twice as long", needed=False)
    memory = machine.memory_bytes()
    way = f"Spark is given {settings.spark_driver_memory} and Comet 1g beside it: at least 4 GiB are wanted"
    yield Finding("memory", memory >= 4 * GIB, f"{memory / GIB:.1f} GiB", way, needed=False)
    folder = Path(settings.lake) if settings.lake and not is_s3(settings.lake) else Path.cwd()
    free = machine.free_bytes(folder)
    way = "make room: a night writes its charges before it lets go of the old ones"
    yield Finding("disk", free >= DISK_WANTED, f"{free / GIB:.1f} GiB free at {folder}", way, needed=False)


def places(settings: Settings) -> Iterator[Finding]:
    """The policy and the lake: whether they are set, and can be read and written."""
    if settings.policy:
        yield readable(settings)
    else:
        example = Path(__file__).parents[1] / "policy"
        way = f"for a night, set WEIGHBRIDGE_POLICY to a folder or s3:// prefix; {example} is an example to copy"
        yield Finding("policy", False, "WEIGHBRIDGE_POLICY is not set", way, needed=False)
    if settings.lake:
        yield writable(settings)
    else:
        way = "for a night, set WEIGHBRIDGE_LAKE to a folder or s3:// prefix, for example ./lake"
        yield Finding("lake", False, "WEIGHBRIDGE_LAKE is not set", way, needed=False)


def readable(settings: Settings) -> Finding:
    """Whether the policy can be read and says nothing that would be refused."""
    way = "mend what WEIGHBRIDGE_POLICY names, or let this user read it"
    try:
        policy = load_policy(settings)
    except (WeighbridgeError, OSError) as error:
        return Finding("policy", False, str(error), way)
    return Finding("policy", True, f"{len(policy.sources)} sources in {settings.policy}", way)


def writable(settings: Settings) -> Finding:
    """Whether the lake can be written. In a folder it is asked, on S3 a small file is written and deleted."""
    from weighbridge.adapters.files import open_store

    way = "let this user write what WEIGHBRIDGE_LAKE names"
    place = settings.lake_root()
    if is_s3(place):
        try:
            store = open_store(place, settings)
            store.write("_doctor", b"may be deleted")
            store.delete("_doctor")
        except (WeighbridgeError, OSError) as error:
            return Finding("lake", False, str(error), way)
        return Finding("lake", True, f"{place} can be written")
    folder = Path(place)
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    fine = folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)
    return Finding("lake", fine, f"{place} can {'' if fine else 'not '}be written", way)


def test_tools() -> Iterator[Finding]:
    """What only some tests need."""
    weed = Path(sys.executable).with_name("weed")
    found = str(weed) if weed.exists() else shutil.which("weed")
    yield Finding(
        "weed", found is not None, found or "none", "only tests of S3 need it: run 'make setup'", False
    )
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    yield Finding("chromium", browser is not None, browser or "none", "only tests of pages need it", False)
