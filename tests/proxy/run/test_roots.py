"""Roots as the daemon and clients send them, and as servers get them."""

from __future__ import annotations

import pytest

from rootsd.proxy.run.roots import (
    RootFolder,
    make_roots_result,
    parse_client_roots,
    parse_daemon_roots,
    path_of_uri,
)


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
def test_only_local_file_uris_have_a_path(uri: str, path: bytes | None) -> None:
    assert path_of_uri(uri) == path


@pytest.mark.parametrize(
    "result", [None, [], {}, {"roots": None}, {"roots": [None, {}, {"uri": 3}, {"uri": "x"}]}]
)
def test_an_invalid_result_has_no_roots(result: object) -> None:
    assert parse_daemon_roots(result) == ()
    assert parse_client_roots(result) == ()


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
    assert parse_daemon_roots({"roots": [item]}) == (RootFolder(b"/src/api", "api", writable),)


def test_a_path_that_is_not_utf8_is_not_a_root() -> None:
    item = {"uri": "file:///src/%ff", "name": "x", "_meta": {"rootsd/access": "read-write"}}
    assert parse_daemon_roots({"roots": [item]}) == ()


def test_a_server_gets_only_uris_and_names() -> None:
    told = make_roots_result([RootFolder(b"/a b", "x/y", writable=False)])
    assert told == {"roots": [{"uri": "file:///a%20b", "name": "x/y"}]}
