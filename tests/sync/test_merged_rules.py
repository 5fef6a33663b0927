"""What opencode makes of its settings: each expectation is from `opencode debug config`."""

from __future__ import annotations

from typing import Any

import pytest

from rootsd.sync.merged_rules import AccessRule, folder_rules, without_denial

KEYS = ("permission", "external_directory")


def rules(*files: Any) -> list[tuple[str, str]]:  # noqa: ANN401 - JSON values
    found = folder_rules([{"permission": each} for each in files], KEYS)
    return [(rule.pattern, rule.action) for rule in found]


def outside(value: Any) -> dict[str, Any]:  # noqa: ANN401 - a JSON value
    return {"external_directory": value}


def test_a_key_keeps_its_first_place_and_its_last_value() -> None:
    assert rules(
        outside({"/a/**": "deny"}),
        outside({"/b/**": "deny", "*": "ask"}),
        outside({"/c/**": "deny", "/b/**": "allow"}),
    ) == [("/a/**", "deny"), ("/b/**", "allow"), ("*", "ask"), ("/c/**", "deny")]


def test_a_text_in_a_later_file_replaces_all_rules() -> None:
    assert rules(outside({"/a/**": "deny"}), outside("allow")) == [("*", "allow")]
    assert rules(outside({"/a/**": "deny"}), "allow") == [("/a/**", "deny"), ("*", "allow")]
    assert rules("allow", outside({"/a/**": "deny"})) == [("*", "allow"), ("/a/**", "deny")]
    assert rules({"read": "deny"}, None, []) == []


@pytest.mark.parametrize(
    ("pattern", "is_denied"),
    [("/a/**", True), ("/a*", True), ("/?/*", True), ("/b/**", False), ("/a", False)],
)
def test_a_denial_has_an_effect_if_its_pattern_matches(pattern: str, is_denied: bool) -> None:
    found = without_denial([AccessRule("*", "allow"), AccessRule(pattern, "deny")], ["/a"], "deny")
    assert found == ({} if is_denied else {"/a": '"*": "allow"'})


def test_the_last_rule_applies() -> None:
    written = [AccessRule("/a/**", "deny"), AccessRule("*", "ask")]
    assert without_denial(written, ["/a"], "deny") == {"/a": '"*": "ask"'}
    assert without_denial(written[::-1], ["/a"], "deny") == {}
    assert without_denial([], ["/a"], "deny") == {"/a": ""}
