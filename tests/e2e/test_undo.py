"""undo takes back the last command, or says why not, with a real daemon."""

from __future__ import annotations

import re
import shlex

from rootsd.core.errors import Exit
from support.person import Person


def test_after_a_command_that_stays_undo_names_the_one_that_takes_it_back(person: Person) -> None:
    person.clone("api")
    notes, more = person.home / "my notes", person.home / "more"
    notes.mkdir()
    more.mkdir()
    person.rootsd("up", str(person.parent))
    person.rootsd("approve", "api")
    (approval,) = [each["seq"] for each in person.items("log") if each["verb"] == "approved"]
    quoted = shlex.quote(str(notes))
    for command, way in (
        (("parent", "add", str(more)), f"parent rm {more}"),
        (("parent", "rm", str(more)), f"parent add {more}"),
        (("parent", "set", str(person.parent), "--depth", "2"), "config edit"),
        (("config", "set", "notify.enabled", "false"), "config edit"),
        (("add", str(notes)), f"forget {quoted}"),
        (("forget", str(notes)), f"add {quoted}"),
        (("sync", "add", "claude-code", "--yes"), "sync rm claude-code"),
        (("sync", "rm", "claude-code"), "sync add claude-code"),
        (("connect", "codex"), "disconnect codex"),
        (("disconnect", "codex"), "connect codex"),
    ):
        person.rootsd(*command)
        for words in (("undo",), ("undo", "--dry-run")):
            refused = person.run(*words)
            assert refused.returncode == Exit.FAILED, command
            assert f"try: rootsd {way}\n" in refused.stderr, command
            assert re.search(f"before it: rootsd undo {approval}\\b", refused.stderr)
        assert person.names("ls", "--published") == ["api"], command
    person.rootsd("undo", str(approval))
    assert person.names("ls", "--published") == []
