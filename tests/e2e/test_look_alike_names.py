"""Two folders whose names differ only in Unicode form, with a real daemon and real clients."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.list_roots_output import listed
from support.person import Person
from support.sdk_clients import legacy_client

# APFS treats both names as one. The SDK deprecates parts that its own legacy mode still uses.
pytestmark = [
    pytest.mark.needs("linux"),
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]

COMPOSED, DECOMPOSED = "café", "cafe\u0301"


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    # A table cuts long names. Here it cuts both at the same place.
    person = Person(tmp_path / ("home" * 20))
    yield person
    person.run("down")


@pytest.fixture
def twins(person: Person) -> dict[str, str]:
    """Return path -> id, of both folders below a parent that a daemon watches."""
    for name in (COMPOSED, DECOMPOSED):
        person.clone(name)
    person.rootsd("up", str(person.parent))
    known = {item["path"]: item["id"] for item in person.items("ls")}
    assert known.keys() == {str(person.parent / name) for name in (COMPOSED, DECOMPOSED)}
    return known


def _rows(person: Person, *words: str) -> list[list[str]]:
    return [line.split("\t") for line in person.rootsd("ls", *words).splitlines()]


async def test_people_programs_and_clients_can_tell_both_folders_apart(
    person: Person, twins: dict[str, str]
) -> None:
    names = {row[4]: row[1] for row in _rows(person)}
    assert names == {path: f"{Path(path).name}~{id_}" for path, id_ in twins.items()}
    assert len({unicodedata.normalize("NFKC", name) for name in names.values()}) == 2
    approved, other = (str(person.parent / name) for name in (DECOMPOSED, COMPOSED))
    person.rootsd("approve", names[approved])
    assert [item["path"] for item in person.items("ls", "--published")] == [approved]
    person.rootsd("approve", COMPOSED)  # the exact text of one name is sufficient
    assert {item["path"] for item in person.items("ls", "--published")} == {approved, other}
    taken = person.run("rename", twins[other], "CAFE\u0301~" + twins[approved])
    assert taken.returncode != 0
    assert "belongs to" in taken.stderr
    async with legacy_client(person) as (client, _):
        assert listed(await client.call_tool("list_roots", {})) == {
            name: path for path, name in names.items()
        }
    person.rootsd("deny", other)
    assert [(row[0], row[4]) for row in _rows(person, "--published")] == [
        (twins[approved], approved)
    ]
    assert person.rootsd("ls", "--published", "--paths") == approved + "\n"
    assert person.rootsd("ls", "--published", "-0") == approved + "\0"
    assert [item["path"] for item in person.items("ls", "--published")] == [approved]
    assert f"path\t{approved}\n" in person.rootsd("show", twins[approved])
    assert other in person.rootsd("log")


def test_a_path_with_a_newline_is_not_shown_as_another_path(person: Person) -> None:
    odd, trap = person.parent / "a\nb", person.parent / "a\\u{a}b"
    for folder in (odd, trap):
        person.git("init", "-q", str(folder))
    person.rootsd("up", str(person.parent))
    rows = {row[0]: row[4] for row in _rows(person)}
    known = {item["path"]: item["id"] for item in person.items("ls")}
    assert rows[known[str(trap)]] == str(trap)
    assert rows[known[str(odd)]] == odd.as_uri()
