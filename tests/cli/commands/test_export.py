"""`rootsd export`: the decisions, and nothing that could approve."""

from __future__ import annotations

import json

from support.fake_daemon import FakeDaemon, a_listing, an_item
from support.terminal import Shell


def test_decided_named_and_tagged_projects_are_printed(daemon: FakeDaemon, shell: Shell) -> None:
    rule = {
        "number": 3, "verdict": "denied", "pattern": "/x/**", "pattern_b64": None, "covers": 0,
        "added_at": "2026-11-20T08:11:02Z",
    }  # fmt: skip
    daemon.answers["rules"] = a_listing(rule)
    daemon.answers["projects"] = a_listing(
        an_item("undecided"),
        an_item("tagged", tags=["go"]),
        an_item("lapsed", lapsed="replaced"),
        an_item("yes", verdict="approved"),
        an_item("no", verdict="denied"),
    )
    done = shell.run("export")
    export = json.loads(done.out)
    assert (export["schema"], export["command"], export["format"]) == ("rootsd/1", "export", 1)
    assert [item["name"] for item in export["items"]] == ["tagged", "lapsed", "yes", "no"]
    assert export["rules"] == [{"verdict": "denied", "pattern": "/x/**", "pattern_b64": None}]
    assert set(export["items"][0]) == {
        "path", "path_b64", "uri", "kind", "name", "tags", "verdict", "access",
    }  # fmt: skip
    assert shell.run("export", "--json").out == done.out
