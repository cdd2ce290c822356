"""How providers lay out their deliveries: where the manifest lies and what it says. One row a layout."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from weighbridge.errors import BillRefused

# AWS writes `<export>-Manifest.json`, Azure `manifest.json`.
MANIFEST_NAME = "manifest.json"


@dataclass(frozen=True)
class ListedPart:
    """One file that a manifest lists; `bytes` and `rows` as the manifest says, None where it does not."""

    key: str
    bytes: int | None = None
    rows: int | None = None


@dataclass(frozen=True)
class Statement:
    """What one manifest says. `delivered_at` is None where neither it nor its path holds a time."""

    period: str | None
    delivered_at: datetime | None
    delivered_at_from: str
    parts: tuple[ListedPart, ...]
    folders: frozenset[str]
    columns: tuple[str, ...] | None = None
    rows: int | None = None


@dataclass(frozen=True)
class Layout:
    """One provider's way to deliver: known by the fields of its manifest."""

    name: str
    fields: tuple[str, ...]
    read: Callable[[str, Mapping[str, Any]], Statement]


def is_manifest(key: str) -> bool:
    """True for every file that calls itself a manifest, of a known layout or not."""
    return key.lower().endswith(MANIFEST_NAME)


def layout_of(manifest: Mapping[str, Any]) -> Layout:
    """The layout that this manifest's fields tell. Refused where none does."""
    for layout in LAYOUTS:
        if all(name in manifest for name in layout.fields):
            return layout
    fields = ", ".join(sorted(manifest)[:8]) or "none"
    known = "; ".join(f"{layout.name} has {' and '.join(layout.fields)}" for layout in LAYOUTS)
    raise BillRefused(f"it is a manifest of a layout that is not read here (its fields: {fields}; {known})")


# ---- AWS Data Exports: CUR 2.0 and FOCUS. CUR says BILLING_PERIOD=, FOCUS billing_period=.

AWS_MANIFEST = re.compile(
    r"^(?P<base>(?:.+/)?)metadata/(?P<partition>billing_period=(?P<period>\d{4}-\d{2}))/"
    r"(?:(?P<run>[^/]+)/)?(?P<export>[^/]+)-manifest\.json$",
    re.IGNORECASE,
)
AWS_DATA = re.compile(
    r"^(?P<place>(?:.+/)?)(?P<below>data/billing_period=(?P<period>\d{4}-\d{2})/(?:(?P<run>[^/]+)/)?[^/]+)$",
    re.IGNORECASE,
)
AWS_RUN_TIME = re.compile(r"^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?Z)-")


def _read_aws(key: str, manifest: Mapping[str, Any]) -> Statement:
    """A manifest of AWS Data Exports: it names neither its period nor its time, its path does."""
    at = AWS_MANIFEST.match(key)
    if at is None:
        raise BillRefused(
            "an AWS Data Exports manifest lies under metadata/BILLING_PERIOD=YYYY-MM/, this one does not; "
            "keep the folders as AWS writes them"
        )
    period = _month(at["period"])
    parts, runs = [], {at["run"]} - {None}
    for entry in _entries(manifest["dataFiles"], "dataFiles"):
        data = AWS_DATA.match(entry)
        if data is None or data["period"] != period:
            raise BillRefused(f"it lists '{entry}', which is no file under data/BILLING_PERIOD={period}/")
        export = data["place"].rstrip("/").rpartition("/")[2]
        if export not in ("", at["export"], at["base"].rstrip("/").rpartition("/")[2]):
            raise BillRefused(f"it lists '{entry}', which belongs to the export '{export}' elsewhere")
        runs.add(data["run"])
        parts.append(ListedPart(at["base"] + data["below"]))
    if len(runs) > 1:
        raise BillRefused(f"it mixes files of several executions: {', '.join(sorted(map(str, runs)))}")
    run = next(iter(runs), None)
    time = AWS_RUN_TIME.match(run or "")
    default = f"{at['base']}data/{at['partition']}/{f'{run}/' if run else ''}"
    return Statement(
        period=period,
        delivered_at=_time(time[1]) if time else None,
        delivered_at_from="path",
        parts=tuple(parts),
        folders=frozenset({default} | {_folder(part.key) for part in parts}),
        columns=_columns(manifest.get("columns")),
    )


def _columns(listed: Any) -> tuple[str, ...] | None:
    if listed is None:
        return None
    names = []
    for one in _list(listed, "columns"):
        name = one.get("name") if isinstance(one, dict) else one
        if not isinstance(name, str) or not name:
            raise BillRefused("its 'columns' hold an entry without a name")
        names.append(name)
    return tuple(names) or None


# ---- Azure Cost Management exports.

AZURE_FOLDER = re.compile(r"(?:^|/)(?P<tail>(?P<first>\d{8})-(?P<last>\d{8})/(?:(?P<run>\d{12})(?:/|$))?.*)$")
AZURE_TYPES = ("focuscost",)


def _read_azure(key: str, manifest: Mapping[str, Any]) -> Statement:
    """A manifest of an Azure export: it lies beside its files and says period, time, bytes and rows."""
    config, run_info = _object(manifest, "exportConfig"), _object(manifest, "runInfo")
    kind = config.get("type")
    if kind is not None and str(kind).lower() not in AZURE_TYPES:
        raise BillRefused(
            f"it is an export of type '{kind}', and only FocusCost is read here; "
            "let the landing place name the folder of the FOCUS export alone"
        )
    folder = _folder(key)
    mine = AZURE_FOLDER.search(folder.rstrip("/") + "/")
    parts = []
    for number, blob in enumerate(_list(manifest["blobs"], "blobs"), start=1):
        if not isinstance(blob, dict):
            raise BillRefused(f"entry {number} of its 'blobs' is no object")
        entry = _plain(blob.get("blobName"), "blobs")
        theirs = AZURE_FOLDER.search(_folder(entry))
        if mine and theirs and mine["tail"] != theirs["tail"]:
            raise BillRefused(f"it lists '{entry}', which does not lie beside it in {folder}")
        name = folder + entry.rpartition("/")[2]
        parts.append(ListedPart(name, _count(blob, "byteCount"), _count(blob, "dataRowCount")))
    _no_part_twice([part.key for part in parts])
    _sums_agree(manifest, parts)
    submitted = run_info.get("submittedTime")
    time = _time(str(submitted)) if submitted else None
    if time is None and mine and mine["run"]:
        time = datetime.strptime(mine["run"], "%Y%m%d%H%M").replace(tzinfo=UTC)
    return Statement(
        period=_azure_period(run_info, mine),
        delivered_at=time,
        delivered_at_from="manifest" if submitted else "path",
        parts=tuple(parts),
        folders=frozenset({folder}),
        rows=_count(manifest, "dataRowCount"),
    )


def _azure_period(run_info: Mapping[str, Any], folder: re.Match[str] | None) -> str | None:
    """The month that the run covers from its first day on; None where neither manifest nor path says.

    A run that begins later in the month, or leaves it, must not replace the month: days would be lost.
    """
    first, last = run_info.get("startDate"), run_info.get("endDate")
    if not first and folder:
        first, last = folder["first"], folder["last"]
    if not first:
        return None
    begin = _day(str(first))
    end = _day(str(last)) if last else begin
    months = (end.year - begin.year) * 12 + end.month - begin.month
    if begin.day != 1 or months < 0 or months > 1 or (months == 1 and end.day != 1):
        raise BillRefused(
            f"it covers {begin} to {end}, which is not one month from its first day on; "
            "export month to date (or the whole last month)"
        )
    return f"{begin:%Y-%m}"


def _sums_agree(manifest: Mapping[str, Any], parts: Sequence[ListedPart]) -> None:
    """The manifest's own totals against its entries: a list that was cut off shows here."""
    for name, counts in (
        ("blobCount", [1] * len(parts)),
        ("byteCount", [part.bytes for part in parts]),
        ("dataRowCount", [part.rows for part in parts]),
    ):
        said = _count(manifest, name)
        known = [count for count in counts if count is not None]
        if said is not None and len(known) == len(counts) and said != sum(known):
            raise BillRefused(f"its {name} is {said}, but its blobs add up to {sum(known)}")


# ---- What the layouts share.


def _entries(value: Any, name: str) -> list[str]:
    listed = [_plain(entry, name) for entry in _list(value, name)]
    _no_part_twice(listed)
    return listed


def _no_part_twice(keys: Sequence[str]) -> None:
    twice = sorted({key for key in keys if keys.count(key) > 1}) if len(set(keys)) < len(keys) else []
    if twice:
        raise BillRefused(f"it lists '{twice[0]}' twice: its rows would count twice")


def _plain(entry: Any, name: str) -> str:
    """A listed file's path without bucket. What could lead elsewhere or mean several files is refused."""
    if not isinstance(entry, str) or not entry:
        raise BillRefused(f"its '{name}' hold {entry!r}, which is no file name")
    path = re.sub(r"^s3a?://[^/]+/", "", entry)
    hostile = (
        "://" in path
        or path.startswith("/")
        or any(part in ("", ".", "..") for part in path.split("/"))
        or re.search(r"%(?:2e|2f|5c|00)", path, re.IGNORECASE)
        or re.search(r"[\x00-\x1f\x7f\\*?\[\]{}]", path)
    )
    if hostile:
        raise BillRefused(f"it lists {entry!r}, which does not name one file under the landing place")
    return path


def _list(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise BillRefused(f"its '{name}' is no list")
    return value


def _object(manifest: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = manifest.get(name) or {}
    if not isinstance(value, dict):
        raise BillRefused(f"its '{name}' is no object")
    return value


def _count(item: Mapping[str, Any], name: str) -> int | None:
    value = item.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise BillRefused(f"its {name} is {value!r}, which is no count")
    return int(value)


def _folder(key: str) -> str:
    """The folder of a key, with its closing `/`; empty at the root."""
    return key[: key.rfind("/") + 1]


def _month(text: str) -> str:
    if not "01" <= text[5:7] <= "12":
        raise BillRefused(f"its billing period '{text}' is no month")
    return text


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text[:10] if "-" in text else text)
    except ValueError as error:
        raise BillRefused(f"'{text}' is no date") from error


def _time(text: str) -> datetime:
    """A time of a manifest or path; without a zone it is UTC, as both providers write it."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise BillRefused(f"'{text}' is no time") from error
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


LAYOUTS = (
    Layout("aws-data-exports", ("dataFiles",), _read_aws),
    Layout("azure-exports", ("blobs", "runInfo"), _read_azure),
)
