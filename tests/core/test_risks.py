"""The words for the risks of a project."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.core.risks import FindingItem, FindingKind, Risk, describe_risks, risks_in


def _finding(concern: FindingKind, path: str, detail: str = "") -> FindingItem:
    return FindingItem(concern=concern.value, path=path, detail=detail)


def _executed(*paths: str) -> list[FindingItem]:
    return [_finding(FindingKind.EXECUTED, path) for path in paths]


def _secret(*paths: str) -> list[FindingItem]:
    return [_finding(FindingKind.SENSITIVE, path) for path in paths]


@pytest.mark.parametrize(
    ("findings", "words"),
    [
        ([], ""),
        ([_finding(FindingKind.NESTED, "x", "git")], ""),
        (_executed(".mcp.json"), "runs code: .mcp.json"),
        (
            [*_secret(".env"), *_executed(".mcp.json", ".git/hooks/b", ".git/hooks/a", ".husky/")],
            "runs code: .mcp.json, hooks, .husky; secrets: .env",
        ),
        (
            [_finding(FindingKind.EXECUTED, ".git/config", f"core.{n}") for n in range(3)],
            "runs code: git config",
        ),
        (
            _secret("a.pem", "b.pem", "c.pem", "d.pem", "e.pem"),
            "secrets: a.pem, b.pem, c.pem, 2 more",
        ),
        ([_finding(FindingKind.ELSEWHERE, ".git", "/srv/x")], "git data outside: /srv/x"),
        (_secret("a b/c.pem"), "secrets: a b/c.pem"),
        (_secret("x; runs code: y.pem"), 'secrets: "x; runs code: y.pem"'),
        (_secret(" .pem"), 'secrets: " .pem"'),
        (_secret("x" * 60 + ".pem"), "secrets: " + "x" * 39 + "\u2026"),
    ],
)
def test_risks_are_described_by_weight(findings: list[FindingItem], words: str) -> None:
    assert describe_risks(findings, is_whole=True) == words


def test_a_project_that_was_not_read_to_its_end_may_have_more_risks() -> None:
    assert describe_risks(_secret(".env"), is_whole=False) == "secrets: .env; ?"
    assert describe_risks([], is_whole=False) == "?"


@given(st.lists(st.tuples(st.sampled_from(FindingKind), st.text(), st.text()), max_size=9))
def test_the_words_are_short_whatever_the_names_are(
    drawn: list[tuple[FindingKind, str, str]],
) -> None:
    findings = [_finding(*one) for one in drawn]
    words = describe_risks(findings, is_whole=True)
    assert len(words) < 500
    assert bool(words) is bool(risks_in(findings))
    assert list(risks_in(findings)) == [risk for risk in Risk if risk in risks_in(findings)]
