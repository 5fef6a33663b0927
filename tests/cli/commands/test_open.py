"""`rootsd open`."""

from __future__ import annotations

import json
import subprocess
import sys
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from support.fake_daemon import FakeDaemon, a_listing, an_item
from support.terminal import HANG_GUARD, Shell

ROOT: dict[str, Any] = {"verdict": "approved", "published": True}
RAW = b"/src/\xff\x1b[2J \n"
ODD = an_item("odd", id="q1zd", path=None, path_b64=b64encode(RAW).decode(), uri=None, **ROOT)


def test_the_path_of_a_root_is_printed(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["projects"] = a_listing(an_item("acme/api", **ROOT))
    done = shell.run("open", "acme/api")
    assert (done.status, done.out, done.err) == (0, "/src/acme/api\n", "")
    asked = {"cwd": str(Path.cwd()), "refs": ["acme/api"], "select": "named"}
    assert daemon.asked("projects") == [asked]
    assert json.loads(shell.run("open", "api", "--json").out)["items"][0]["name"] == "acme/api"


def test_a_program_gets_the_exact_bytes_and_a_terminal_a_safe_label(
    daemon: FakeDaemon, shell: Shell
) -> None:
    daemon.answers["projects"] = a_listing(ODD)
    for flags, end in (((), b"\n"), (("-0",), b"\0")):
        words = [sys.executable, "-m", "rootsd", "open", *flags, "--", "odd"]
        done = subprocess.run(words, capture_output=True, check=True, timeout=HANG_GUARD)
        assert done.stdout == RAW + end
    assert shell.terminal("open", "odd").out == "/src/\\xff\\u{1b}[2J \\u{a}\n"


@pytest.mark.parametrize(
    ("changes", "status", "message"),
    [
        ({}, 3, "error: api is pending\n  try: rootsd approve r7k2\n"),
        ({"lapsed": "replaced"}, 3, "error: api lapsed: replaced\n  try: rootsd approve r7k2\n"),
        ({"verdict": "denied"}, 4, "error: api is denied\n  try: rootsd show r7k2\n"),
        (
            {"verdict": "approved", "presence": "missing"},
            1,
            "error: api is approved, but not published now: it is missing\n"
            "  try: rootsd show r7k2\n",
        ),
        (
            {**ROOT, "kind": "uri", "path": None, "uri": "https://example.com"},
            1,
            "error: api is a URI, not a folder\n  try: rootsd show r7k2\n",
        ),
    ],
)
def test_a_project_that_is_no_open_folder_says_why(
    daemon: FakeDaemon, shell: Shell, changes: dict[str, Any], status: int, message: str
) -> None:
    daemon.answers["projects"] = a_listing(an_item(**changes))
    done = shell.run("open", "api")
    assert (done.status, done.out, done.err) == (status, "", message)


def test_several_matches_are_listed_and_roots_come_first(daemon: FakeDaemon, shell: Shell) -> None:
    pending, web = an_item("acme/api"), an_item("acme/web", id="w2w2", **ROOT)
    odd = an_item("$(touch x)", id="x1x1", **ROOT)
    daemon.answers["projects"] = a_listing(pending, web, odd)
    done = shell.run("open", "*")
    assert (done.status, done.out) == (6, "")
    assert done.err == (
        "error: * matches 2 roots\n  try: rootsd open acme/web\n       rootsd open x1x1\n"
    )
    daemon.answers["projects"] = a_listing(pending, web)
    assert shell.run("open", "acme/*").out == "/src/acme/web\n"
    daemon.answers["projects"] = a_listing(pending, an_item("acme/old", id="p2p2"))
    done = shell.run("open", "acme/*")
    assert (done.status, done.out) == (6, "")
    assert "2 projects, and none of them is a root" in done.err
