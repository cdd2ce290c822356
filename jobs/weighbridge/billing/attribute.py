"""Who pays for a bill line: by tag value, else by resource, else by account; and what stays unattributed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from weighbridge.billing.formats.cur2 import RULES
from weighbridge.billing.frames import few_rows
from weighbridge.policies import SPACE, LineRule, Policy
from weighbridge.tables import UNATTRIBUTED

# What a row is attributed by. Two rows that agree in all of these have one owner.
KEY_COLUMNS = (
    "key_business_line",
    "key_model_version",
    "key_environment",
    "key_tenant",
    "key_account",
    "key_resource",
    "key_segment",
    "key_tagged",
    "key_declares",
    "key_untaggable",
)

ATTRIBUTION_COLUMNS = (
    "x_business_line",
    "x_model_version",
    "x_environment",
    "x_tenant",
    "x_attribution_state",
    "x_unattributed_reason",
    "x_rule_id",
    "x_policy_digest",
)

# What a person declares by tags.
DIMENSIONS = ("business_line", "model_version", "environment", "tenant")

ABSENT = "-"
TAG = "x_tag_"
KEY_SEPARATOR = "\u001f"

# AWS writes these as rows of their own, beside the usage that they discount, and never with tags.
DISCOUNT_LINE_ITEM_TYPES = tuple(rule.line_item_type for rule in RULES if rule.is_discount)


def keys_by_dimension(present: Iterable[str], policy: Policy) -> dict[str, list[str]]:
    """Tag keys of a bill per dimension, as the bill writes them, the preferred first.

    Several keys of a bill can mean one key of the policy (`Team`, `user_team`, ` team`): they are taken
    in text order, after everything the policy prefers.
    """
    by_meaning: dict[str, list[str]] = {}
    for key in sorted(present):
        by_meaning.setdefault(policy.tags.normal_key(key), []).append(key)
    return {
        meaning.dimension: [key for name in meaning.keys for key in by_meaning.get(name, [])]
        for meaning in policy.tags.meanings
    }


def segment_starts(rules: Sequence[LineRule], first_day: date, last_day: date) -> list[date]:
    """First days of the stretches between two days on which no rule's validity changes; first_day leads."""
    changes = {rule.valid_from for rule in rules if rule.valid_from}
    changes |= {
        rule.valid_to + timedelta(days=1) for rule in rules if rule.valid_to and rule.valid_to < date.max
    }
    return [first_day, *sorted(day for day in changes if first_day < day <= last_day)]


def with_attribution_keys(
    lines: DataFrame, tag_keys: Mapping[str, Sequence[str]], policy: Policy, segments: Sequence[date]
) -> DataFrame:
    """Bill lines with KEY_COLUMNS added. One row per bill line.

    Texts are encoded so that absent and empty differ and equality needs no null handling: `-` is absent,
    `=value` is a value. Resources are part of the key only where the policy looks at them.
    """
    keys = list(dict.fromkeys(key for named in tag_keys.values() for key in named))
    columns = {key: F.col(f"{TAG}{number}") for number, key in enumerate(keys)}
    values = {name: [columns[key] for key in tag_keys[name]] for name in DIMENSIONS}
    uses_resources = any(rule.kind == "resource" for rule in policy.rules)
    segment = F.lit(0)
    for number, start in enumerate(segments[1:], start=1):
        segment = F.when(F.col("charge_period_start") >= F.lit(start).cast("timestamp"), number).otherwise(
            segment
        )
    # Looking into a map is dear: each key is looked up once, in a column of its own.
    looked_up = [F.trim(F.col("tags")[key]).alias(f"{TAG}{number}") for number, key in enumerate(keys)]
    keyed = lines.select("*", *looked_up).select(
        "*",
        *[_encoded(_first_value(values[name])).alias(f"key_{name}") for name in DIMENSIONS],
        _encoded(F.col("sub_account_id")).alias("key_account"),
        (_encoded(F.col("resource_id")) if uses_resources else F.lit(ABSENT)).alias("key_resource"),
        segment.alias("key_segment"),
        F.coalesce(F.size("tags") > 0, F.lit(False)).alias("key_tagged"),
        _any([value.isNotNull() for value in values["business_line"]]).alias("key_declares"),
        cannot_carry_a_tag().alias("key_untaggable"),
    )
    return keyed.drop(*[f"{TAG}{number}" for number in range(len(keys))])


def attribution_sets(keyed: DataFrame) -> DataFrame:
    """The distinct sets that rows are attributed by. One row per set."""
    return keyed.select(*KEY_COLUMNS).distinct()


def attribute_sets(sets: DataFrame, policy: Policy, segments: Sequence[date]) -> DataFrame:
    """Each set with its owner: KEY_COLUMNS and ATTRIBUTION_COLUMNS. One row per set, none lost."""
    value = _decoded(F.col("key_business_line"))
    named = sets.withColumn("tag_value", _normal(value)).withColumn("account", _decoded(F.col("key_account")))
    by_tag = _rules_frame(sets, policy, segments, "tag").select(
        F.col("match").alias("tag_value"),
        F.col("segment").alias("key_segment"),
        F.col("business_line").alias("tag_line"),
        F.col("rule_id").alias("tag_rule"),
    )
    by_account = _rules_frame(sets, policy, segments, "account").select(
        F.col("match").alias("account"),
        F.col("segment").alias("key_segment"),
        F.col("business_line").alias("account_line"),
        F.col("rule_id").alias("account_rule"),
    )
    matched = (
        named.join(F.broadcast(by_tag), on=["tag_value", "key_segment"], how="left")
        .join(F.broadcast(by_account), on=["account", "key_segment"], how="left")
        .withColumn("resource_rule", _resource_rule(policy, segments))
    )
    return _owned(matched, policy)


def attribute_lines(keyed: DataFrame, owners: DataFrame) -> DataFrame:
    """Bill lines with their owner; the key columns are gone. One row per bill line; unknown owners stay."""
    joined = keyed.join(owners, on=list(KEY_COLUMNS), how="left")
    return joined.drop(*KEY_COLUMNS)


def cannot_carry_a_tag() -> Column:
    """True for a row whose provider gives it no tags whatever was tagged: a discount row of CUR, a FOCUS credit."""
    by_type = F.col("x_line_item_type").isin(*DISCOUNT_LINE_ITEM_TYPES)
    by_category = F.col("x_line_item_type").isNull() & (F.col("charge_category") == "Credit")
    return F.coalesce(by_type | by_category, F.lit(False))


def present_keys(lines: DataFrame) -> set[str]:
    """Every tag key that occurs on these lines."""
    sets = lines.select(F.array_join(F.map_keys("tags"), KEY_SEPARATOR).alias("keys")).distinct().collect()
    return {key for row in sets if row["keys"] for key in row["keys"].split(KEY_SEPARATOR)}


def _owned(matched: DataFrame, policy: Policy) -> DataFrame:
    resource_lines = F.lit(None).cast("string")
    for rule in policy.rules:
        if rule.kind == "resource":
            resource_lines = F.when(F.col("resource_rule") == rule.rule_id, rule.business_line).otherwise(
                resource_lines
            )
    line = F.coalesce(F.col("tag_line"), resource_lines, F.col("account_line"))
    reason = (
        F.when(line.isNotNull(), F.lit(None).cast("string"))
        .when(F.col("key_declares"), "unknown_value")
        .when(F.col("key_tagged"), "key_absent")
        .when(F.col("key_untaggable"), "untaggable_discount")
        .otherwise("no_tag")
    )
    state = (
        F.when(F.col("tag_line").isNotNull(), "declared")
        .when(line.isNotNull(), "inherited")
        .otherwise("missing")
    )
    return matched.select(
        *KEY_COLUMNS,
        F.coalesce(line, F.lit(UNATTRIBUTED)).alias("x_business_line"),
        _decoded(F.col("key_model_version")).alias("x_model_version"),
        _decoded(F.col("key_environment")).alias("x_environment"),
        _decoded(F.col("key_tenant")).alias("x_tenant"),
        state.alias("x_attribution_state"),
        reason.alias("x_unattributed_reason"),
        F.coalesce("tag_rule", "resource_rule", "account_rule").alias("x_rule_id"),
        F.lit(policy.digest).alias("x_policy_digest"),
    )


def _rules_frame(sets: DataFrame, policy: Policy, segments: Sequence[date], kind: str) -> DataFrame:
    rows = [
        {"match": match, "segment": number, "business_line": rule.business_line, "rule_id": rule.rule_id}
        for rule in policy.rules
        if rule.kind == kind
        for match in _spellings(rule, policy)
        for number, start in enumerate(segments)
        if rule.covers(start)
    ]
    ddl = "match string, segment int, business_line string, rule_id string"
    return few_rows(sets.sparkSession, rows, ddl)


def _spellings(rule: LineRule, policy: Policy) -> list[str]:
    """Every normal value that a rule matches: its own, and the spellings that stand for it."""
    if rule.kind != "tag":
        return [rule.match]
    return [rule.match, *sorted(s for s, meant in policy.tags.spellings.items() if meant == rule.match != s)]


def _resource_rule(policy: Policy, segments: Sequence[date]) -> Column:
    found = F.lit(None).cast("string")
    resource = _decoded(F.col("key_resource"))
    for rule in policy.rules:
        if rule.kind != "resource":
            continue
        covered = [number for number, start in enumerate(segments) if rule.covers(start)]
        if covered:
            matches = resource.like(_like_pattern(rule.match)) & F.col("key_segment").isin(covered)
            found = F.when(matches, rule.rule_id).otherwise(found)
    return found


def _like_pattern(pattern: str) -> str:
    """A pattern with `*` as SQL LIKE's, every other sign taken as it stands."""
    escaped = pattern.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return escaped.replace("*", "%")


def _any(conditions: Sequence[Column]) -> Column:
    met = F.lit(False)
    for condition in conditions:
        met = met | condition
    return met


def _first_value(trimmed: Sequence[Column]) -> Column:
    """The first value that is more than space; else null."""
    filled = [F.when(value != "", value) for value in trimmed]
    return F.coalesce(*filled) if filled else F.lit(None).cast("string")


def _encoded(text: Column) -> Column:
    return F.coalesce(F.concat(F.lit("="), text), F.lit(ABSENT))


def _decoded(encoded: Column) -> Column:
    return F.when(encoded != ABSENT, F.substring(encoded, 2, 2_000_000_000))


def _normal(value: Column) -> Column:
    """`policies.normal_value` as a column; a test holds the two together."""
    trimmed = F.regexp_replace(value, f"^[{SPACE}]+|[{SPACE}]+$", "")
    return F.regexp_replace(F.lower(trimmed), f"[{SPACE}_\\-]+", "-")
