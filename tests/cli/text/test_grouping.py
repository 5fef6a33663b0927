"""Projects below their folders: few headings, no path lost, nothing wider than the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.cli.text.grouping import by_folder, grouped_table
from rootsd.cli.text.layout import width
from rootsd.cli.text.projects import FOUND, ID, KIND, NAME, NOTE, OWNER, PATH, RISK
from rootsd.core.labels import safe_label
from support.fake_daemon import FakeDaemon, a_listing, an_item
from support.sample_answers import RISKY_ITEMS
from support.terminal import Shell

COLUMNS = (ID, NAME, KIND, PATH, FOUND, OWNER, RISK, NOTE)


def _items(*paths: str, parent: str | None = "/src") -> list[dict[str, Any]]:
    return [
        an_item(path.rpartition("/")[2], id=f"i{number}", path=path, parent=parent)
        for number, path in enumerate(paths)
    ]


def _grouped(items: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    return {group.folder: [item["path"] for item in group.items] for group in by_folder(items)}


def test_projects_are_grouped_by_the_folder_above_them() -> None:
    assert _grouped(_items("/src/a/x", "/src/a/y", "/src/b/x", "/src/b/y")) == {
        "/src/a": ["/src/a/x", "/src/a/y"],
        "/src/b": ["/src/b/x", "/src/b/y"],
    }


def test_a_project_alone_in_its_folder_moves_up_to_others_or_to_the_parent() -> None:
    paths = ("/src/a/b/c/x", "/src/a/y", "/src/d/z", "/src/e/f/w")
    assert _grouped(_items(*paths)) == {
        "/src/a": ["/src/a/b/c/x", "/src/a/y"],
        "/src": ["/src/d/z", "/src/e/f/w"],
    }
    assert _grouped(_items("/src/a/x")) == {"/src": ["/src/a/x"]}
    assert _grouped(_items("/src/a/x", parent=None)) == {"/src/a": ["/src/a/x"]}
    assert _grouped(_items("/x", parent="/")) == {"/": ["/x"]}


def test_the_order_of_the_listing_is_kept() -> None:
    items = _items("/src/b/2", "/src/a/2", "/src/b/1", "/src/a/1")
    assert list(_grouped(items)) == ["/src/b", "/src/a"]
    assert _grouped(items)["/src/b"] == ["/src/b/2", "/src/b/1"]


def test_uris_have_a_group_of_their_own() -> None:
    uri = an_item("api", id="u", path=None, uri="https://example.org/v1", kind="uri", parent=None)
    *_, last = by_folder([*_items("/src/a/x"), uri])
    assert (last.heading, last.path_below(uri)) == ("URIs", "https://example.org/v1")


def test_a_path_is_shown_only_if_heading_and_name_do_not_say_it() -> None:
    items = _items("/src/acme/api", "/src/web", "/src/x/odd")
    items[0]["name"], items[2]["name"] = "acme/api", "even"
    groups = by_folder(items)
    assert [groups[0].path_below(item) for item in items] == ["", "", "x/odd"]
    _, columns = grouped_table(groups, COLUMNS)
    assert [column.title for column in columns] == [
        "ID",
        "NAME",
        "KIND",
        "PATH",
        "FOUND",
        "RISK",
        "NOTE",
    ]
    _, columns = grouped_table(by_folder(items[1:2]), COLUMNS)
    assert "PATH" not in [column.title for column in columns]


def test_an_owner_that_all_share_is_in_the_heading() -> None:
    items = _items("/src/a/x", "/src/a/y", "/src/b/x", "/src/b/y")
    for item, owner in zip(items, ("h/a", "h/a", "h/a", "h/b"), strict=True):
        item["origin_owner"] = owner
    groups, columns = grouped_table(by_folder(items), COLUMNS)
    assert [(group.heading, group.remark) for group in groups] == [
        ("/src/a", "h/a"),
        ("/src/b", ""),
    ]
    (owner_column,) = (column for column in columns if column.title == "FROM")
    shown = [owner_column.text(item, for_terminal=True) for item in items]
    assert shown == ["", "", "h/a", "h/b"]


NAMES = st.text(st.sampled_from("ab1-_.\u65e5\U0001f600e\u0301\x1b\u202e"), min_size=1, max_size=9)
FOLDERS = st.lists(NAMES, min_size=1, max_size=5).map(lambda names: "/src/" + "/".join(names))
OWNERS = st.none() | NAMES.map(lambda name: f"github.com/{name}")


@given(st.lists(st.tuples(FOLDERS, OWNERS), max_size=8, unique_by=lambda each: each[0]))
def test_no_project_and_no_part_of_a_path_is_lost(drawn: list[tuple[str, str | None]]) -> None:
    items = _items(*(path for path, _ in drawn))
    for each, (_, owner) in zip(items, drawn, strict=True):
        each["origin_owner"] = owner
    groups = by_folder(items)
    assert sorted(item["id"] for group in groups for item in group.items) == sorted(
        item["id"] for item in items
    )
    for group in groups:
        for item in group.items:
            end = group.path_below(item) or item["name"]
            assert f"{group.folder.rstrip('/')}/{end}" == item["path"]
            assert group.owner in ("", item["origin_owner"])


@pytest.mark.parametrize("columns", [24, 40, 60, 80, 120])
@pytest.mark.parametrize("verb", ["pending", "ls"])
def test_hostile_names_and_risks_fit_the_terminal_and_are_complete(
    daemon: FakeDaemon, shell: Shell, monkeypatch: pytest.MonkeyPatch, verb: str, columns: int
) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    daemon.answers["projects"] = a_listing(*RISKY_ITEMS)
    words = (verb,) if verb == "pending" else (verb, "--risk", "any")
    out = shell.run_on_terminal(*words, columns=columns).out
    lines = [line for line in out.splitlines() if not line.startswith(("4 need", "  rootsd"))]
    assert all(width(line) <= columns for line in lines)
    assert not {"\x1b", "\u202e"} & set(out)
    whole = "".join(lines).replace(" ", "")
    for item in RISKY_ITEMS:
        for text in (item["risk"], item["note"], item.get("origin_owner")):
            assert not text or safe_label(text, limit=None).replace(" ", "") in whole
