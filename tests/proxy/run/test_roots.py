"""Roots as the daemon and clients send them, and as servers get them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rootsd.proxy import client_roots
from rootsd.proxy.client_roots import client_paths, parse_client_roots, path_of_uri
from rootsd.proxy.run import folder_check
from rootsd.proxy.run.outbox import Outbox
from rootsd.proxy.run.root_policies import AccessPolicy, ClientRootsPolicy
from rootsd.proxy.run.roots import (
    RootFolder,
    RootsFilter,
    RootsProvider,
    make_roots_result,
    parse_daemon_roots,
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
        ("file:///src/api#x", None),
        ("file:///src/api?x", None),
        ("file:///src/a\tb", None),
        ("file:///src/é", None),
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


FOLDERS = ("a", "a#b", "a?b", "a b", "100%", "50%25", "c%20d", "both x", "both%20x", "é", "q%3Fr")
FOLDERS_MEANT = [
    ("file://{here}/a", "a"),
    ("FILE://{here}/a/", "a"),
    ("file://LOCALHOST{here}/a", "a"),
    ("file:{here}/a", "a"),
    ("file:///{here}/a", "a"),
    ("{here}/a", "a"),
    ("{here}/a b", "a b"),
    ("{here}/a%20b", None),
    ("file://{here}/a#b", "a#b"),
    ("file://{here}/a%23b", "a#b"),
    ("file://{here}/a#c", None),
    ("file://{here}/a?b", "a?b"),
    ("file://{here}/a?c", None),
    ("file://{here}/a b", "a b"),
    ("file://{here}/a%20b", "a b"),
    ("file://{here}/100%", "100%"),
    ("file://{here}/100%25", "100%"),
    ("file://{here}/50%25", "50%25"),
    ("file://{here}/50%2525", "50%25"),
    ("file://{here}/c%20d", "c%20d"),
    ("{here}/c%20d", "c%20d"),
    ("file://{here}/both%20x", None),
    ("file://{here}/both%2520x", "both%20x"),
    ("file://{here}/both x", "both x"),
    ("file://{here}/é", "é"),
    ("file://{here}/%C3%A9", "é"),
    ("file://{here}/q?r", None),
    ("file://{here}/a%2F", None),
    ("file://{here}/x%2F..%2Fa", None),
    ("file://{here}/%2e/a", None),
    ("file://{here}/a%00", None),
    ("file://{here}/a\t", None),
    ("file://{here}/a\n", None),
    (" file://{here}/a", None),
    ("file://{here}/a ", None),
    ("file://other{here}/a", None),
    ("file://localhost:80{here}/a", None),
    ("file://me@localhost{here}/a", None),
    ("https://localhost{here}/a", None),
    ("vscode-remote://x{here}/a", None),
    ("file:a", None),
    ("a", None),
    ("", None),
    ("\ud800", None),
    ("file://{here}/\ud800", None),
]


def the_folder(here: Path, uri: str) -> str | None:
    """Return the name of the folder that counts as the client's, in the folder `here`."""
    policy = ClientRootsPolicy.REPORT
    roots_filter = RootsFilter(policy, AccessPolicy.WRITABLE, None)
    provider = RootsProvider(roots_filter, Outbox(), folder_check, None)
    provider.set_client_roots({"roots": [{"uri": uri.format(here=here)}]})
    found = [Path(path.decode()) for path in roots_filter.client_folders or ()]
    assert all(path.parent == here for path in found)
    return found[0].name if found else None


@pytest.mark.parametrize(("uri", "meant"), FOLDERS_MEANT)
def test_a_clients_uri_means_the_folder_that_the_client_means(
    uri: str, meant: str | None, tmp_path: Path
) -> None:
    for name in FOLDERS:
        (tmp_path / name).mkdir()
    assert the_folder(tmp_path.resolve(), uri) == meant


def test_this_test_detects_a_fragment_that_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(uri: str) -> tuple[bytes, ...]:
        return client_paths(uri.partition("#")[0])

    monkeypatch.setattr(client_roots, "client_paths", cut)
    (tmp_path / "a").mkdir()
    assert the_folder(tmp_path.resolve(), "file://{here}/a#b") == "a"
