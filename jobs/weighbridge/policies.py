"""The policy, typed: which bills there are, which tags mean what, and who pays. Unknown keys are refused."""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import yaml

from weighbridge.errors import PolicyRefused

NAME = re.compile(r"^[a-z0-9][a-z0-9_-]{0,63}$")
CURRENCY = re.compile(r"^[A-Z]{3}$")

DIMENSIONS = ("business_line", "model_version", "environment", "tenant")

# What of the policy decides the attribution of a row. Its digest stands on every attributed row.
ATTRIBUTION_FILES = ("tags.yaml", "business_lines.csv")


@dataclass(frozen=True)
class Source:
    """One stream of bills: who sends it, where it lands, and what the bill itself leaves open."""

    name: str
    provider: str
    landing: str
    payer_account: str
    format: str
    currency: str | None = None
    dates: str | None = None
    keep_tag_keys: tuple[str, ...] | None = None
    late_after_hours: int = 48


@dataclass(frozen=True)
class TagMeaning:
    """Which tag keys carry one dimension, the preferred first, in normal form (see `normal_key`)."""

    dimension: str
    keys: tuple[str, ...]


@dataclass(frozen=True)
class TagPolicy:
    """How tag keys and values are read."""

    meanings: tuple[TagMeaning, ...]
    prefixes: tuple[str, ...]
    spellings: Mapping[str, str]

    def meant(self, value: str) -> str:
        """The value of a business line's tag that a spelling stands for, in normal form."""
        plain = normal_value(value)
        return self.spellings.get(plain, plain)

    def normal_key(self, key: str) -> str:
        """The key without its provider's prefix, surrounding space, case and `-`/`_`/` ` difference."""
        return normal_key(key, self.prefixes)


@dataclass(frozen=True)
class LineRule:
    """One row of business_lines.csv: a tag value, a resource pattern or an account belongs to a line."""

    rule_id: str
    kind: str
    match: str
    business_line: str
    owner: str = ""
    email: str = ""
    cost_centre: str = ""
    valid_from: date | None = None
    valid_to: date | None = None

    def covers(self, day: date) -> bool:
        """True when the rule is valid on a usage day; both ends are inclusive."""
        return (self.valid_from is None or self.valid_from <= day) and (
            self.valid_to is None or day <= self.valid_to
        )


@dataclass(frozen=True)
class Policy:
    """Everything a meeting can change, as it stood when it was read."""

    sources: tuple[Source, ...]
    tags: TagPolicy
    rules: tuple[LineRule, ...]
    digest: str = field(default="")

    def source(self, name: str) -> Source:
        """The source of that name, or a refusal that lists the known ones."""
        for source in self.sources:
            if source.name == name:
                return source
        known = ", ".join(sorted(s.name for s in self.sources)) or "none"
        raise PolicyRefused(f"no source '{name}' in policy/sources.yaml; known: {known}")


RULE_KINDS = ("tag", "resource", "account")

# What counts as space in a tag, spelled out so that Python's and Java's regular expressions agree.
SPACE = r"\u0009-\u000d\u0020\u0085\u00a0"


def normal_key(key: str, prefixes: Iterable[str]) -> str:
    """A tag key as it is compared: trimmed, lower case, without a provider's prefix, `_` for `-` and space."""
    plain = _trimmed(key).lower()
    for prefix in sorted(prefixes, key=len, reverse=True):
        if plain.startswith(prefix):
            plain = plain[len(prefix) :]
            break
    return re.sub(f"[{SPACE}\\-]+", "_", _trimmed(plain))


def normal_value(value: str) -> str:
    """A tag value as it is compared: trimmed, lower case, runs of space, `-` and `_` as one `-`."""
    return re.sub(f"[{SPACE}_\\-]+", "-", _trimmed(value).lower())


def _trimmed(text: str) -> str:
    return re.sub(f"^[{SPACE}]+|[{SPACE}]+$", "", text)


def read_policy(files: Mapping[str, bytes]) -> Policy:
    """The policy in these files (name → content). Every fault is refused with its file and row."""
    for name in ("sources.yaml", "tags.yaml", "business_lines.csv"):
        if name not in files:
            raise PolicyRefused(f"policy/{name} is missing; the packaged example shows its form")
    tags = _read_tags(_yaml(files, "tags.yaml"))
    return Policy(
        sources=_read_sources(_yaml(files, "sources.yaml")),
        tags=tags,
        rules=_read_rules(_text(files, "business_lines.csv"), tags),
        digest=attribution_digest(files),
    )


def attribution_digest(files: Mapping[str, bytes]) -> str:
    """sha256 (hex) over the files that decide attribution; sources do not, so a new bill re-attributes nothing."""
    digest = hashlib.sha256()
    for name in ATTRIBUTION_FILES:
        digest.update(name.encode() + b"\0" + hashlib.sha256(files[name]).digest())
    return digest.hexdigest()


def _text(files: Mapping[str, bytes], name: str) -> str:
    try:
        return files[name].decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PolicyRefused(
            f"policy/{name} is not UTF-8 text ({error.reason} at byte {error.start})"
        ) from None


def _yaml(files: Mapping[str, bytes], name: str) -> Mapping[str, Any]:
    try:
        loaded = yaml.safe_load(_text(files, name))
    except yaml.YAMLError as error:
        raise PolicyRefused(f"policy/{name} is not YAML: {error}") from None
    if not isinstance(loaded, dict):
        raise PolicyRefused(f"policy/{name} must be a mapping at its top")
    return loaded


def _only(known: Iterable[str], given: Mapping[str, Any], where: str) -> None:
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise PolicyRefused(f"{where}: unknown key '{unknown[0]}'; known: {', '.join(sorted(known))}")


def _read_sources(data: Mapping[str, Any]) -> tuple[Source, ...]:
    _only({"sources"}, data, "policy/sources.yaml")
    sources: list[Source] = []
    for number, entry in enumerate(data.get("sources") or [], start=1):
        where = f"policy/sources.yaml, source {number}"
        if not isinstance(entry, dict):
            raise PolicyRefused(f"{where} is not a mapping")
        _only(Source.__dataclass_fields__, entry, where)
        missing = [
            key for key in ("name", "provider", "landing", "payer_account", "format") if not entry.get(key)
        ]
        if missing:
            raise PolicyRefused(f"{where} lacks '{missing[0]}'")
        texts = {
            key: str(value)
            for key, value in entry.items()
            if key not in ("keep_tag_keys", "late_after_hours") and value is not None
        }
        if not NAME.match(texts["name"]):
            raise PolicyRefused(f"{where}: name '{texts['name']}' must match {NAME.pattern}")
        if "currency" in texts and not CURRENCY.match(texts["currency"]):
            raise PolicyRefused(
                f"{where}: currency '{texts['currency']}' is not a three-letter ISO 4217 code"
            )
        if texts["name"] in {source.name for source in sources}:
            raise PolicyRefused(f"{where}: the name '{texts['name']}' is used twice")
        keep = entry.get("keep_tag_keys")
        if keep is not None and not (isinstance(keep, list) and all(isinstance(key, str) for key in keep)):
            raise PolicyRefused(f"{where}: keep_tag_keys must be a list of tag keys")
        hours = entry.get("late_after_hours", Source.late_after_hours)
        if not isinstance(hours, int) or isinstance(hours, bool) or hours < 0:
            raise PolicyRefused(f"{where}: late_after_hours must be a whole number of hours, 0 for never")
        keep = None if keep is None else tuple(keep)
        sources.append(Source(**texts, keep_tag_keys=keep, late_after_hours=hours))
    return tuple(sources)


def _read_tags(data: Mapping[str, Any]) -> TagPolicy:
    where = "policy/tags.yaml"
    _only({"meanings", "prefixes", "spellings"}, data, where)
    prefixes = tuple(str(prefix).lower() for prefix in data.get("prefixes") or ())
    meanings = data.get("meanings")
    if not isinstance(meanings, dict):
        raise PolicyRefused(f"{where} lacks 'meanings': which tag keys mean {', '.join(DIMENSIONS)}")
    _only(DIMENSIONS, meanings, f"{where}, meanings")
    taken: dict[str, str] = {}
    read: list[TagMeaning] = []
    for dimension in DIMENSIONS:
        keys = tuple(normal_key(str(key), prefixes) for key in meanings.get(dimension) or ())
        for key in keys:
            if key in taken:
                raise PolicyRefused(f"{where}: key '{key}' means both {taken[key]} and {dimension}")
            taken[key] = dimension
        read.append(TagMeaning(dimension, keys))
    spellings = data.get("spellings") or {}
    if not isinstance(spellings, dict):
        raise PolicyRefused(f"{where}: spellings must map a spelling to the value it means")
    return TagPolicy(
        meanings=tuple(read),
        prefixes=prefixes,
        spellings={normal_value(str(k)): normal_value(str(v)) for k, v in spellings.items()},
    )


RULE_COLUMNS = (
    "rule_id",
    "kind",
    "match",
    "business_line",
    "owner",
    "email",
    "cost_centre",
    "valid_from",
    "valid_to",
)


def _read_rules(text: str, tags: TagPolicy) -> tuple[LineRule, ...]:
    reader = csv.DictReader(io.StringIO(text, newline=""))
    if tuple(reader.fieldnames or ()) != RULE_COLUMNS:
        raise PolicyRefused(f"policy/business_lines.csv must have the columns {','.join(RULE_COLUMNS)}")
    rules = [_read_rule(row, f"policy/business_lines.csv, row {reader.line_num}", tags) for row in reader]
    _refuse_ambiguity(rules)
    return tuple(rules)


def _read_rule(row: Mapping[str, str | None], where: str, tags: TagPolicy) -> LineRule:
    if None in row or None in row.values():
        raise PolicyRefused(f"{where} does not have {len(RULE_COLUMNS)} cells")
    cells = {key: (value or "").strip() for key, value in row.items()}
    for key in ("rule_id", "match", "business_line"):
        if not cells[key]:
            raise PolicyRefused(f"{where}: '{key}' is empty")
    if cells["kind"] not in RULE_KINDS:
        raise PolicyRefused(f"{where}: kind '{cells['kind']}' is none of {', '.join(RULE_KINDS)}")
    days: dict[str, date | None] = {}
    for key in ("valid_from", "valid_to"):
        try:
            days[key] = date.fromisoformat(cells[key]) if cells[key] else None
        except ValueError:
            raise PolicyRefused(f"{where}: {key} '{cells[key]}' is not a date like 2026-01-31") from None
    if days["valid_from"] and days["valid_to"] and days["valid_from"] > days["valid_to"]:
        raise PolicyRefused(
            f"{where}: valid_from {days['valid_from']} lies after valid_to {days['valid_to']}"
        )
    match = tags.meant(cells["match"]) if cells["kind"] == "tag" else cells["match"]
    texts = {key: cells[key] for key in ("rule_id", "kind", "business_line", "owner", "email", "cost_centre")}
    return LineRule(match=match, valid_from=days["valid_from"], valid_to=days["valid_to"], **texts)


def _overlap(one: LineRule, other: LineRule) -> bool:
    begins = max(one.valid_from or date.min, other.valid_from or date.min)
    ends = min(one.valid_to or date.max, other.valid_to or date.max)
    return begins <= ends


def _refuse_ambiguity(rules: list[LineRule]) -> None:
    """Two rules of one level that can match one row on one day have no order; the policy has to say."""
    ids: set[str] = set()
    for number, rule in enumerate(rules):
        if rule.rule_id in ids:
            raise PolicyRefused(f"policy/business_lines.csv: rule_id '{rule.rule_id}' is used twice")
        ids.add(rule.rule_id)
        for other in rules[:number]:
            if rule.kind != other.kind or not _overlap(rule, other):
                continue
            both_match = (
                patterns_meet(rule.match, other.match)
                if rule.kind == "resource"
                else rule.match == other.match
            )
            if both_match:
                raise PolicyRefused(
                    f"policy/business_lines.csv: rules '{other.rule_id}' and '{rule.rule_id}' both match "
                    f"{rule.kind} '{rule.match}' on the same days; give them separate validity or one match"
                )


def patterns_meet(one: str, other: str) -> bool:
    """True when some text matches both patterns, in which `*` stands for any run of characters."""
    seen: set[tuple[int, int]] = set()
    todo = [(0, 0)]
    while todo:
        at = todo.pop()
        if at in seen:
            continue
        seen.add(at)
        left, right = one[at[0] :], other[at[1] :]
        if not left and not right:
            return True
        if left[:1] == "*":
            todo.append((at[0] + 1, at[1]))
            if right:
                todo.append((at[0], at[1] + 1))
        if right[:1] == "*":
            todo.append((at[0], at[1] + 1))
            if left:
                todo.append((at[0] + 1, at[1]))
        if left and right and left[0] == right[0] != "*":
            todo.append((at[0] + 1, at[1] + 1))
    return False
