"""`rootsd log`."""

from __future__ import annotations

import json
from typing import Any

from support.fake_daemon import FakeDaemon
from support.terminal import Shell


def an_event(**more: object) -> dict[str, Any]:
    return {
        "seq": 3, "at": "2026-03-04T12:00:00Z", "verb": "approved", "actor": "person",
        "by": "pid 9, bash, terminal 136:0", "path": "/src/api", "path_b64": None, "what": "api",
        **more,
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
        "3\t2026-03-04T12:00:00Z\tapproved\t/src/api\tperson: pid 9, bash, terminal 136:0",
        "4\t2026-03-04T12:00:00Z\trefused\tapprove api\\u{1b}\tcaller: pid 7: Goose started it",
        "5\t2026-03-04T12:00:00Z\tlapsed\t/src/api\t",
    ]
    assert daemon.asked("log") == [{"last": 3}]
    assert json.loads(shell.run("log", "--json").out)["items"] == items


def test_an_empty_history_says_so(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["log"] = {"revision": 7, "items": [], "warnings": []}
    assert "Nothing was decided yet." in shell.terminal("log").out
