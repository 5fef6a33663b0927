"""`rootsd log`."""

from __future__ import annotations

import json
from typing import Any

from rootsd.core.errors import ErrorCode
from support.fake_daemon import FakeDaemon, Objection
from support.terminal import Shell


def an_event(**more: object) -> dict[str, Any]:
    return {
        "seq": 3, "at": "2026-03-04T12:00:00Z", "verb": "approved", "actor": "person",
        "by": "pid 9, bash, pts/0", "path": "/src/api", "path_b64": None, "what": "api",
        "undid": None, **more,
    }  # fmt: skip


REFUSED = an_event(
    seq=4, verb="refused", actor="caller", by="pid 7: Goose started it", path=None,
    what="approve api\x1b",
)  # fmt: skip
LAPSED = an_event(seq=5, verb="lapsed", actor=None, by=None)


def test_a_pipe_gets_all_fields(daemon: FakeDaemon, shell: Shell) -> None:
    items = [an_event(), REFUSED, LAPSED]
    daemon.answers["log"] = {"revision": 7, "items": items, "warnings": []}
    done = shell.run("log", "--last", "3")
    assert done.status == 0
    assert done.out.splitlines() == [
        "3\t2026-03-04T12:00:00Z\tapproved\t/src/api\tperson: pid 9, bash, pts/0\t",
        "4\t2026-03-04T12:00:00Z\trefused\tapprove api\\u{1b}\tcaller: pid 7: Goose started it\t",
        "5\t2026-03-04T12:00:00Z\tlapsed\t/src/api\t\t",
    ]
    assert daemon.asked("log") == [{"last": 3}]
    assert json.loads(shell.run("log", "--json").out)["items"] == items


def test_an_empty_history_says_so(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["log"] = {"revision": 7, "items": [], "warnings": []}
    assert "No decisions yet." in shell.run_on_terminal("log").out


def test_with_follow_each_line_is_an_object_and_new_ones_follow(
    daemon: FakeDaemon, shell: Shell
) -> None:
    later = iter([[LAPSED], None])

    def answer(params: dict[str, Any]) -> dict[str, Any]:
        items = next(later) if "after" in params else [an_event(), REFUSED]
        if items is None:
            raise Objection(ErrorCode.UNREACHABLE, "gone")
        return {"revision": 7, "items": items, "warnings": []}

    daemon.answers["log"] = answer
    done = shell.run("log", "-f", "--json")
    assert done.status == 69
    *lines, _ = map(json.loads, done.out.splitlines())
    assert [line["items"][0]["seq"] for line in lines] == [3, 4, 5]
    assert daemon.asked("log") == [
        {},
        {"last": 1000, "after": 4, "wait_s": 30},
        {"last": 1000, "after": 5, "wait_s": 30},
    ]


def test_with_follow_a_pipe_gets_each_line_at_once(daemon: FakeDaemon, shell: Shell) -> None:
    def answer(params: dict[str, Any]) -> dict[str, Any]:
        if "after" in params:
            raise Objection(ErrorCode.UNREACHABLE, "gone")
        return {"revision": 7, "items": [an_event()], "warnings": []}

    daemon.answers["log"] = answer
    assert shell.run("log", "-f").out.startswith("3\t")
