"""`pending` and `ls` show the risks of real projects, with a real daemon and its helper."""

from __future__ import annotations

import shutil
from typing import Any

from support.hostile_projects import HostileProjects
from support.person import Person
from support.polling import until


def _risky(person: Person) -> None:
    risky = person.clone("risky")
    (risky / ".mcp.json").write_text('{"mcpServers": {}}')
    (risky / ".env").write_text("KEY=value\n")
    (risky / ".git" / "hooks" / "pre-commit").write_text("#!/bin/sh\n")
    person.git(
        "-C", str(risky), "remote", "set-url", "origin", "https://t0k@github.com/acme/x.git"
    )


def _pending(person: Person, *refs: str) -> list[dict[str, Any]]:
    """Return the pending projects. On a busy machine, the time limit ends some reads."""
    items: list[dict[str, Any]] = []

    def all_are_read() -> bool:
        items[:] = person.items("pending", *refs)
        return all(item["risk"] is not None for item in items)

    until(all_are_read)
    return items


def test_the_risks_of_pending_projects_are_listed_in_words(person: Person) -> None:
    person.clone("calm")
    _risky(person)
    person.rootsd("up", str(person.parent))
    calm, risky = _pending(person)
    assert (calm["risk"], calm["origin_owner"]) == ("", str(person.origin.parent))
    assert risky["risk"] == "runs code: .mcp.json, hooks; secrets: .env"
    assert (risky["origin"], risky["origin_owner"]) == (
        "https://github.com/acme/x.git",
        "github.com/acme",
    )
    listed = person.rootsd("pending", "--risk", "any", "--format", "name,risk,origin_owner")
    assert listed == f"risky\t{risky['risk']}\tgithub.com/acme\n"
    assert person.names("ls", "--risk", "none", "--since", "1d") == ["calm"]
    assert person.rootsd("pending", "--count", "--risk", "secrets") == "1\n"
    shutil.rmtree(person.parent / "risky" / ".git" / "hooks")
    (person.parent / "risky" / ".env").unlink()
    assert _pending(person, "risky")[0]["risk"] == "runs code: .mcp.json"


def test_hostile_projects_do_not_keep_a_listing_from_the_others(person: Person) -> None:
    (person.home / "corpus").mkdir()
    corpus = HostileProjects(person.home / "corpus")
    hostile = [each for each in sorted(corpus.parent.iterdir()) if each.is_dir()][::5]
    assert len(hostile) > 60
    for number, each in enumerate(hostile):
        each.rename(person.parent / f"h{number}")
    _risky(person)
    person.rootsd("up", str(person.parent))
    items = {item["name"]: item for item in _pending(person)}
    assert items["risky"]["risk"] == "runs code: .mcp.json, hooks; secrets: .env"
    assert len(items) > 30
    assert not corpus.fired.exists()
