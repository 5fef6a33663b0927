"""Review pending projects one after the other, with one key for each decision.

Each key sends at most one order, and the next question comes after the daemon's response. A key
about several projects lists them first, and needs another key. So the
review can end at any time (a key, ^C, a lost connection), and every project is either decided or
pending.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from rootsd.cli.answers.affected import Item
from rootsd.cli.answers.decision_flow import confirmable_worktrees, including
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.answers.terminal_face import Further, TerminalFace
from rootsd.cli.text.phrases import pluralize, shorten_home
from rootsd.cli.text.projects import (
    FOUND,
    KIND,
    LABEL_WIDTH,
    PATH,
    RISK,
    RISK_LABELS,
    detail_lines,
    path_of,
)
from rootsd.cli.text.terminal import Keyboard
from rootsd.cli.text.theme import Tone
from rootsd.core.access import Access
from rootsd.core.errors import ErrorCode, RootsdError
from rootsd.core.labels import safe_label, safe_text
from rootsd.core.uris import owner_of
from rootsd.wire.decisions import ApprovalScope, DecideRequest, DecisionVerb, RenameRequest
from rootsd.wire.projects import NextPendingQuery, ProjectsQuery, RiskReading, ShowQuery

KEY_HELP = """\
y  publish it
w  publish it with its listed worktrees
g  publish it, and let programs behind the wall use its Git directory in a pending checkout
n  deny it: rootsd never proposes it again
a  publish it and the rest of this group
d  deny it and the rest of this group
A  publish it and all others in which no risks were found, after a list of them
s  skip it: it stays pending
r  rename it, then ask again
q  quit; the rest stays pending
?  all about it, and these keys
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
_PAGE_SIZE = 100  # so many risks are read in 0.1 s
_LABELS_OF_FURTHER = frozenset(("note", "worktree", "shared git"))


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
    """One run of the review: requests first, then projects without risks, then all others.

    The risks are read page by page, so that the first question comes at once. `seen` holds the ids
    that the person was asked about, `waiting` the ids of all pending projects, and `decided` those
    of them that are no longer pending. `unread` are projects whose risks were not read yet, `safe`
    those without risks, and `others` all others.
    """

    invocation: Invocation
    keyboard: Keyboard
    approved: int = 0
    denied: int = 0
    seen: list[str] = field(default_factory=list)
    waiting: set[str] = field(default_factory=set)
    decided: set[str] = field(default_factory=set)
    unread: list[Item] = field(default_factory=list)
    safe: list[Item] = field(default_factory=list)
    others: list[Item] = field(default_factory=list)

    @property
    def left(self) -> int:
        """The number of projects that are still pending, in all groups."""
        return len(self.waiting - self.decided)

    def ask_about(self, waiting: Sequence[Item]) -> bool:
        """Ask about each of these `WaitingItem`s; return False if the person quits."""
        self.waiting.update(item["id"] for item in waiting)
        requested = [item for item in waiting if item["requested"]]
        self.unread = [item for item in waiting if not item["requested"]]
        if not self._ask_groups(self._with_risks(requested)):
            return False
        while safe := self._next_safe():
            if not self._ask_groups(safe):
                return False
        others, self.others = self._open(self.others), []
        return self._ask_groups(others)

    def summary(self) -> str:
        """Return a sentence with the counts, and how to undo."""
        counts = f"{self.approved} approved, {self.denied} denied, {self.left} still pending."
        return f"{counts} rootsd undo takes the last answer back." if self._has_decided else counts

    @property
    def _has_decided(self) -> bool:
        return bool(self.approved or self.denied)

    def _ask_groups(self, items: Sequence[Item]) -> bool:
        for group in group_pending(items):
            if rest := self._open(group.items):
                _print_lines("")
                self.invocation.output.labelled_message("", safe_text(group.title), Tone.HEADING)
            while self._read_first(rest):
                answer = self._ask(rest)
                if answer == "q":
                    return False
                self.seen += [item["id"] for item in (rest if answer in "ad" else rest[:1])]
                rest = self._open(rest)
        return True

    def _open(self, items: Iterable[Item]) -> list[Item]:
        """Return the projects that the person has not been asked about, and that are pending.

        A worktree may have been published with its main checkout, in an earlier group.
        """
        answered = self.decided.union(self.seen)
        return [item for item in items if item["id"] not in answered]

    def _next_safe(self) -> list[Item]:
        """Return projects without risks, from the next page that has any."""
        while not (safe := self._open(self.safe)) and self.unread:
            self._read_page()
        return safe

    def _all_safe(self) -> list[Item]:
        """Return all projects that are left and have no risks."""
        if self.unread:
            about = f"Reading the risks of {pluralize(len(self.unread), 'more project')}."
            self.invocation.output.message(about)
        while self.unread:
            self._read_page()
        return self._open(self.safe)

    def _read_page(self) -> None:
        page, self.unread = self.unread[:_PAGE_SIZE], self.unread[_PAGE_SIZE:]
        for item in self._with_risks(page):
            (self.safe if _is_safe(item) else self.others).append(item)

    def _with_risks(self, items: Sequence[Item]) -> list[Item]:
        """Return the projects with their risks and origins, without those that are gone."""
        if not items:
            return []
        refs = tuple(item["id"] for item in items)
        query = ProjectsQuery("/", refs=refs, risks=RiskReading.THOROUGH)
        try:
            found = {each["id"]: each for each in self.invocation.call(query)["items"]}
        except RootsdError as error:
            if error.code is not ErrorCode.NOTHING_MATCHED:
                raise
            return self._with_risks(self._as_listed_now(items))
        return [{**item, **found[item["id"]]} for item in items]

    def _as_listed_now(self, items: Sequence[Item]) -> list[Item]:
        """Return the projects as they are now, without those that are gone or decided."""
        listed = self.invocation.call(NextPendingQuery())["items"]
        now = {item["id"]: item for item in listed}
        self.decided.update(item["id"] for item in items if item["id"] not in now)
        return [now[item["id"]] for item in items if item["id"] in now]

    def _read_first(self, rest: list[Item]) -> bool:
        """Read all about the first project that is still there; return False if none is."""
        while rest:
            try:
                [shown] = self.invocation.call(ShowQuery("/", (rest[0]["id"],)))["items"]
            except RootsdError as error:
                if error.code is not ErrorCode.NOTHING_MATCHED:
                    raise
                self.decided.add(rest.pop(0)["id"])
            else:
                rest[0] = {**rest[0], **shown}
                return True
        return False

    def _show(self, item: Item) -> None:
        """Print a line about a project, and further ones about what a key would include."""
        path, *facts = (each.text(item, for_terminal=True) for each in (PATH, KIND, FOUND, RISK))
        is_safe = _is_safe(item)
        line = "  ".join(each for each in (*facts, "no risks found" if is_safe else "") if each)
        self._print(f"{path}  ", line, Tone.LABEL if is_safe else Tone.REFUSED)
        self._print_details(item, _LABELS_OF_FURTHER.__contains__)

    def _print_details(self, item: Item, is_wanted: Callable[[str], bool]) -> None:
        for label, value in detail_lines(item, for_person=True):
            if is_wanted(label):
                tone = Tone.REFUSED if label in RISK_LABELS else Tone.LABEL
                self._print(f"{label:<{LABEL_WIDTH}}", safe_label(value, limit=None), tone)

    def _print(self, label: str, text: str, tone: Tone) -> None:
        self.invocation.output.labelled_message(label, text, tone)

    def _ask(self, rest: list[Item]) -> str:
        """Show the first project of `rest`, ask until a key has an effect, and return the key.

        `rest` holds the remaining projects of a group. If a project has changed in the meantime,
        show it again.
        """
        self._show(rest[0])
        while rest:
            name = safe_label(rest[0]["name"])
            keys = _keys_for(rest[0])
            number = len(self.waiting.intersection((*self.seen, *self.decided))) + 1
            question = f"[{number:,}/{len(self.waiting):,}] publish {name}? [{keys}] "
            key = self.keyboard.press(question)
            try:
                match key:
                    case "s" | "q":
                        return key
                    case "r":
                        rest[0] = self._rename(rest[0])
                    case _ if key != "?" and key in keys.split(","):
                        if self._decide(key, self._meant_by(key, rest)):
                            return key
                    case _:
                        if key == "?":
                            self._print_details(rest[0], lambda label: label != "verdict")
                        _print_lines(*_help(keys))
            except RootsdError as error:
                if error.code in (ErrorCode.REFUSED, ErrorCode.UNREACHABLE):
                    raise
                self.invocation.output.error(error, [error.remedy] if error.remedy else [])
                if error.code is ErrorCode.FAILED:
                    self._refresh(rest)
        return "s"

    def _meant_by(self, key: str, rest: Sequence[Item]) -> Sequence[Item]:
        """Return the projects that a key decides about. `rest` is that of the group."""
        match key:
            case "A":
                return self._all_safe()
            case "a" | "d":
                return rest
            case _:
                return rest[:1]

    def _refresh(self, rest: list[Item]) -> None:
        """Read the projects again; show the first one if it differs from the one shown."""
        before = rest[0]
        rest[:] = self._with_risks(self._as_listed_now(rest))
        if self._read_first(rest) and rest[0] != before:
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
    keys = keys.replace("d,", "d,A,") if _is_safe(item) else keys
    return keys.replace("y,", _REQUEST_KEYS, 1) if "request" in item else keys


def _is_safe(item: Item) -> bool:
    """Return whether all of a project was seen without a risk, and an approval needs no choice."""
    return item["risk"] == "" and not item["incomplete"] and "request" not in item


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
