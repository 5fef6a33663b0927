"""`rootsd add-to-session` adds what a person named, and nothing else."""

from __future__ import annotations

import pytest

from support.fake_daemon import FakeDaemon, a_listing, an_item
from support.terminal import Shell

ROOT = {"verdict": "approved", "published": True}


@pytest.fixture(autouse=True)
def program(daemon: FakeDaemon) -> None:
    """A program behind the wall, and two roots whose names end with `web`."""
    daemon.answers["sessions"] = {"items": [], "confined": [{"id": "s1", "name": "a", "pid": 7}]}
    daemon.answers["projects"] = a_listing(an_item("a/web", **ROOT), an_item("b/web", **ROOT))
    daemon.answers["add_to_session"] = {"items": []}


def test_a_word_that_means_several_roots_adds_none(daemon: FakeDaemon, shell: Shell) -> None:
    done = shell.run("add-to-session", "web", "--to", "a")
    assert (done.status, done.out) == (6, "")
    assert "try: rootsd add-to-session a/web --to a" in done.err
    assert daemon.asked("add_to_session") == []


def test_a_glob_adds_each_root_that_it_matches(daemon: FakeDaemon, shell: Shell) -> None:
    assert shell.run("add-to-session", "*/web", "--to", "a").status == 0
    assert [each["names"] for each in daemon.asked("add_to_session")] == [["a/web", "b/web"]]
