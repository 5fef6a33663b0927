"""A workspace file is written, and read again after everything was forgotten."""

from __future__ import annotations

import json

from support.person import Person


def test_a_workspace_file_is_written_proposed_approved_and_written_again(person: Person) -> None:
    file = person.home / "work.code-workspace"
    person.rootsd("up", str(person.parent))
    for name in ("api", "my web"):
        person.rootsd("add", str(person.clone(name)))
    person.rootsd("approve", "*", "--yes", "--tag", "work")
    person.rootsd("export", "--code-workspace", "tag:work", "--output", str(file))
    person.rootsd("forget", "*", "--yes")
    assert [item["tags"] for item in person.items("pending")] == [[], []]

    person.rootsd("add", str(file))
    assert [item["tags"] for item in person.items("pending")] == [["work"], ["work"]]
    assert person.items("ls", "--published") == []
    person.rootsd("approve", "*", "--yes")
    written = json.loads(person.rootsd("export", "--code-workspace", "tag:work"))
    assert written == json.loads(file.read_text())
    assert len(written["folders"]) == 2
