"""Roots as they come from the daemon and from clients, and as servers get them."""

from __future__ import annotations

import pytest

from rootsd.relay.roots import Folder, folders_of, path_of, paths_of, roots_result


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///src/api", b"/src/api"),
        ("file://localhost/src/api/", b"/src/api"),
        ("file:///a%20b/%C3%A9", b"/a b/\xc3\xa9"),
        ("file:///src/../etc", None),
        ("file://other/src", None),
        ("https://x.example/src", None),
        ("/src/api", None),
        ("file:src", None),
        ("file:///a%00b", None),
        ("file://[", None),
    ],
)
def test_a_uri_is_a_path_on_this_machine_or_nothing(uri: str, path: bytes | None) -> None:
    assert path_of(uri) == path


@pytest.mark.parametrize(
    "result", [None, [], {}, {"roots": None}, {"roots": [None, {}, {"uri": 3}, {"uri": "x"}]}]
)
def test_what_is_no_list_of_roots_holds_none(result: object) -> None:
    assert folders_of(result) == ()
    assert paths_of(result) == ()


@pytest.mark.parametrize(
    ("meta", "writable"),
    [
        ({"_meta": {"rootsd/access": "read-write"}}, True),
        ({"_meta": {"rootsd/access": "read"}}, False),
        ({"_meta": {"rootsd/access": "append"}}, False),
        ({"_meta": None}, False),
        ({}, False),
    ],
)
def test_a_root_is_writable_only_where_the_daemon_says_so(
    meta: dict[str, object], writable: bool
) -> None:
    item = {"uri": "file:///src/api", "name": "api", **meta}
    assert folders_of({"roots": [item]}) == (Folder(b"/src/api", "api", writable),)


def test_a_path_that_is_not_utf8_is_no_root() -> None:
    item = {"uri": "file:///src/%ff", "name": "x", "_meta": {"rootsd/access": "read-write"}}
    assert folders_of({"roots": [item]}) == ()


def test_a_server_gets_uris_and_names_alone() -> None:
    told = roots_result([Folder(b"/a b", "x/y", writable=False)])
    assert told == {"roots": [{"uri": "file:///a%20b", "name": "x/y"}]}
