"""The policy: what is read, and what is refused with its file and row."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

import weighbridge
from weighbridge.errors import PolicyRefused
from weighbridge.policies import normal_key, normal_value, patterns_meet, read_policy

EXAMPLE = Path(weighbridge.__file__).parent / "policy"
HEAD = "rule_id,kind,match,business_line,owner,email,cost_centre,valid_from,valid_to\n"


def files(**changes: str) -> dict[str, bytes]:
    """The packaged example with some files replaced, named without their ending."""
    found = {path.name: path.read_bytes() for path in EXAMPLE.iterdir() if path.is_file()}
    for name, text in changes.items():
        found["business_lines.csv" if name == "lines" else f"{name}.yaml"] = text.encode()
    return found


def test_the_packaged_policy_can_be_read() -> None:
    policy = read_policy(files())
    assert policy.source("aws-main").format == "cur-2.0"
    assert len(policy.digest) == 64


def test_an_unknown_key_is_refused_by_name() -> None:
    with pytest.raises(PolicyRefused, match=r"sources.yaml.*unknown key 'landings'"):
        read_policy(files(sources="sources:\n  - {name: a, landings: b}\n"))


@pytest.mark.parametrize("hours", ["-1", "2.5", "soon", "true"])
def test_a_source_is_late_after_whole_hours_alone(hours: str) -> None:
    entry = f"{{name: a, provider: AWS, payer_account: '1', format: cur-2.0, landing: /b, late_after_hours: {hours}}}"
    with pytest.raises(
        PolicyRefused, match=r"sources.yaml.*late_after_hours must be a whole number of hours"
    ):
        read_policy(files(sources=f"sources:\n  - {entry}\n"))


def test_two_rules_for_one_tag_value_on_one_day_are_refused() -> None:
    lines = HEAD + "a,tag,Ads,One,,,,,\nb,tag,ads ,Two,,,,,\n"
    with pytest.raises(PolicyRefused, match="'a' and 'b' both match"):
        read_policy(files(lines=lines))


def test_a_spelling_counts_as_the_value_it_stands_for() -> None:
    lines = HEAD + "a,tag,ads,One,,,,,\nb,tag,Advertising,Two,,,,,\n"
    with pytest.raises(PolicyRefused, match="both match"):
        read_policy(files(lines=lines))


def test_two_rules_with_separate_validity_stand_side_by_side() -> None:
    lines = HEAD + "a,tag,ads,One,,,,,2026-05-31\nb,tag,ads,Two,,,,2026-06-01,\n"
    rules = read_policy(files(lines=lines)).rules
    assert [rule.covers(date(2026, 6, 1)) for rule in rules] == [False, True]
    assert [rule.covers(date(2026, 5, 31)) for rule in rules] == [True, False]


def test_overlapping_resource_patterns_are_refused() -> None:
    lines = HEAD + "a,resource,acme-*,One,,,,,\nb,resource,*-ads,Two,,,,,\n"
    with pytest.raises(PolicyRefused, match="both match"):
        read_policy(files(lines=lines))


def test_a_wrong_date_names_its_row() -> None:
    with pytest.raises(PolicyRefused, match=r"row 2: valid_from '31.01.2026'"):
        read_policy(files(lines=HEAD + "a,tag,ads,One,,,,31.01.2026,\n"))


def test_one_tag_key_cannot_mean_two_things() -> None:
    tags = "meanings: {business_line: [team], tenant: [user_team]}\nprefixes: ['user_']\n"
    with pytest.raises(PolicyRefused, match="'team' means both"):
        read_policy(files(tags=tags))


def test_a_changed_source_leaves_the_attribution_digest_and_a_changed_rule_does_not() -> None:
    before = read_policy(files()).digest
    assert read_policy(files(sources="sources: []\n")).digest == before
    assert read_policy(files(lines=HEAD + "a,tag,ads,One,,,,,\n")).digest != before


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        ("a*", "*b", True),
        ("abc", "abc", True),
        ("abc", "abd", False),
        ("a*c", "ab*", True),
        ("a*", "b*", False),
        ("*", "", True),
        ("a*b", "a*c", False),
    ],
)
def test_patterns_meet_where_a_text_matches_both(one: str, other: str, meet: bool) -> None:
    assert patterns_meet(one, other) is meet
    assert patterns_meet(other, one) is meet


def test_keys_and_values_are_compared_without_case_space_and_prefix() -> None:
    assert normal_key(" user_Business-Unit ", ("user_", "user:")) == "business_unit"
    assert normal_key("user:Team", ("user_", "user:")) == "team"
    assert normal_value("  Fraud \u00a0Detection_") == "fraud-detection-"
