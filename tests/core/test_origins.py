"""Addresses are told apart by host and path, and nothing but a plain one is an origin."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rootsd.core.inputs import AddRule, ProjectInspected
from rootsd.core.model import Inspection, Verdict
from rootsd.core.origins import address_of, claimed_place, normalize_origin
from rootsd.disk.git_settings import read_settings
from support.core_samples import ANN, NOTHING_KNOWN, after, identity, seen

API = b"/home/ann/work/api"
_NAME = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._]{0,8}", fullmatch=True).filter(
    lambda name: not name.endswith(".git")
)
_HOST = st.from_regex(r"[a-z0-9][a-z0-9.]{0,12}", fullmatch=True)


def _is_published(pattern: str, origin: str | None) -> bool:
    """Return whether a rule with this pattern publishes a project that claims this origin."""
    rule = AddRule(b"/home/ann/work/**", Verdict.APPROVED, ANN, normalize_origin(pattern))
    look = ProjectInspected(API, identity(1), Inspection(b"1", origin, "", ()))
    return API in after(NOTHING_KNOWN, rule, seen(API), look).roots


@given(_HOST, _NAME, _NAME)
def test_every_spelling_of_an_address_is_one_place(host: str, owner: str, name: str) -> None:
    spellings = [
        f"https://{host}/{owner}/{name}",
        f"https://{host.upper()}:443/{owner}/{name}.git",
        f"https://ann:secret@{host}/{owner}/{name}/",
        f"ssh://git@{host}:22/{owner}/{name}.git",
        f"git@{host}:{owner}/{name}.git",
        f"{host}:/{owner}/{name}",
    ]
    places = {None if (a := address_of(each.encode())) is None else a.place for each in spellings}
    assert places == {f"{host}/{owner}/{name}"}
    assert {normalize_origin(each) for each in spellings} == places


@given(_HOST, _NAME, _NAME)
@example("github.com.evil", "acme", "api")
@example("xgithub.com", "acme", "api")
@example("github.com", "acme.evil", "api")
@example("github.com", "Acme", "api")
def test_a_pattern_covers_only_what_is_in_that_folder_of_that_host(
    host: str, owner: str, name: str
) -> None:
    is_meant = (host, owner) == ("github.com", "acme")
    assert _is_published("github.com/acme/*", f"{host}/{owner}/{name}") is is_meant


def test_a_pattern_covers_everything_below_a_match() -> None:
    assert _is_published("github.com/acme/*", "github.com/acme/api")
    assert _is_published("https://GitHub.com/acme/api.git", "github.com/acme/api")
    assert _is_published("gitlab.com/acme", "gitlab.com/acme/deep/er/api")
    assert _is_published("*.acme.org/**/api", "git.acme.org/team/api")
    assert not _is_published("*.acme.org/**/api", "acme.org/api")
    assert not _is_published("github.com/acme/api", "github.com/acme/api-evil")


@pytest.mark.parametrize(
    "typed",
    [
        "", "*", "**", "*/acme", "github.com", "git*.com/acme", "github.com/acme/*\n", "a b/c",
        "https://github.com/acme/*", "../acme/*", "github.com/\u0430cme/*", "/srv/git/*",
    ],
)  # fmt: skip
def test_a_pattern_needs_a_plain_host_and_a_path(typed: str) -> None:
    assert normalize_origin(typed) is None


_PLAIN = '[remote "origin"]\nurl = https://github.com/acme/api\n'


@pytest.mark.parametrize(
    ("more", "is_one"),
    [
        ("", True),
        ("pushurl = git@github.com:acme/api.git\n", True),
        ('[remote "fork"]\nurl = https://github.com/mallory/api\n', True),
        ('[url "https://github.com/acme/"]\nunrelated = x\n', True),
        ("url = https://github.com/mallory/api\n", False),
        ("pushurl = https://github.com/mallory/api\n", False),
        ("pushurl = /tmp/api\n", False),
        ('[url "https://evil.org/"]\ninsteadOf = https://github.com/\n', False),
        ('[url "https://evil.org/"]\npushInsteadOf = https://github.com/\n', False),
        ("[include]\npath = ../evil\n", False),
        ('[includeIf "gitdir:/"]\npath = ../evil\n', False),
    ],
)
def test_settings_that_lead_git_elsewhere_claim_no_origin(more: str, *, is_one: bool) -> None:
    place = claimed_place(read_settings((_PLAIN + more).encode()))
    assert place == ("github.com/acme/api" if is_one else None)


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/acme/a\\npi", "https://g\u0456thub.com/acme/api", "/srv/acme/api",
        "https://github.com/acme/../mallory/api", "ext::sh -c x", "-u/acme", "https://github.com",
        "https://github.com@evil.org@github.com/acme/api", "file:///github.com/acme/api",
        "https://github.com/acme/api?x=evil", "https://github.com%2f@evil/acme/api",
    ],
)  # fmt: skip
def test_an_address_that_tools_may_read_in_two_ways_is_no_origin(url: str) -> None:
    text = f'[remote "origin"]\nurl = "{url}"\n'.encode()
    assert claimed_place(read_settings(text)) is None
    plain = re.sub(r"= .*", '= "https://github.com/acme/api"', text.decode()).encode()
    assert claimed_place(read_settings(plain)) == "github.com/acme/api"


def test_no_address_without_origin_is_an_origin() -> None:
    assert (
        claimed_place(read_settings(b'[remote "x"]\nurl = https://github.com/acme/api\n')) is None
    )
