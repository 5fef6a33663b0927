"""The published set as JSON."""

from __future__ import annotations

import json

import pytest

from rootsd.core.access import Access
from rootsd.core.model import (
    ProjectKind,
    PublishedRoot,
    PublishedSet,
)
from rootsd.core.scope import UriFilter
from rootsd.mcp.serializers import (
    approved_resource_text,
    quoted,
    root_by_name,
    root_by_uri,
    root_resource_text,
    root_to_json,
    root_to_line,
    root_uri,
    roots_result,
)
from support.mcp_harness import root

ODD = root("/src/a b\u202ec%", name="a b\u202ec%/\N{SNOWMAN}")
DOCS = root("https://docs.example/v1", name="docs", kind=ProjectKind.URI, tags=("web",))


def test_a_folder_is_shown_with_its_path_and_a_safe_label() -> None:
    assert root_to_json(ODD) == {
        "name": "a b\\u{202e}c%/\N{SNOWMAN}",
        "path": "/src/a b\u202ec%",
        "uri": "file:///src/a%20b%E2%80%AEc%25",
        "kind": "git",
        "access": "read-write",
        "tags": [],
    }


def test_a_root_that_is_not_a_folder_has_no_path() -> None:
    assert root_to_json(DOCS)["path"] is None
    assert root_to_json(DOCS)["uri"] == "https://docs.example/v1"


def test_a_line_for_a_model_has_name_path_and_access() -> None:
    assert root_to_line(root("/src/api")) == "- api: /src/api (read-write)"
    assert root_to_line(DOCS) == "- docs: https://docs.example/v1 (read-write)"
    reads = PublishedRoot(b"/src/Jos\xc3\xa9", "José", ProjectKind.GIT, Access.READ, ())
    assert root_to_line(reads) == "- José: /src/José (read only)"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("x: /etc (read-write)", '"x: /etc (read-write)"'),
        ('a", "b', '"a\\", \\"b"'),
        ("", '""'),
        ("a\nb", '"a\\nb"'),
        ("a\u202eb", '"a\\u202eb"'),
        ("a\u2028b", '"a\\u2028b"'),
        ("e\u0301" + "\u0301" * 9, '"e' + "\\u0301" * 10 + '"'),
        ("a\\b", '"a\\\\b"'),
        ("\udcff", '"\\udcff"'),
        ("a, b", '"a, b"'),
        ("acme/api-2.0_x", "acme/api-2.0_x"),
    ],
)
def test_a_name_with_special_characters_is_a_json_string(name: str, shown: str) -> None:
    assert quoted(name) == shown
    if shown.startswith('"'):
        assert json.loads(shown) == name


def test_mcp_roots_are_only_folders_unless_a_connection_accepts_any_uri() -> None:
    published = PublishedSet(9, (ODD, DOCS))
    shown = {
        uris: [item["uri"] for item in roots_result(published, uris)["roots"]]
        for uris in UriFilter
    }
    assert shown == {
        UriFilter.FILE: [ODD.uri],
        UriFilter.ANY: [ODD.uri, "https://docs.example/v1"],
    }


def test_the_approved_resource_holds_the_mcp_roots_and_the_revision() -> None:
    published = PublishedSet(9, (ODD, DOCS))
    for uris in UriFilter:
        shown = json.loads(approved_resource_text(published, uris))
        assert shown == {**roots_result(published, uris), "revision": 9}


def test_the_resource_of_a_root_is_its_json() -> None:
    assert json.loads(root_resource_text(ODD)) == root_to_json(ODD)


@pytest.mark.parametrize(
    "name", ["api", "acme/api", "a b", "100%", "a%2Fb", "?#&+", "\N{SNOWMAN}", "\udcff", "."]
)
def test_any_name_is_found_again_by_its_uri(name: str) -> None:
    wanted = root("/src/wanted", name=name)
    published = PublishedSet(1, (root("/src/other"), wanted))
    uri = root_uri(name)
    assert uri.isascii()
    assert root_by_uri(uri, published) is wanted


def test_a_label_finds_its_root_unless_another_root_has_that_name() -> None:
    odd = root("/src/odd", name="odd\u202e")
    published = PublishedSet(1, (odd,))
    assert root_by_name("odd\\u{202e}", published) is odd
    plain = root("/src/plain", name="odd\\u{202e}")
    assert root_by_name("odd\\u{202e}", PublishedSet(2, (odd, plain))) is plain


@pytest.mark.parametrize("uri", ["roots://root/nobody", "roots://approved", "file:///src/x", ""])
def test_other_uris_find_no_root(uri: str) -> None:
    nameless: PublishedRoot = root("/src/x", name="x")
    assert root_by_uri(uri, PublishedSet(1, (nameless,))) is None
