"""`rootsd check` behind the wall only says whether a path is in a published root."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import preloaded
from support.person import HANG_GUARD, Person, Resident

pytestmark = [pytest.mark.needs("wall")]

OK, PENDING, DENIED, NOT_KNOWN = 0, 3, 4, 5
NAMES = ("approved", "read-only", "pending", "denied", "unknown")


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    """Return a person with one daemon for all tests of this file."""
    person = Resident(tmp_path_factory.mktemp("resident"))
    for name in NAMES[:-1]:
        person.clone(name)
    person.rootsd("up", str(person.parent))
    person.rootsd("approve", "approved")
    person.rootsd("approve", "read-only", "--read-only")
    person.rootsd("deny", "denied")
    yield person
    person.run("down")


def confine(
    person: Person, script: str, *words: str, scope: tuple[str, ...] = ("--all",)
) -> subprocess.CompletedProcess[str]:
    """Run a shell script behind the wall. It has `words` as its arguments."""
    inside = ("confine", *scope, "--", "sh", "-c", script, "sh", *words)
    return preloaded.run(inside, person.environment(), HANG_GUARD, person.parent)


def check(flags: str = "") -> str:
    """Return a script that checks each of its arguments and prints the exit status."""
    return f'for path; do {sys.executable} -m rootsd check {flags} "$path"; echo $?; done'


def statuses(done: subprocess.CompletedProcess[str]) -> list[int]:
    """Return the exit statuses that the script of `check` printed."""
    return [int(line) for line in done.stdout.splitlines()]


def paths(person: Person, end: str = "/file") -> list[str]:
    return [f"{person.parent}/{name}{end}" for name in NAMES]


def test_inside_a_path_is_in_a_root_or_not_known_also_in_json(person: Person) -> None:
    outside = [person.run("check", path).returncode for path in paths(person)]
    assert outside == [OK, OK, PENDING, DENIED, NOT_KNOWN]
    writable = confine(person, check("--write"), *paths(person)[:2])
    assert statuses(writable) == [OK, DENIED]
    done = confine(person, check("--json"), *paths(person, ""))
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    told = []
    for path, answer, status in zip(paths(person, ""), lines[::2], lines[1::2], strict=True):
        [item] = answer["items"]
        assert item.pop("path") == path
        told.append((status, item))
    unknown = {"published": False, "verdict": None, "root": None, "access": None}
    root = {"published": True, "verdict": "approved", "root": "approved", "access": "read-write"}
    assert told == [
        (OK, root),
        (OK, {**root, "root": "read-only", "access": "read"}),
        *[(NOT_KNOWN, unknown)] * 3,
    ]


def test_links_that_the_program_does_not_see_tell_nothing(person: Person) -> None:
    """Outside, they lead into a root. Inside, nobody learns that they exist."""
    root, secret = person.parent / "approved", person.parent / "pending" / "secret"
    secret.symlink_to(root)
    links: dict[Path, Path | str] = {
        root / "own": root / "folder",
        root / "by-text": f"../approved/{'x/../' * 3}folder",
        root / "by-secret": secret,
        root / "above-secret": f"{secret}/../approved",
    }
    (root / "folder").mkdir()
    for link, target in links.items():
        link.symlink_to(target)
    asked = [str(secret), f"{secret}/folder", *map(str, links)]
    try:
        assert {person.run("check", path).returncode for path in asked} == {OK}
        inside = statuses(confine(person, check(), *asked))
    finally:
        for link in (secret, *links):
            link.unlink()
        (root / "folder").rmdir()
    # The text of the last one is "pending/secret/../approved", which is no root.
    assert inside == [NOT_KNOWN, NOT_KNOWN, OK, OK, NOT_KNOWN, NOT_KNOWN]


def test_a_root_that_the_program_does_not_see_is_not_known(person: Person) -> None:
    path = str(person.parent / "approved")
    assert person.run("check", path).returncode == OK
    assert statuses(confine(person, check(), path)) == [OK]
    done = confine(person, check(), path, scope=("--only", "read-only"))
    assert statuses(done) == [NOT_KNOWN]


def test_a_root_that_cannot_be_mounted_is_not_known(person: Person) -> None:
    path = str(person.parent / "approved")
    done = confine(person, check(), path, scope=("--all", "--hide", path))
    assert f"{path} is not shown" in done.stderr
    assert statuses(done) == [NOT_KNOWN]


def test_a_withheld_root_is_not_known_although_it_is_visible(person: Person) -> None:
    outer = person.parent / "approved"
    inner = outer / "inner"
    person.git("clone", "-q", str(person.origin), str(inner))
    person.rootsd("deny", str(inner))
    try:
        done = confine(person, f'{check()}; ls "$1"', str(outer))
    finally:
        shutil.rmtree(inner)
        person.rootsd("forget", str(inner))
    status, *listed = done.stdout.split()
    assert int(status) == NOT_KNOWN
    assert "README" in listed
