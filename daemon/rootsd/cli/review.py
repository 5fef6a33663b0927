"""Review pending projects one after the other, with one key for each decision.

Every key is at most one order, sent whole and answered before the next question: whenever the
review ends, by a key, by ^C or by a line that breaks, each project is decided or it waits.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from rootsd.cli.formatting import LABEL_WIDTH, detail_lines, path_of, shorten_home
from rootsd.cli.invocation import Invocation
from rootsd.cli.layout import hanging_indent
from rootsd.cli.render import terminal_width
from rootsd.core.errors import ErrorCode, RootsdError
from rootsd.core.labels import safe_label, safe_text
from rootsd.core.model import Access
from rootsd.wire.decisions import ApprovalScope, DecideRequest, DecisionVerb, RenameRequest
from rootsd.wire.projects import ShowQuery

Item = Mapping[str, Any]

KEY_HELP = """\
y  publish it
w  publish it with its worktrees that are listed
n  deny it: it is never asked about again
a  publish it and the rest of this group
d  deny it and the rest of this group
s  skip it: it goes on waiting
r  rename it, then ask again
q  end here; nothing else is decided
rootsd undo takes the last answer back."""
_KEYS = "y,n,a,d,s,r,q,?"
_KEYS_WITH_WORKTREES = "y,w,n,a,d,s,r,q,?"
_REQUEST_KEYS = "y,e,p,P,"
_REQUEST_HELP = """\
y  publish it to the session that asks, for reading, until that session ends
e  the same, for reading and writing
p  publish it to all sessions until you revoke it, for reading
P  the same, for reading and writing"""
# What a key says about an approval: for whom, and with which access.
_GRANTS: Mapping[str, tuple[ApprovalScope, Access | None]] = {
    "e": (ApprovalScope.SESSION, Access.READ_WRITE),
    "p": (ApprovalScope.ALWAYS, Access.READ),
    "P": (ApprovalScope.ALWAYS, Access.READ_WRITE),
}
_BATCH_SIZE = 50  # projects are looked into by a helper with a deadline: not all in one request
_OWNER = re.compile(r"(?:[a-z+]+://)?(?:[^@/]*@)?([^/:]+)[:/](.+)/[^/]+/?$")


class ReviewPrompt(Protocol):
    """Who can be asked."""

    def press(self, question: str) -> str:
        """One key."""

    def line(self, question: str) -> str:
        """A line of text."""


@dataclass(frozen=True, slots=True)
class ReviewGroup:
    """Projects below one parent that came from one owner, or worktrees of one main checkout, in
    the order of their paths."""

    title: str
    items: tuple[Item, ...]


def owner_of(origin: str | None) -> str:
    """`github.com/acme` for a repository there; empty where that cannot be told."""
    match = _OWNER.match(origin or "")
    return f"{match[1]}/{match[2]}" if match else ""


def group_pending(items: Iterable[Item]) -> list[ReviewGroup]:
    """The items by parent and owner; worktrees by their main checkout, below the others."""
    groups: dict[tuple[str, str, str], list[Item]] = {}
    for item in items:
        main = item["worktree_of"] or ""
        owner = "" if main else owner_of(item["origin"])
        groups.setdefault((main, item["parent"] or "", owner), []).append(item)
    return [
        ReviewGroup(_title(main, parent, owner, len(members)), tuple(members))
        for (main, parent, owner), members in sorted(groups.items())
    ]


def _title(main: str, parent: str, owner: str, count: int) -> str:
    if main:
        return f"worktrees of {shorten_home(main)}: {count} {'waits' if count == 1 else 'wait'}"
    where = shorten_home(parent) if parent else "outside of all parents"
    source = f" from {owner}" if owner else ""
    return f"{where}{source}: {count} {'waits' if count == 1 else 'wait'}"


@dataclass
class Review:
    """One run of the review; `seen` are the ids that were asked about.

    `waiting` are the ids of all projects that waited, in all groups; `decided` those of them that
    do not wait any more.
    """

    invocation: Invocation
    asker: ReviewPrompt
    approved: int = 0
    denied: int = 0
    seen: list[str] = field(default_factory=list)
    waiting: set[str] = field(default_factory=set)
    decided: set[str] = field(default_factory=set)

    @property
    def left(self) -> int:
        """How many projects still wait, in all groups."""
        return len(self.waiting - self.decided)

    def ask_about(self, waiting: Sequence[Item]) -> bool:
        """Ask about each; whether the person wants to go on after that."""
        groups = group_pending(self._portraits(waiting))
        self.waiting.update(item["id"] for group in groups for item in group.items)
        for group in groups:
            # A worktree may have been published with its main checkout, in an earlier group.
            rest = [item for item in group.items if item["id"] not in self.decided]
            count = len(rest)
            if rest:
                _print_lines("", safe_text(group.title))
            while rest:
                answer = self._ask(rest, count)
                if answer == "q":
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
        for start in range(0, len(waiting), _BATCH_SIZE):
            yield from self._shown([item["id"] for item in waiting[start : start + _BATCH_SIZE]])

    def _shown(self, ids: Sequence[str]) -> list[Item]:
        """The projects of these ids, but for those that are gone by now."""
        try:
            items: list[Item] = self.invocation.call(ShowQuery("/", tuple(ids)))["items"]
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
            keys = _keys_for(rest[0])
            question = f"[{of - len(rest) + 1}/{of}] publish {name}? [{keys}] "
            key = self.asker.press(question)
            try:
                match key:
                    case "a" | "d":
                        self._decide(key, rest)
                        return key
                    case "s" | "q":
                        return key
                    case "r":
                        rest[0] = self._rename(rest[0])
                    case "y" | "n" | "w" | "e" | "p" | "P" if key in keys:
                        self._decide(key, rest[:1])
                        return key
                    case _:
                        _print_lines(*_help(keys))
            except RootsdError as error:
                if error.code in (ErrorCode.REFUSED, ErrorCode.UNREACHABLE):
                    raise
                self.invocation.output.error(error.code.value, error.message, error.remedy)
                if error.code is ErrorCode.FAILED:
                    self._look_again(rest)
        return "s"

    def _look_again(self, rest: list[Item]) -> None:
        """Bring the portraits up to date; show the first where it is another than was shown."""
        before = rest[0]
        listed = {item["id"] for item in rest}
        rest[:] = self._portraits(rest)
        self.decided |= listed.difference(item["id"] for item in rest)
        if rest and rest[0] != before:
            _show(rest[0])

    def _decide(self, key: str, meant: Sequence[Item]) -> None:
        verb = DecisionVerb.DENY if key in "nd" else DecisionVerb.APPROVE
        span, access = _GRANTS.get(key, (ApprovalScope.USUAL, None))
        trees = _confirmable(meant[0]) if key == "w" else ()
        ids = tuple(item["id"] for item in meant)
        # A denial holds for the path, an approval for what was there when it was shown.
        shown: tuple[str, ...] = ()
        if verb is DecisionVerb.APPROVE:
            shown = tuple(item.get("identity", "") for item in meant)  # an older daemon tells none
        order = DecideRequest(
            verb,
            cwd="/",
            refs=ids,
            access=access,
            span=span,
            shown=shown,
            worktrees=tuple(tree["id"] for tree in trees),
            worktrees_shown=tuple(tree["identity"] for tree in trees),
        )
        decided = self.invocation.call(order)
        count = len(decided["items"]) + len(decided["unchanged"])
        self.decided.update(ids)
        if verb is DecisionVerb.APPROVE:
            self.approved += count
        else:
            self.denied += count
        for item in decided["items"]:
            for_session = (
                f", for the session of {item['session']} alone" if "session" in item else ""
            )
            _print_lines(f"{item['verdict']} {safe_label(path_of(item), limit=None)}{for_session}")
        for tree in decided.get("worktrees", ()):
            if tree["published"]:
                self.decided.add(tree["id"])
                _print_lines(f"approved with it {safe_label(path_of(tree), limit=None)}")
        self.invocation.output.warn(decided["warnings"])

    def _rename(self, item: Item) -> Item:
        name = self.asker.line("name: ")
        if not name:
            return item
        renamed = self.invocation.call(RenameRequest(item["id"], name, "/"))
        now = (*renamed["items"], *renamed["unchanged"])
        return {**item, "name": now[0]["name"]}


def _keys_for(item: Item) -> str:
    """Return the keys that a question about `item` takes."""
    keys = _KEYS_WITH_WORKTREES if _confirmable(item) else _KEYS
    return keys.replace("y,", _REQUEST_KEYS, 1) if "request" in item else keys


def _help(keys: str) -> Iterator[str]:
    """Yield what each of these keys does."""
    lines = KEY_HELP.splitlines()
    if keys.startswith(_REQUEST_KEYS):
        yield from _REQUEST_HELP.splitlines()
        lines = lines[1:]
    yield from (line for line in lines if line[1:3] != "  " or line[0] in keys)


def _confirmable(item: Item) -> Sequence[Item]:
    """Return the worktrees that a person can have published with a project."""
    return [tree for tree in item.get("worktrees", ()) if tree["confirmable"]]


def _show(item: Item) -> None:
    _print_lines("")
    room = terminal_width(sys.stderr)
    for label, value in detail_lines(item, for_person=True):
        if label != "verdict":
            shown = safe_label(value, limit=None)
            _print_lines(*hanging_indent(f"{label:<{LABEL_WIDTH}}", shown, room))


def _print_lines(*lines: str) -> None:
    sys.stderr.write("".join(f"{line}\n" for line in lines))
