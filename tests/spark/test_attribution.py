"""Attribution: which rule wins, and what stays unattributed with its reason."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from weighbridge.billing.attribute import (
    attribute_lines,
    attribute_sets,
    attribution_sets,
    keys_by_dimension,
    segment_starts,
    with_attribution_keys,
)
from weighbridge.policies import LineRule, Policy, TagMeaning, TagPolicy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TAGS = TagPolicy(
    meanings=(
        TagMeaning("business_line", ("business_unit", "team")),
        TagMeaning("model_version", ("model_version",)),
        TagMeaning("environment", ("environment",)),
        TagMeaning("tenant", ("tenant",)),
    ),
    prefixes=("user_",),
    spellings={"advertising": "ads"},
)

RULES = (
    LineRule("by-tag", "tag", "ads", "Advertising", valid_to=date(2026, 10, 15)),
    LineRule("by-tag-later", "tag", "ads", "Marketing", valid_from=date(2026, 10, 16)),
    LineRule("by-resource", "resource", "acme-100%_*", "Search"),
    LineRule("by-account", "account", "42", "Fraud"),
)

SCHEMA = (
    "id string, charge_period_start timestamp, sub_account_id string, resource_id string, "
    "tags map<string,string>, x_line_item_type string, charge_category string, cost decimal(38,18)"
)


def attributed(spark: SparkSession, **lines: dict[str, Any]) -> dict[str, Any]:
    """The attribution of each named line; a line is given by what is special about it."""
    rows = []
    for name, line in lines.items():
        day = line.get("day", date(2026, 10, 3))
        rows.append(
            (
                name,
                datetime(day.year, day.month, day.day),
                line.get("account"),
                line.get("resource"),
                line.get("tags"),
                line.get("type", "Usage"),
                line.get("category", "Usage"),
                Decimal(1),
            )
        )
    policy = Policy((), TAGS, RULES, "digest")
    segments = segment_starts(RULES, date(2026, 10, 1), date(2026, 10, 31))
    present = {key for line in lines.values() for key in line.get("tags") or {}}
    keyed = with_attribution_keys(
        spark.createDataFrame(rows, SCHEMA), keys_by_dimension(present, policy), policy, segments
    )
    owners = attribute_sets(attribution_sets(keyed), policy, segments)
    return {row["id"]: row for row in attribute_lines(keyed, owners).collect()}


def test_the_tag_wins_over_the_resource_and_the_resource_over_the_account(spark: SparkSession) -> None:
    found = attributed(
        spark,
        tag={"tags": {"user_team": "ADS "}, "resource": "acme-100%_x", "account": "42"},
        spelt={"tags": {"user_Business-Unit": "Advertising"}},
        resource={"tags": {"user_team": "nobody"}, "resource": "acme-100%_x", "account": "42"},
        account={"resource": "acme-100x_x", "account": "42"},
        later={"tags": {"user_team": "ads"}, "day": date(2026, 10, 16)},
        last_day={"tags": {"user_team": "ads"}, "day": date(2026, 10, 15)},
    )
    assert {
        name: (row["x_business_line"], row["x_rule_id"], row["x_attribution_state"])
        for name, row in found.items()
    } == {
        "tag": ("Advertising", "by-tag", "declared"),
        "spelt": ("Advertising", "by-tag", "declared"),
        "resource": ("Search", "by-resource", "inherited"),
        "account": ("Fraud", "by-account", "inherited"),
        "later": ("Marketing", "by-tag-later", "declared"),
        "last_day": ("Advertising", "by-tag", "declared"),
    }


def test_untagged_money_stays_as_unattributed_with_the_reason(spark: SparkSession) -> None:
    found = attributed(
        spark,
        none={"tags": None},
        empty={"tags": {}},
        absent={"tags": {"user_name": "web-1"}},
        unknown={"tags": {"user_team": "skunkworks"}},
        blank={"tags": {"user_team": " "}},
        discount={"type": "EdpDiscount", "category": "Credit"},
    )
    assert {name: (row["x_business_line"], row["x_unattributed_reason"]) for name, row in found.items()} == {
        "none": ("unattributed", "no_tag"),
        "empty": ("unattributed", "no_tag"),
        "absent": ("unattributed", "key_absent"),
        "unknown": ("unattributed", "unknown_value"),
        "blank": ("unattributed", "unknown_value"),
        "discount": ("unattributed", "untaggable_discount"),
    }


def test_the_first_filled_key_that_the_policy_prefers_counts(spark: SparkSession) -> None:
    found = attributed(
        spark,
        both={
            "tags": {
                "user_team": "skunkworks",
                "user_business_unit": "ads",
                "user_model_version": " ranker-7 ",
            }
        },
        first_blank={"tags": {"user_team": "ads", "user_business_unit": ""}},
    )
    assert found["both"]["x_business_line"] == "Advertising"
    assert found["both"]["x_model_version"] == "ranker-7"
    assert found["first_blank"]["x_business_line"] == "Advertising"
