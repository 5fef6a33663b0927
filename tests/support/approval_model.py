"""A reference model of approvals and what they publish. It follows the contract, not the code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

# The worktree with this number was created after every order; all others before.
YOUNG = 1


@dataclass
class ProjectModel:
    """The state of one project in the model.

    `word` is the directory that a person approved, `vouched` the one that a rule approved. Beside
    each is the start of the approval: True means since the birth of a young worktree that already
    existed. `inherited` is the start of the approval that a worktree inherits.
    """

    seen: int | None = None
    here: bool = True
    gone: bool = False
    whole: bool = True
    safe: bool = True
    main: bytes | None = None
    denied: bool = False
    word: int | None = None
    vouched: int | None = None
    word_since: bool = False
    vouched_since: bool = False
    inherited: bool | None = None
    decided: bool = False

    def drop_approvals(self) -> None:
        self.word = self.vouched = self.inherited = None


@dataclass
class ApprovalModel:
    """The model. `covers` says which paths a pattern covers. Directory 0 has no identity of its
    own.

    `rules` maps a number to the pattern and whether the rule approves. `lapsed` are approve rules
    in force until a part of the history was lost. `doubted` are paths that the lost part may have
    denied, out of all that were ever `known`.
    """

    covers: Callable[[bytes, bytes], bool]
    never: frozenset[bytes] = frozenset()
    folders: dict[bytes, ProjectModel] = field(default_factory=dict)
    rules: dict[int, tuple[bytes, bool]] = field(default_factory=dict)
    lapsed: dict[int, tuple[bytes, bool]] = field(default_factory=dict)
    known: set[bytes] = field(default_factory=set)
    doubted: set[bytes] = field(default_factory=set)
    next_rule: int = 1

    def sight(self, path: bytes, number: int, main: bytes | None, *, whole: bool) -> None:
        self.known.add(path)
        folder = self.folders.setdefault(path, ProjectModel())
        if (folder.seen, folder.main) != (number, main) or number == 0:
            folder.drop_approvals()
        folder.seen, folder.main, folder.whole = number, main, whole
        folder.here, folder.gone, folder.safe = True, False, True

    def lose(self, path: bytes, *, proven: bool) -> None:
        if proven and not self.folders[path].decided:
            del self.folders[path]
        else:
            self.folders[path].here, self.folders[path].gone = False, proven

    def endanger(self, path: bytes) -> None:
        self.folders[path].safe = False
        self.folders[path].drop_approvals()

    def approve(self, path: bytes) -> None:
        folder = self.folders[path]
        folder.word_since = self.since(path)
        folder.word, folder.denied, folder.decided = folder.seen, False, True
        self.doubted.discard(path)

    def deny(self, path: bytes) -> None:
        self.doubted.discard(path)
        folder = self.folders[path]
        folder.drop_approvals()
        folder.denied = folder.decided = True

    def forget(self, path: bytes) -> None:
        folder = self.folders[path]
        folder.drop_approvals()
        folder.denied = folder.decided = False
        if folder.gone:
            del self.folders[path]

    def take_back(self, path: bytes, before: ProjectModel) -> None:
        folder = self.folders[path]
        folder.drop_approvals()
        folder.word, folder.denied, folder.decided = before.word, before.denied, before.decided
        folder.word_since = before.word_since
        if folder.gone and not folder.decided:
            del self.folders[path]

    def add_rule(self, pattern: bytes, *, approve: bool) -> None:
        self.rules[self.next_rule] = pattern, approve
        self.next_rule += 1

    def approve_rules_again(self) -> None:
        self.rules, self.lapsed = self.rules | self.lapsed, {}

    def lose_the_end_of(self, old: ApprovalModel) -> None:
        """Go back to an older store that knows that it is old."""
        self.folders, self.next_rule = old.folders, old.next_rule
        for folder in self.folders.values():
            folder.drop_approvals()
        self.rules = {n: rule for n, rule in old.rules.items() if not rule[1]}
        self.lapsed = old.lapsed | {n: rule for n, rule in old.rules.items() if rule[1]}
        self.known |= old.known
        self.doubted = set(self.known)

    def settle(self) -> None:
        """Apply the rules, then inheritance, to the projects that no person decided about.

        A rule also approves a project that holds a denied one: it is withheld, not refused.
        """
        for path, folder in sorted(self.folders.items(), key=lambda item: item[1].main or b""):
            fit = folder.here and folder.whole and folder.safe and folder.seen != 0
            free = path not in self.never and not self.denied(path) and folder.word is None
            if not (fit and free) or self.approved_apart_from_inside(path):
                continue
            if self.ruled(path, approve=True):
                folder.vouched_since = self.since(path)
                folder.vouched, folder.decided = folder.seen, True
            elif (since := self.main_since(folder)) is not None and (
                within(path, folder.main or b"") or (folder.seen == YOUNG and since is False)
            ):
                folder.inherited, folder.decided = since, True

    def since(self, path: bytes) -> bool:
        """Return the start of an approval of `path` given now. An existing approval keeps its
        start.
        """
        folder = self.folders[path]
        if self.approved(path) and folder.main is None:
            return folder.word_since if folder.word is not None else folder.vouched_since
        return any(f.main == path and f.seen == YOUNG for f in self.folders.values())

    def ruled(self, path: bytes, *, approve: bool) -> bool:
        return any(yes is approve and self.covers(p, path) for p, yes in self.rules.values())

    def denied(self, path: bytes) -> bool:
        above = (p for p, folder in self.folders.items() if folder.denied and within(path, p))
        return any(above) or self.ruled(path, approve=False)

    def approved(self, path: bytes) -> bool:
        return self.approved_apart_from_inside(path) and not self.holds_denied(path)

    def approved_apart_from_inside(self, path: bytes) -> bool:
        """Return whether it is approved, if what is denied inside it does not count."""
        folder = self.folders[path]
        vouched = folder.vouched is not None and self.ruled(path, approve=True)
        inherits = folder.inherited is not None and self.main_since(folder) is folder.inherited
        speaks = folder.word is not None or vouched or inherits
        return speaks and not self.denied(path)

    def holds_denied(self, path: bytes) -> bool:
        return any(within(p, path) and self.denied(p) for p in self.folders)

    def main_since(self, folder: ProjectModel) -> bool | None:
        """Return the start of the approval of a worktree's main checkout, or None."""
        main = self.folders.get(folder.main or b"")
        if main is None or main.main is not None:
            return None
        if not self.approved_apart_from_inside(folder.main or b""):
            return None
        return main.word_since if main.word is not None else main.vouched_since

    def published(self) -> set[bytes]:
        known = self.folders.items()
        return {p for p, folder in known if folder.here and folder.safe and self.approved(p)}

    def certainly_published(self) -> set[bytes]:
        """Return what is published even if the lost part of the history denied it."""
        return {p for p in self.published() if self.folders[p].word or p not in self.doubted}


def within(path: bytes, folder: bytes) -> bool:
    """Return whether `path` is `folder` or lies in it."""
    return path.split(b"/")[: len(folder.split(b"/"))] == folder.split(b"/")
