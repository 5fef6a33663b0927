"""The entries for each client: no path can mean more than its folder."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.sync.access import MAX_DENIALS, MAX_GRANTS, AccessLists, GrantedFolder, choose_access
from rootsd.sync.entries import EntryKind
from rootsd.sync.targets import TARGETS
from support.fake_daemon import an_item

CLAUDE = TARGETS["claude-code"]


def denied(*paths: str) -> list[dict[str, Any]]:
    return [an_item(path, path=path, verdict="denied") for path in paths]


def published(*paths: str, **changes: object) -> list[dict[str, Any]]:
    roots = {"published": True, "verdict": "approved", "tags": ["work"]}
    return [an_item(path, **{"path": path, **roots, **changes}) for path in paths]


def choose(
    denied: list[dict[str, Any]],
    published: list[dict[str, Any]],
    tag: str | None,
    is_written: Callable[[str], bool] = lambda _: False,
) -> AccessLists:
    """Return the lists for a client. Its own list has the paths that `is_written` says."""
    return choose_access(denied, published, tag, is_written)


def test_denials_are_written_without_a_tag_and_grants_only_with_one() -> None:
    lists = choose(denied("/s/x"), published("/s/a"), None)
    assert (lists.denied, lists.granted) == (("/s/x",), ())
    lists = choose(denied("/s/x"), published("/s/a"), "work")
    assert lists.granted == (GrantedFolder("/s/a", is_writable=True),)
    assert choose([], published("/s/a"), "home").granted == ()


def test_uris_and_roots_for_one_session_are_not_granted() -> None:
    others = [
        *published("/s/a", session="claude (41)"),
        *published("/s/b", published=False),
        *published("/s/c", kind="uri"),
        *published("/s/d", path=None),
    ]
    assert choose([], others, "work").granted == ()


def test_a_folder_in_a_denied_one_needs_no_entry() -> None:
    lists = choose(denied("/s/x/y", "/s/x", "/s/x-y", "/s/xy"), [], None)
    assert lists.denied == ("/s/x", "/s/x-y", "/s/xy")


def test_entries_beyond_the_limits_are_named() -> None:
    many = published(*(f"/s/{number:03}" for number in range(MAX_GRANTS + 2)))
    lists = choose(denied(*(f"/d/{number:03}" for number in range(MAX_DENIALS + 3))), many, "work")
    assert (len(lists.denied), len(lists.granted)) == (MAX_DENIALS, MAX_GRANTS)
    assert [text.partition(" ")[0] for text in lists.omitted] == ["3", "2"]


def test_beyond_the_limit_a_denial_that_a_client_has_is_not_replaced() -> None:
    others = [f"/d/{number:03}" for number in range(MAX_DENIALS)]
    written = {"/z/last", "/y/inner/deep"}
    paths = (*others, "/z/last", "/y/inner", "/y/inner/deep")
    lists = choose(denied(*paths), [], None, written.__contains__)
    assert lists.denied == (*others[: MAX_DENIALS - 2], "/y/inner", "/z/last")
    assert "/z/last" not in choose(denied(*paths), [], None).denied, "the control"


def test_a_denied_path_that_is_not_utf8_is_named() -> None:
    items = [an_item("odd", path=None, path_b64="L3M=", verdict="denied")]
    assert choose(items, [], None).omitted


def test_claude_code_denies_reading_and_editing() -> None:
    wanted = CLAUDE.entries(AccessLists(("/s/x",), (GrantedFolder("/s/a", is_writable=True),)))
    assert [(entry.keys[-1], entry.name, entry.kind) for entry in wanted.entries] == [
        ("deny", "Read(//s/x/**)", EntryKind.DENIAL),
        ("deny", "Edit(//s/x/**)", EntryKind.DENIAL),
        ("additionalDirectories", "/s/a", EntryKind.GRANT),
    ]


def test_a_read_only_root_is_opened_without_the_right_to_edit() -> None:
    lists = AccessLists((), (GrantedFolder("/s/a", is_writable=False),))
    names = [(entry.name, entry.kind) for entry in CLAUDE.entries(lists).entries]
    assert names == [("Edit(//s/a/**)", EntryKind.GRANT), ("/s/a", EntryKind.GRANT)]


def test_codex_gets_a_table_that_adds_to_its_default() -> None:
    entries = TARGETS["codex"].entries(AccessLists(("/s/x",))).entries
    assert [(entry.keys[2:], entry.name, entry.value, entry.kind) for entry in entries] == [
        ((), "extends", ":workspace", EntryKind.DENIAL),
        (("filesystem",), "/s/x", "deny", EntryKind.DENIAL),
    ]


# What the pattern of a client cannot say, because it has another meaning and no escape.
SPECIAL = {
    "claude-code": "?\\", "opencode": "*?\\", "kilo": "*?\\", "codex": "*?[]",
}  # fmt: skip


@pytest.mark.parametrize("name", TARGETS)
@given(path=st.text(min_size=1, max_size=6).map(lambda text: f"/s/{text}"))
def test_no_path_has_a_special_character_or_an_invisible_one(name: str, path: str) -> None:
    target = TARGETS[name]
    lists = AccessLists((path,), (GrantedFolder(path, is_writable=True),))
    wanted = target.entries(lists)
    entries = [entry for entry in wanted.entries if entry not in target.always]
    written = {entry.kind for entry in entries}
    for entry in entries:
        shown = re.sub(r"\\([*\[\]])", r"\1", entry.name) if name == "claude-code" else entry.name
        assert path in shown
        assert entry.name.isprintable()
        if shown != path:  # a pattern
            rest = shown.replace(path, "")
            assert rest in ("Read(/" + "/**)", "Edit(/" + "/**)", "/**")
            assert not set(SPECIAL[name]) & set(path)
    possible = {EntryKind.DENIAL, *([EntryKind.GRANT] if target.format.grant else [])}
    missing = possible - written
    assert len(wanted.outcome.omitted) == len(missing), "what is left out is named"


ODD_NAMES = [
    "R&D", "it's", "a,b", "x(y)", "a) b", "s{t}", "!bang", "#h", "~t", "d$e", "50%", "a^b", "a;b",
    "a<b>", "a|b", "a`b", 'a"b', "a@b", "a+b", "a=b", "a b", "c:d",
]  # fmt: skip


@pytest.mark.parametrize("name", ["claude-code", "codex", "opencode"])
def test_ordinary_names_are_denied_as_they_are(name: str) -> None:
    """The real programs were run with each: `make agents` runs some of them."""
    paths = tuple(f"/s/{odd}" for odd in sorted(ODD_NAMES))
    wanted = TARGETS[name].entries(AccessLists(paths))
    assert (wanted.outcome.denied, wanted.outcome.omitted) == (len(paths), ())
    front, end = {"claude-code": ("Read(/", "/**)"), "codex": ("", "")}.get(name, ("", "/**"))
    assert {f"{front}{path}{end}" for path in paths} <= {entry.name for entry in wanted.entries}


def test_wildcards_in_a_name_are_escaped_for_claude_code() -> None:
    [read, edit] = CLAUDE.entries(AccessLists(("/s/a*[b]",))).entries
    assert (read.name, edit.name) == (
        r"Read(//s/a\*\[b\]/**)", r"Edit(//s/a\*\[b\]/**)",
    )  # fmt: skip


@pytest.mark.parametrize("path", ["/s/a?", "/s/a\\b", "/s/x\n/y", "/s/x ", "/s/x /y", "/s/\u202e"])
def test_a_pattern_character_is_never_written_for_claude_code(path: str) -> None:
    wanted = CLAUDE.entries(AccessLists((path,)))
    assert (wanted.entries, len(wanted.outcome.omitted)) == ((), 1)
