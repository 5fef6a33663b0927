"""`rootsd check` behind the wall only says whether a path is in a published root."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.person import HANG_GUARD, Person

pytestmark = [pytest.mark.needs("wall")]

OK, PENDING, DENIED, NOT_KNOWN = 0, 3, 4, 5
NAMES = ("approved", "read-only", "pending", "denied", "unknown")


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Person]:
    monkeypatch.setenv("ROOTSD_DIR", str(tmp_path / "dir"))
    monkeypatch.setenv("HOME", str(tmp_path))
    person = Person(tmp_path)
    for name in NAMES[:-1]:
        person.clone(name)
    person.rootsd("up", str(person.parent))
    person.rootsd("approve", "approved")
    person.rootsd("approve", "read-only", "--read-only")
    person.rootsd("deny", "denied")
    yield person
    person.run("down")


def check(
    person: Person, *words: str, inside: bool, scope: tuple[str, ...] = ("--all",)
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rootsd"]
    wall = [*command, "confine", *scope, "--"] if inside else []
    return subprocess.run(
        [*wall, *command, "check", *words], check=False, capture_output=True, text=True,
        stdin=subprocess.DEVNULL, cwd=person.parent, timeout=HANG_GUARD,
    )  # fmt: skip


def answers(person: Person, *flags: str, inside: bool) -> list[int]:
    paths = (str(person.parent / name / "file") for name in NAMES)
    return [check(person, *flags, path, inside=inside).returncode for path in paths]


def test_inside_a_path_is_in_a_root_or_not_known(person: Person) -> None:
    assert answers(person, inside=False) == [OK, OK, PENDING, DENIED, NOT_KNOWN]
    assert answers(person, inside=True) == [OK, OK, NOT_KNOWN, NOT_KNOWN, NOT_KNOWN]
    assert answers(person, "--write", inside=True)[:2] == [OK, DENIED]


def test_inside_the_json_answer_has_no_more_information(person: Person) -> None:
    told = []
    for name in NAMES:
        path = str(person.parent / name)
        done = check(person, "--json", path, inside=True)
        [item] = json.loads(done.stdout)["items"]
        assert item.pop("path") == path
        told.append((done.returncode, item))
    unknown = {"published": False, "verdict": None, "root": None, "access": None}
    root = {"published": True, "verdict": "approved", "root": "approved", "access": "read-write"}
    assert told == [
        (OK, root),
        (OK, {**root, "root": "read-only", "access": "read"}),
        *[(NOT_KNOWN, unknown)] * 3,
    ]


def test_a_root_that_the_program_does_not_see_is_not_known(person: Person) -> None:
    path = str(person.parent / "approved")
    assert check(person, path, inside=False).returncode == OK
    assert check(person, path, inside=True).returncode == OK
    assert check(person, path, inside=True, scope=("--only", "read-only")).returncode == NOT_KNOWN


def test_a_root_that_cannot_be_mounted_is_not_known(person: Person) -> None:
    path = str(person.parent / "approved")
    done = check(person, path, inside=True, scope=("--all", "--hide", path))
    assert f"{path} is not shown" in done.stderr
    assert done.returncode == NOT_KNOWN


def test_a_withheld_root_is_not_known_although_it_is_visible(person: Person) -> None:
    outer = person.parent / "approved"
    person.git("clone", "-q", str(person.origin), str(outer / "inner"))
    person.rootsd("deny", str(outer / "inner"))
    assert check(person, str(outer), inside=True).returncode == NOT_KNOWN
    command = [sys.executable, "-m", "rootsd", "confine", "--all", "--", "ls", str(outer)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=person.parent)
    assert "README" in done.stdout.split()
