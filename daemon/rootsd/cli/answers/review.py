"""Review pending projects one after the other, with one key for each decision.

Each key sends at most one order, and the next question comes after the daemon's response. A key
about several projects lists them first, and needs another key. So the
review can end at any time (a key, ^C, a lost connection), and every project is either decided or
pending.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from rootsd.cli.answers.affected import Item
from rootsd.cli.answers.decision_flow import confirmable_worktrees, including
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.answers.terminal_face import Further, TerminalFace
from rootsd.cli.text.phrases import shorten_home
from rootsd.cli.text.projects import LABEL_WIDTH, RISK_LABELS, detail_lines, path_of
from rootsd.cli.text.terminal import Keyboard
from rootsd.cli.text.theme import Tone
from rootsd.core.access import Access
from rootsd.core.errors import ErrorCode, RootsdError
from rootsd.core.labels import safe_label, safe_text
from rootsd.core.uris import owner_of
from rootsd.wire.decisions import ApprovalScope, DecideRequest, DecisionVerb, RenameRequest
from rootsd.wire.projects import ShowQuery

KEY_HELP = """\
y  publish it
w  publish it with its listed worktrees
g  publish it, and let programs behind the wall use its Git directory in a pending checkout
n  deny it: rootsd never proposes it again
a  publish it and the rest of this group
d  deny it and the rest of this group
s  skip it: it stays pending
r  rename it, then ask again
q  quit; the rest stays pending
rootsd undo takes the last answer back."""
_KEYS = "y,n,a,d,s,r,q,?"
_KEYS_FOR_INCOMPLETE = "y,n,s,r,q,?"  # it is approved by itself, after a warning
_REQUEST_KEYS = "y,e,p,P,"
_REQUEST_HELP = """\
y  publish it, read-only, to the session that requested it, until that session ends
e  the same, for reading and writing
p  publish it, read-only, to all sessions until you revoke it
P  the same, for reading and writing"""
# The sessions and the access that a key approves.
_GRANTS: Mapping[str, tuple[ApprovalScope, Access | None]] = {
    "e": (ApprovalScope.SESSION, Access.READ_WRITE),
    "p": (ApprovalScope.ALWAYS, Access.READ),
    "P": (ApprovalScope.ALWAYS, Access.READ_WRITE),
}
_BATCH_SIZE = 50  # the helper that reads the projects has a deadline for each request


class ReviewGroup(Struct, frozen=True):
    """Projects of one owner below one parent, or worktrees of one main checkout, by path."""

    title: str
    items: tuple[Item, ...]


def group_pending(items: Iterable[Item]) -> list[ReviewGroup]:
    """Group the items by parent and owner, then worktrees by their main checkout, and at last
    those that are incomplete.

    The owner is that of the column FROM in the listings.
    """
    groups: dict[tuple[str, str, str], list[Item]] = {}
    incomplete = []
    for item in items:
        if item.get("incomplete"):
            incomplete.append(item)
            continue
        main = item["worktree_of"] or ""
        owner = "" if main or not item["origin"] else owner_of(item["origin"])
        groups.setdefault((main, item["parent"] or "", owner), []).append(item)
    found = [
        ReviewGroup(_title(main, parent, owner, len(members)), tuple(members))
        for (main, parent, owner), members in sorted(groups.items())
    ]
    if cut := tuple(sorted(incomplete, key=path_of)):
        found.append(ReviewGroup(f"incomplete, approved only by name: {len(cut)}", cut))
    return found


def _title(main: str, parent: str, owner: str, count: int) -> str:
    if main:
        return f"worktrees of {shorten_home(main)}: {count} pending"
    where = shorten_home(parent) if parent else "outside all parents"
    source = f" from {shorten_home(owner)}" if owner else ""
    return f"{where}{source}: {count} pending"


class Review(Struct):
    """One run of the review.

    `seen` holds the ids that the person was asked about, `waiting` the ids of all pending projects
    in all groups, and `decided` those of them that are no longer pending.
    """

    invocation: Invocation
    keyboard: Keyboard
    approved: int = 0
    denied: int = 0
    seen: list[str] = field(default_factory=list)
    waiting: set[str] = field(default_factory=set)
    decided: set[str] = field(default_factory=set)

    @property
    def left(self) -> int:
        """The number of projects that are still pending, in all groups."""
        return len(self.waiting - self.decided)

    def ask_about(self, waiting: Sequence[Item]) -> bool:
        """Ask about each project; return False if the person quits."""
        groups = group_pending(self._details(waiting))
        self.waiting.update(item["id"] for group in groups for item in group.items)
        for group in groups:
            # A worktree may have been published with its main checkout, in an earlier group.
            rest = [item for item in group.items if item["id"] not in self.decided]
            count = len(rest)
            if rest:
                _print_lines("")
                self.invocation.output.labelled_message("", safe_text(group.title), Tone.HEADING)
            while rest:
                answer = self._ask(rest, count)
                if answer == "q":
                    return False
                taken = rest if answer in "ad" else rest[:1]
                self.seen += [item["id"] for item in taken]
                rest = rest[len(taken) :]
        return True

    def summary(self) -> str:
        """Return a sentence with the counts, and how to undo."""
        counts = f"{self.approved} approved, {self.denied} denied, {self.left} still pending."
        return f"{counts} rootsd undo takes the last answer back." if self._has_decided else counts

    @property
    def _has_decided(self) -> bool:
        return bool(self.approved or self.denied)

    def _details(self, waiting: Sequence[Item]) -> Iterator[Item]:
        for start in range(0, len(waiting), _BATCH_SIZE):
            yield from self._shown([item["id"] for item in waiting[start : start + _BATCH_SIZE]])

    def _shown(self, ids: Sequence[str]) -> list[Item]:
        """Return the projects of these ids, without those that are gone by now."""
        try:
            items: list[Item] = self.invocation.call(ShowQuery("/", tuple(ids)))["items"]
        except RootsdError as error:
            if error.code is not ErrorCode.NOTHING_MATCHED:
                raise
            if len(ids) == 1:
                return []
            return [item for id_ in ids for item in self._shown([id_])]
        return items

    def _show(self, item: Item) -> None:
        _print_lines("")
        for label, value in detail_lines(item, for_person=True):
            if label != "verdict":
                tone = Tone.REFUSED if label in RISK_LABELS else Tone.LABEL
                shown = safe_label(value, limit=None)
                self.invocation.output.labelled_message(f"{label:<{LABEL_WIDTH}}", shown, tone)

    def _ask(self, rest: list[Item], of: int) -> str:
        """Show the first project of `rest`, ask until a key has an effect, and return the key.

        `rest` holds the remaining projects of a group of `of`. If a project has changed in the
        meantime, show it again.
        """
        self._show(rest[0])
        while rest:
            name = safe_label(rest[0]["name"])
            keys = _keys_for(rest[0])
            question = f"[{of - len(rest) + 1}/{of}] publish {name}? [{keys}] "
            key = self.keyboard.press(question)
            try:
                match key:
                    case "s" | "q":
                        return key
                    case "r":
                        rest[0] = self._rename(rest[0])
                    case "y" | "n" | "a" | "d" | "w" | "g" | "e" | "p" | "P" if key in keys:
                        if self._decide(key, rest if key in "ad" else rest[:1]):
                            return key
                    case _:
                        _print_lines(*_help(keys))
            except RootsdError as error:
                if error.code in (ErrorCode.REFUSED, ErrorCode.UNREACHABLE):
                    raise
                self.invocation.output.error(error, [error.remedy] if error.remedy else [])
                if error.code is ErrorCode.FAILED:
                    self._refresh(rest)
        return "s"

    def _refresh(self, rest: list[Item]) -> None:
        """Read the projects again; show the first one if it differs from the one shown."""
        before = rest[0]
        listed = {item["id"] for item in rest}
        rest[:] = self._details(rest)
        self.decided |= listed.difference(item["id"] for item in rest)
        if rest and rest[0] != before:
            self._show(rest[0])

    def _decide(self, key: str, meant: Sequence[Item]) -> bool:
        """Send the order of a key. Return False if the person does not confirm what it covers."""
        verb = DecisionVerb.DENY if key in "nd" else DecisionVerb.APPROVE
        span, access = _GRANTS.get(key, (ApprovalScope.USUAL, None))
        ids = tuple(item["id"] for item in meant)
        order = DecideRequest(verb, cwd="/", refs=ids, access=access, span=span)
        if verb is DecisionVerb.APPROVE:
            # A denial holds for the path, an approval for the directory that was shown.
            order = including(
                replace(order, shown=tuple(item["identity"] for item in meant)),
                confirmable_worktrees(meant[0]) if key == "w" else (),
                _confirmable_git(meant[0]) if key == "g" else (),
            )
        face = TerminalFace(
            self.invocation,
            self.keyboard,
            worktrees=Further.AS_ORDERED,
            git_directories=Further.AS_ORDERED,
        )
        sent = face.decide(order)
        if sent is None:
            return False
        decided = sent.answer
        count = len(decided["items"]) + len(decided["unchanged"])
        self.decided.update(ids)
        if verb is DecisionVerb.APPROVE:
            self.approved += count
        else:
            self.denied += count
        for item in decided["items"]:
            for_session = (
                f", only for the session of {item['session']}" if "session" in item else ""
            )
            _print_lines(f"{item['verdict']} {safe_label(path_of(item), limit=None)}{for_session}")
        for tree in decided.get("worktrees", ()):
            if tree["published"]:
                self.decided.add(tree["id"])
                _print_lines(f"also approved {safe_label(path_of(tree), limit=None)}")
        self.invocation.output.warn(decided["warnings"])
        return True

    def _rename(self, item: Item) -> Item:
        name = self.keyboard.line("name: ")
        if not name:
            return item
        renamed = self.invocation.call(RenameRequest(item["id"], name, "/"))
        now = (*renamed["items"], *renamed["unchanged"])
        return {**item, "name": now[0]["name"]}


def _keys_for(item: Item) -> str:
    """Return the keys that a question about `item` accepts."""
    if item.get("incomplete"):
        return _KEYS_FOR_INCOMPLETE
    more = "w," if confirmable_worktrees(item) else ""
    more += "g," if _confirmable_git(item) else ""
    keys = _KEYS.replace("y,", f"y,{more}", 1)
    return keys.replace("y,", _REQUEST_KEYS, 1) if "request" in item else keys


def _confirmable_git(item: Item) -> Sequence[Item]:
    """Return the Git directory that an approval of `item` can include, if there is one.

    An answer to a session includes none.
    """
    git: Item | None = item.get("shared_git")
    return (git,) if git is not None and git["confirmable"] and "request" not in item else ()


def _help(keys: str) -> Iterator[str]:
    """Yield a line of help for each of these keys."""
    lines = KEY_HELP.splitlines()
    if keys.startswith(_REQUEST_KEYS):
        yield from _REQUEST_HELP.splitlines()
        lines = lines[1:]
    yield from (line for line in lines if line[1:3] != "  " or line[0] in keys)


def _print_lines(*lines: str) -> None:
    sys.stderr.write("".join(f"{line}\n" for line in lines))
