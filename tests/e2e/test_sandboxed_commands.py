"""Commands in a sandbox that hides the control socket say so, and `check` still works."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.person import Finished, Person

pytestmark = pytest.mark.needs("linux", "bubblewrap")


@pytest.fixture
def person(person: Person) -> Person:
    for name in ("one", "two", "three"):
        person.clone(name)
    person.rootsd("up", str(person.parent))
    person.wait_until_listed("three", "pending")
    person.rootsd("approve", "one")
    person.rootsd("approve", "two", "--read-only")
    return person


def inside(person: Person, *arguments: str, shown: tuple[str, ...] = ("run/pub",)) -> Finished:
    """Run `rootsd` in a sandbox that shows only those of the daemon's folders."""
    folder = Path(person.environment()["ROOTSD_DIR"])
    binds = [word for name in shown for word in ("--ro-bind", *[str(folder / name)] * 2)]
    hidden = ("--dev-bind", "/", "/", "--unshare-pid", "--tmpfs", str(folder), *binds)
    return person.run(*arguments, within=("bwrap", "--unshare-user", *hidden, "--"))


def test_a_command_says_that_it_is_in_a_sandbox_and_where_to_decide(person: Person) -> None:
    for command in (("approve", "three"), ("down",), ("up", str(person.parent))):
        done = inside(person, *command)
        assert done.returncode == 7, done.stderr
        assert "this program runs in a sandbox" in done.stderr
        assert "try: run it outside of the sandbox" in done.stderr
        assert "rootsd up" not in done.stderr
    refused = json.loads(inside(person, "approve", "three", "--json").stdout)
    assert refused["error"]["code"] == "refused"
    assert person.names("pending") == ["three"]
    # Without any socket, it says so, too.
    done = inside(person, "approve", "three", shown=())
    assert done.returncode == 69
    assert "in a sandbox" in done.stderr
    assert "rootsd up" not in done.stderr
    # The control: in the same sandbox with the control socket, the command decides.
    assert inside(person, "approve", "three", shown=("run",)).returncode == 0
    assert person.names("pending") == []


def test_check_uses_the_available_socket(person: Person) -> None:
    def checked(*arguments: str) -> int:
        done = inside(person, "check", *arguments)
        assert (done.stdout, done.stderr) == ("", "")
        return done.returncode

    one, two = str(person.parent / "one"), str(person.parent / "two")
    assert checked(one) == checked(f"{one}/README") == checked("--write", one) == 0
    assert (checked(two), checked("--write", two)) == (0, 4)
    # This socket does not reveal pending folders.
    assert checked(str(person.parent / "three")) == checked(str(person.parent)) == 5
    assert [checked(word) for word in ("one", "three", "none")] == [0, 5, 5]
    person.rootsd("down")
    done = inside(person, "check", one)
    assert done.returncode == 69
    assert "outside of the sandbox" in done.stderr
