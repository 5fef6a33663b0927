"""The doctor beside a real daemon: its findings for parts broken on purpose, and the fixes."""

from __future__ import annotations

import json
import os
from pathlib import Path

from support.person import Person


def wrong(person: Person, *flags: str) -> tuple[int, dict[str, str]]:
    """Return the exit status, and each problem by topic and place."""
    done = person.run("doctor", "--json", *flags)
    items = json.loads(done.stdout)["items"]
    return done.returncode, {
        item["topic"]: item["seen_by"] for item in items if item["condition"] != "ok"
    }


def test_broken_parts_are_found_from_inside_and_outside_and_fixed(person: Person) -> None:
    # The tests' ROOTSD_DIR is a finding, too.
    assert wrong(person) == (1, {
        "environment": "command", "state": "command", "second anchor": "command",
        "daemon": "command",
    })  # fmt: skip
    status, still = wrong(person, "--fix")
    assert (status, still) == (0, {"environment": "command", "parents": "daemon"})
    person.rootsd("up", str(person.parent))
    assert wrong(person)[1].keys() <= {"environment", "confinement"}
    gone = person.parent / "later"
    gone.mkdir()
    person.rootsd("parent", "add", str(gone))
    gone.rmdir()
    (Path(os.environ["ROOTSD_DIR"]) / "run" / "ctl").chmod(0o755)
    status, found = wrong(person)
    assert status == 1
    assert found["sockets"] == "command"
    status, found = wrong(person, "--fix")
    assert (status, found["parents"]) == (1, "daemon")
    assert "sockets" not in found
