"""The first decisions of a person with 58 repositories: few keys, and none decides unseen."""

from __future__ import annotations

import re
import sys

import pexpect

from support.person import HANG_GUARD, Person
from support.screen import a_screen

FOLDERS = {"acme": 30, "forks": 15, "own": 10}
RISKY = ("risky-1", "risky-2", "risky-3")
MOST_KEYS_OF_REVIEW = 12
MOST_KEYS_OF_UI = 30


def _make_repositories(person: Person) -> list[str]:
    """Create 58 repositories in three folders, three of which have risks. Return their names."""
    calm = [f"{folder}-{number}" for folder, count in FOLDERS.items() for number in range(count)]
    names = [*calm, *RISKY]
    for name in names:
        place = person.parent / name.partition("-")[0] / name
        for below in ("objects", "refs"):
            (place / ".git" / below).mkdir(parents=True)
        (place / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        (place / ".git" / "config").write_text("[core]\n")
        if name in RISKY:
            (place / ".mcp.json").write_text("{}")
    return names


class Reviewer:
    """A person who presses keys in `rootsd review`, and remembers what was on the terminal."""

    def __init__(self, person: Person) -> None:
        self.shown, self.keys = "", 0
        self._child = pexpect.spawn(
            sys.executable, ["-m", "rootsd", "review"], timeout=HANG_GUARD, encoding="utf-8",
            env={**person.environment(), "TERM": "xterm"},
        )  # fmt: skip

    def presses(self, key: str, question: str) -> None:
        """Wait for the question, and press the key."""
        self._child.expect(question)
        self.shown += f"{self._child.before}{self._child.after}"
        self._child.send(key)
        self.keys += 1

    def finishes(self) -> None:
        """Wait for the end."""
        self._child.expect(pexpect.EOF)
        self._child.close()
        assert self._child.exitstatus == 0, self._child.before


def test_twelve_keys_of_review_decide_58_repositories_that_were_shown(person: Person) -> None:
    names = _make_repositories(person)
    person.rootsd("up", str(person.parent))
    reviewer = Reviewer(person)
    reviewer.presses("A", r"\[1/58\] publish .*\? \[.*\] ")
    reviewer.presses("y", r"Publish .*\? \[.*\] ")
    seen = {name for name in names if name in re.findall(r"[\w-]+", reviewer.shown)}
    for key in "ynn":
        reviewer.presses(key, r"publish (risky-\d)\? \[.*\] ")
    reviewer.finishes()
    assert reviewer.keys <= MOST_KEYS_OF_REVIEW
    assert seen == set(names) - set(RISKY), "each was on the terminal before the key"
    assert len(person.names("ls", "--verdict", "approved")) == 56
    assert set(person.names("ls", "--verdict", "denied")) < set(RISKY)


async def test_thirty_keys_of_the_screen_decide_58_repositories_that_were_shown(
    person: Person,
) -> None:
    names = _make_repositories(person)
    person.rootsd("up", str(person.parent))
    deny, approve = ("slash", *"risky", "enter", "asterisk", "d"), ("asterisk", "a")
    async with a_screen(120, 80) as screen:
        await screen.waits_for("Pending 58")
        await screen.presses(*deny)
        await screen.waits_for("Deny")
        assert all(name in screen.sees for name in RISKY)
        await screen.presses("y")
        await screen.waits_for("Pending 55")
        await screen.presses(*approve)
        await screen.waits_for("Enter approves")
        assert set(re.findall(r"[\w-]+", screen.sees)) >= set(names) - set(RISKY)
        await screen.presses("enter")
        await screen.waits_for("Roots 55")
    assert len([*deny, "y", *approve, "enter"]) <= MOST_KEYS_OF_UI
