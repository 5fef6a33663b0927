"""The detail view of a project."""

from __future__ import annotations

from pathlib import Path

from rootsd.cli.text.projects import detail_lines, note_of
from support.fake_daemon import an_item


def test_known_facts_are_shown_and_unknown_ones_omitted() -> None:
    finding = {"concern": "executed", "path": ".envrc", "detail": "direnv"}
    item = an_item(
        findings=[finding], branch="main", size={"bytes": 2048, "files": 1, "whole": True}
    )
    told = dict(detail_lines(item, for_person=True))
    assert told["name"] == "api (r7k2)"
    assert told["agents run"] == ".envrc (direnv)"
    assert told["size"] == "2.0 KiB in 1 file"
    assert "origin" not in told
    assert dict(detail_lines(item, for_person=False))["id"] == "r7k2"
    root = an_item(verdict="approved", published=True)
    assert dict(detail_lines(root, for_person=True))["verdict"] == "approved, published"


def test_the_main_checkout_of_a_worktree_is_named_once() -> None:
    main = str(Path.home() / "main")
    item = an_item(worktree_of=main, note="approved with main")
    told = dict(detail_lines(item, for_person=True))
    assert (told["worktree of"], told["note"]) == ("~/main", "approved with main")
    assert dict(detail_lines(item, for_person=False))["worktree of"] == main
    assert note_of(item) == "worktree of ~/main, approved with main"
