"""One decision after the other: what waits, in groups, each with what it rests on.

Every key is at most one order, sent whole and answered before the next question: whenever the
review ends, by a key, by ^C or by a line that breaks, each project is decided or it waits.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from rootsd.cli.columns import home_short, path_of
from rootsd.cli.portrait import LABEL_WIDTH, lines_of
from rootsd.cli.render import safe_text
from rootsd.cli.session import Session
from rootsd.core.errors import ErrorCode, RootsdError
from rootsd.core.labels import safe_label
from rootsd.wire.deciding import Decide, DecisionVerb
from rootsd.wire.facts import ShowQuery
from rootsd.wire.naming import Renaming

Item = Mapping[str, Any]

HELP = """\
y  publish it
n  deny it: it is never asked about again
a  publish it and the rest of this group
d  deny it and the rest of this group
s  skip it: it goes on waiting
r  rename it, then ask again
q  end here; nothing else is decided
rootsd undo takes the last answer back."""
_KEYS = "y,n,a,d,s,r,q,?"
_AT_ONCE = 50  # projects are looked into by a helper with a deadline: not all in one request
_OWNER = re.compile(r"(?:[a-z+]+://)?(?:[^@/]*@)?([^/:]+)[:/](.+)/[^/]+/?$")


class Asker(Protocol):
    """Who can be asked."""

    def press(self, question: str) -> str:
        """One key."""

    def line(self, question: str) -> str:
        """A line of text."""


@dataclass(frozen=True, slots=True)
class Group:
    """Projects below one parent that came from one owner, in the order of their paths."""

    title: str
    items: tuple[Item, ...]


def owner_of(origin: str | None) -> str:
    """`github.com/acme` for a repository there; empty where that cannot be told."""
    match = _OWNER.match(origin or "")
    return f"{match[1]}/{match[2]}" if match else ""


def grouped(items: Iterable[Item]) -> list[Group]:
    """The items by parent and owner."""
    groups: dict[tuple[str, str], list[Item]] = {}
    for item in items:
        groups.setdefault((item["parent"] or "", owner_of(item["origin"])), []).append(item)
    return [
        Group(_title(parent, owner, len(members)), tuple(members))
        for (parent, owner), members in sorted(groups.items())
    ]


def _title(parent: str, owner: str, count: int) -> str:
    where = home_short(parent) if parent else "outside of all parents"
    source = f" from {owner}" if owner else ""
    return f"{where}{source}: {count} {'waits' if count == 1 else 'wait'}"


@dataclass
class Review:
    """One run of the review; `seen` are the ids that were asked about."""

    session: Session
    asker: Asker
    approved: int = 0
    denied: int = 0
    left: int = 0
    seen: list[str] = field(default_factory=list)

    def ask_about(self, waiting: Sequence[Item]) -> bool:
        """Ask about each; whether the person wants to go on after that."""
        for group in grouped(self._portraits(waiting)):
            _tell("", safe_text(group.title))
            rest = list(group.items)
            while rest:
                answer = self._ask(rest, len(group.items))
                if answer == "q":
                    self.left += len(rest)
                    return False
                taken = rest if answer in "ad" else rest[:1]
                self.seen += [item["id"] for item in taken]
                rest = rest[len(taken) :]
        return True

    def summary(self) -> str:
        """What was decided, and how to take it back."""
        told = f"{self.approved} approved, {self.denied} denied, {self.left} left waiting."
        return f"{told} rootsd undo takes the last answer back." if self._has_decided else told

    @property
    def _has_decided(self) -> bool:
        return bool(self.approved or self.denied)

    def _portraits(self, waiting: Sequence[Item]) -> Iterator[Item]:
        for start in range(0, len(waiting), _AT_ONCE):
            yield from self._shown([item["id"] for item in waiting[start : start + _AT_ONCE]])

    def _shown(self, ids: Sequence[str]) -> list[Item]:
        """The projects of these ids, but for those that are gone by now."""
        try:
            items: list[Item] = self.session.call(ShowQuery("/", tuple(ids)))["items"]
        except RootsdError as error:
            if error.code is not ErrorCode.NOTHING_MATCHED:
                raise
            if len(ids) == 1:
                return []
            return [item for id_ in ids for item in self._shown([id_])]
        return items

    def _ask(self, rest: list[Item], of: int) -> str:
        """Show the first of `rest`, which are the last of the `of` in a group, and ask until
        something comes of it; the key that did. What is found changed is shown anew."""
        _show(rest[0])
        while rest:
            name = safe_label(rest[0]["name"])
            question = f"[{of - len(rest) + 1}/{of}] publish {name}? [{_KEYS}] "
            key = self.asker.press(question)
            try:
                match key:
                    case "y" | "n":
                        self._decide(key, rest[:1])
                        return key
                    case "a" | "d":
                        self._decide(key, rest)
                        return key
                    case "s":
                        self.left += 1
                        return key
                    case "q":
                        return key
                    case "r":
                        rest[0] = self._rename(rest[0])
                    case _:
                        _tell(HELP)
            except RootsdError as error:
                if error.code in (ErrorCode.REFUSED, ErrorCode.UNREACHABLE):
                    raise
                self.session.output.error(error.code.value, error.message, error.remedy)
                if error.code is ErrorCode.FAILED:
                    self._look_again(rest)
        return "s"

    def _look_again(self, rest: list[Item]) -> None:
        """Bring the portraits up to date; show the first where it is another than was shown."""
        before = rest[0]
        rest[:] = self._portraits(rest)
        if rest and rest[0] != before:
            _show(rest[0])

    def _decide(self, key: str, meant: Sequence[Item]) -> None:
        verb = DecisionVerb.APPROVE if key in "ya" else DecisionVerb.DENY
        ids = tuple(item["id"] for item in meant)
        # A denial holds for the path, an approval for what was there when it was shown.
        shown: tuple[str, ...] = ()
        if verb is DecisionVerb.APPROVE:
            shown = tuple(item.get("identity", "") for item in meant)  # an older daemon tells none
        decided = self.session.call(Decide(verb, cwd="/", refs=ids, shown=shown))
        count = len(decided["items"]) + len(decided["unchanged"])
        if verb is DecisionVerb.APPROVE:
            self.approved += count
        else:
            self.denied += count
        for item in decided["items"]:
            _tell(f"{item['verdict']} {safe_label(path_of(item), limit=None)}")
        self.session.output.warn(decided["warnings"])

    def _rename(self, item: Item) -> Item:
        name = self.asker.line("name: ")
        if not name:
            return item
        renamed = self.session.call(Renaming(item["id"], name, "/"))
        now = (*renamed["items"], *renamed["unchanged"])
        return {**item, "name": now[0]["name"]}


def _show(item: Item) -> None:
    _tell("")
    for label, value in lines_of(item, for_person=True):
        if label != "verdict":
            _tell(f"{label:<{LABEL_WIDTH}}{safe_label(value, limit=None)}")


def _tell(*lines: str) -> None:
    sys.stderr.write("".join(f"{line}\n" for line in lines))
