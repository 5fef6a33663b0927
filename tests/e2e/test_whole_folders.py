"""A person decides about a folder that holds other projects, with a real daemon."""

from __future__ import annotations

import json
import shutil

import pytest

from rootsd.core.errors import Exit
from support.person import Person
from support.repositories import fake_repository


@pytest.fixture
def person(person: Person) -> Person:
    person.rootsd("up", str(person.parent))
    return person


def test_a_folder_outside_all_parents_is_not_published_with_unlisted_repositories(
    person: Person,
) -> None:
    top = person.home / "work"
    for name in ("one", "a/b/c/d/e/deep", ".hidden/dot"):
        fake_repository(top / name)
    (person.home / "link").symlink_to(top)
    for typed in (top, person.home / "link", f"{top}/a/.."):
        refused = person.run("approve", str(typed))
        assert refused.returncode == Exit.REFUSED, refused.stdout + refused.stderr
        assert "this decides about 4 projects" in refused.stderr
    listed = person.run("approve", str(top), "--dry-run").stderr
    assert "3 projects would be readable as a part of ~/work:\n  dot, deep, one\n" in listed
    for refused_place in ("/", str(person.home), str(person.home / "..")):
        assert "can never be a root" in person.run("approve", refused_place, "--yes").stderr
    assert person.names("ls") == []
    person.rootsd("approve", str(top), "--yes")
    assert person.names("ls", "--published") == ["work"]


def test_a_denial_of_the_folder_around_an_approved_project_withdraws_it_everywhere(
    person: Person,
) -> None:
    tool = fake_repository(person.home / "bin/tool")
    holder = str(tool.parent)
    person.rootsd("approve", str(tool))
    refused = person.run("deny", holder)
    assert refused.returncode == Exit.REFUSED
    assert person.run("check", str(tool)).returncode == Exit.OK, "nothing was denied yet"
    assert (
        "2 projects would be denied:\n  bin, tool\n"
        in person.run("deny", holder, "--dry-run").stderr
    )
    person.rootsd("deny", holder, "--yes")

    assert person.names("ls", "--published") == []
    (listed,) = person.items("ls", str(tool))
    assert (listed["verdict"], listed["note"]) == ("denied", f"a folder above is denied: {holder}")
    assert person.run("check", str(tool)).returncode == Exit.DENIED
    voices = json.loads(person.rootsd("why", str(tool), "--json"))["voices"]
    (deciding,) = [voice for voice in voices if voice["decides"]]
    assert (deciding["verdict"], deciding["by"]) == ("denied", holder)
    counts = json.loads(person.rootsd("status", "--json"))["counts"]
    assert (counts["published"], counts["denied"]) == (0, 2)
    again = person.run("approve", str(tool))
    assert f"lies in {holder}, which is denied" in again.stderr
    assert f"rootsd forget {holder}" in again.stderr

    assert person.run("undo").returncode == Exit.REFUSED
    person.rootsd("undo", "--yes")
    assert person.names("ls", "--published") == ["tool"]
    assert person.run("check", str(tool)).returncode == Exit.OK


def test_approvals_of_several_folders_that_are_gone_are_not_pruned_unasked(
    person: Person,
) -> None:
    """A person who moved a folder of projects may move it back, and undo restores no prune."""
    folder = person.parent / "acme"
    projects = [fake_repository(folder / name) for name in ("one", "two")]
    person.wait_until_listed("one", "pending")
    person.wait_until_listed("two", "pending")
    person.rootsd("approve", "one", "two", "--yes")
    shutil.move(folder, person.home / "moved")
    person.rootsd("scan")
    refused = person.run("prune")
    assert refused.returncode == Exit.REFUSED
    assert "this decides about 2 projects" in refused.stderr
    assert "  one, two\n" in person.run("prune", "--dry-run").stderr
    shutil.move(person.home / "moved", folder)
    person.rootsd("scan")
    person.wait_until_listed("one", "ls", "--published")
    shutil.rmtree(projects[0])
    person.rootsd("scan")
    person.rootsd("prune")
    assert person.names("ls") == ["two"], "the control: one project needs no question"
