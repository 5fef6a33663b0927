"""The detail view of a project."""

from __future__ import annotations

from rootsd.cli.text.projects import detail_lines
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
