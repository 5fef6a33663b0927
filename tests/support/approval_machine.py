"""A state machine of the disk, a person, and time, which compares each step with `ApprovalModel`.

It gives its inputs to a `World`: here to the pure plan, in `support.ledger_harness` to a ledger.
`support.stored_approvals` compares the store and real folders with the same model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Protocol

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from rootsd.core.catalog import Catalog
from rootsd.core.changes import Change, ChangeVerb, ProjectChange
from rootsd.core.errors import OrderRefused
from rootsd.core.inputs import (
    AddRule,
    Approve,
    Deny,
    Forget,
    Input,
    ProjectGone,
    ProjectObserved,
    ProjectUnreachable,
    ProjectUnsafe,
    RemoveRule,
    Restore,
    Retag,
)
from rootsd.core.model import (
    UNDECIDED,
    IncompleteReason,
    LapseReason,
    Presence,
    Project,
    ProjectKind,
    Verdict,
)
from rootsd.core.paths import normalize_path
from rootsd.core.plan import plan
from support.approval_model import YOUNG, ApprovalModel, ProjectModel, within
from support.core_samples import (
    AFTER_NS,
    ANN,
    BEFORE_NS,
    HOME,
    LATER,
    NOTHING_KNOWN,
    NOW,
    UNIDENTIFIABLE,
    identity,
    tree,
)

SECRET = HOME + b"/.ssh/keys"
NOT_UTF8 = b"/w/a/\xff"
URI = b"https://api.example.com/v1"
MAINS = (b"/w/a", b"/w/b")
WORKTREES = (b"/w/a/t", b"/w/b/t", b"/v/t")
PATHS = (*MAINS, *WORKTREES, b"/w", b"/w/a-b", b"/w/a/c", b"/w/a/c/d", NOT_UTF8, SECRET, URI)
URI_NUMBER = 9
# The hazards that the disk can show. After the others, no rule approves again.
HAZARDS = tuple(
    reason
    for reason in LapseReason
    if reason not in (LapseReason.STORE_RESTORED, LapseReason.CHANGED)
)
# Hazards that keep the approval: the folder is published again as soon as they are gone.
KEEPING = (LapseReason.POLICY, LapseReason.OTHER_OWNER)


def _at(*folders: bytes) -> Callable[[bytes], bool]:
    return lambda path: any(within(path, folder) for folder in folders)


# Each pattern with the paths that it covers.
COVERED: dict[bytes, Callable[[bytes], bool]] = {
    b"/": lambda path: path != URI,
    b"/w": _at(b"/w"),
    b"/w/a": _at(b"/w/a"),
    b"/w/*": _at(b"/w/a", b"/w/b", b"/w/a-b"),
    b"/w/a?*": _at(b"/w/a-b"),
    b"/**/t": _at(*WORKTREES),
    b"/w/**/c": _at(b"/w/a/c"),
    b"/w/a/c/d": _at(b"/w/a/c/d"),
    b"/[!v]/[!a]": _at(b"/w/b"),
    HOME: _at(HOME),
}

# Most faults need several steps on one path.
anywhere = st.sampled_from((*PATHS, *MAINS * 6))
numbers = st.integers(0, 2)
patterns = st.sampled_from(sorted(COVERED))
mains = st.sampled_from((None, *MAINS, *WORKTREES[:1]))


def observed(path: bytes, number: int, main: bytes | None, *, whole: bool) -> ProjectObserved:
    """Return the observation of directory `number` at `path`. Directory 0 has no identity of its
    own.
    """
    if path == URI:
        return ProjectObserved(URI, ProjectKind.URI, None)
    kind = ProjectKind.GIT if main is None else ProjectKind.GIT_WORKTREE
    if number == 0:
        shown = UNIDENTIFIABLE
    elif main is None:
        shown = identity(number)
    else:
        shown = tree(number, AFTER_NS if number == YOUNG else BEFORE_NS)
    return ProjectObserved(
        path, kind, shown, None if whole else IncompleteReason.INTERRUPTED, main
    )


class World(Protocol):
    """What carries out inputs."""

    @property
    def catalog(self) -> Catalog:
        """The present catalog."""

    def take(self, inputs: Sequence[Input]) -> Sequence[Change]:
        """Carry out `inputs`, and return the changes. Raises OrderRefused."""

    def close(self) -> None:
        """End it."""


class PlanWorld:
    """The pure function `plan`."""

    catalog: Catalog = NOTHING_KNOWN

    def take(self, inputs: Sequence[Input]) -> Sequence[Change]:
        made = plan(self.catalog, inputs, NOW)
        self.catalog = made.catalog
        return made.changes

    def close(self) -> None:
        pass


class ApprovalMachine(RuleBasedStateMachine):
    """The disk, a person, and time, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.world = self.make_world()
        self.last_orders: dict[bytes, tuple[Restore, ProjectModel]] = {}
        self.permitted = ApprovalModel(
            lambda pattern, path: COVERED[pattern](path), frozenset({SECRET, NOT_UTF8, URI})
        )

    def make_world(self) -> World:
        return PlanWorld()

    @property
    def catalog(self) -> Catalog:
        return self.world.catalog

    def teardown(self) -> None:
        self.world.close()

    def take(self, *inputs: Input) -> bool:
        """Carry out `inputs`, and return whether they were accepted."""
        before = self.catalog
        try:
            changes = self.world.take(inputs)
        except OrderRefused:
            return False
        assert replayed(before, changes) == self.catalog.projects
        if len(inputs) == 1 and isinstance(inputs[0], Approve | Deny | Forget):
            self.remember(inputs[0].path, changes)
        for change in changes:
            if isinstance(change, ProjectChange) and change.verb is ChangeVerb.FORGOTTEN:
                self.follow(change.path, inputs)
        return True

    def follow(self, path: bytes, inputs: tuple[Input, ...]) -> None:
        """Check that a moved approval leaves nothing at the old path."""
        if Forget(path, ANN) not in inputs:
            assert self.permitted.folders[path].gone
            self.permitted.forget(path)

    def remember(self, path: bytes, changes: Sequence[Change]) -> None:
        """Note the order that undoes `changes`, and the person's earlier decision."""
        for change in changes:
            if isinstance(change, ProjectChange) and (change.path, change.actor) == (path, ANN):
                before, after = (
                    p.ruling if p else UNDECIDED for p in (change.before, change.after)
                )
                order = Restore(path, after, before, ANN)
                self.last_orders.pop(path, None)
                self.last_orders[path] = order, copy(self.permitted.folders[path])

    @initialize()
    def begin(self) -> None:
        """Create every project at the start, because most faults need neighbors."""
        self.scan([(path, 1, MAINS[0], True) for path in PATHS])

    @rule(sightings=st.lists(st.tuples(anywhere, numbers, mains, st.booleans()), max_size=5))
    def scan(self, sightings: list[tuple[bytes, int, bytes | None, bool]]) -> None:
        observations = []
        for path, number, main, whole in sightings:
            linked = main if path in WORKTREES else None
            observations.append(observed(path, number, linked, whole=whole or path == URI))
            shown = URI_NUMBER if path == URI else number
            self.permitted.sight(path, shown, linked, whole=whole or path == URI)
        assert self.take(*observations)

    @rule(path=anywhere)
    def come_back(self, path: bytes) -> None:
        """Observe the same directory at `path` again, without a hazard."""
        if (last := self.permitted.folders.get(path)) is not None:
            number = last.seen or 0
            assert self.take(observed(path, number, last.main, whole=last.whole))
            self.permitted.sight(path, number, last.main, whole=last.whole)

    @rule(path=anywhere)
    def vanish(self, path: bytes) -> None:
        assert self.take(ProjectGone(path))
        if path in self.permitted.folders and path != URI:
            self.permitted.lose(path, proven=True)

    @rule(path=anywhere)
    def unmount(self, path: bytes) -> None:
        assert self.take(ProjectUnreachable(path))
        if path in self.permitted.folders and path != URI:
            self.permitted.lose(path, proven=False)

    @rule(path=anywhere, reason=st.sampled_from(HAZARDS))
    def expose(self, path: bytes, reason: LapseReason) -> None:
        assert self.take(ProjectUnsafe(path, reason))
        if path in self.permitted.folders and reason in KEEPING:
            self.permitted.folders[path].safe = False
        elif path in self.permitted.folders:
            self.permitted.endanger(path)

    @rule(path=anywhere, name=st.sampled_from((None, None, "api", "a")))
    def approve(self, path: bytes, name: str | None) -> None:
        project = self.catalog.projects.get(path)
        shown = project.observed.identity if project else None
        if self.take(Approve(path, shown, ANN, name=name)):
            self.permitted.approve(path)

    @precondition(lambda self: self.catalog.projects)
    @rule(path=anywhere)
    def approve_what_was_replaced(self, path: bytes) -> None:
        assert path == URI or not self.take(Approve(path, identity(8), ANN))

    @rule(path=anywhere)
    def deny(self, path: bytes) -> None:
        assert self.take(Deny(path, ANN)) is (path in self.permitted.folders)
        if path in self.permitted.folders:
            self.permitted.deny(path)

    @rule(path=anywhere)
    def forget(self, path: bytes) -> None:
        assert self.take(Forget(path, ANN)) is (path in self.permitted.folders)
        if path in self.permitted.folders:
            self.permitted.forget(path)
        if path == URI:
            self.permitted.folders.pop(path, None)  # nothing would find it again

    @rule(path=anywhere)
    def tag(self, path: bytes) -> None:
        assert self.take(Retag(path, ("work",), (), ANN)) is (path in self.permitted.folders)
        if path in self.permitted.folders:
            self.permitted.folders[path].decided = True

    @precondition(lambda self: self.last_orders)
    @rule()
    def undo(self) -> None:
        """Undo the last decision, if there was none on that project since."""
        path, (order, before) = self.last_orders.popitem()
        if self.take(order):
            self.permitted.take_back(path, before)

    @rule(pattern=patterns, verdict=st.sampled_from((Verdict.APPROVED, Verdict.DENIED)))
    def add_rule(self, pattern: bytes, verdict: Verdict) -> None:
        assert self.take(AddRule(pattern, verdict, ANN))
        self.permitted.add_rule(normalize_path(pattern), approve=verdict is Verdict.APPROVED)

    @precondition(lambda self: self.catalog.rules)
    @rule(data=st.data())
    def remove_rule(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.permitted.rules)))
        assert self.take(RemoveRule(number, ANN))
        del self.permitted.rules[number]

    @rule(path=anywhere)
    def hesitate(self, path: bytes) -> None:
        """Approve and revoke in one batch: the newest order counts."""
        project = self.catalog.projects.get(path)
        if project is None:
            return
        approval = Approve(path, project.observed.identity, ANN)
        if self.take(approval, Deny(path, ANN)):
            self.permitted.deny(path)

    @rule()
    def look_again(self) -> None:
        again = [_as_seen(project) for project in self.catalog.projects.values()]
        inputs = [event for events in again for event in events]
        assert plan(self.catalog, inputs, LATER).changes == ()

    @invariant()
    def published_is_what_is_permitted(self) -> None:
        self.permitted.settle()
        assert set(self.catalog.roots) == self.permitted.published()

    @invariant()
    def judging_step_by_step_is_judging_all(self) -> None:
        catalog = self.catalog
        whole = Catalog.of(
            catalog.projects.values(), catalog.rules, catalog.places, catalog.next_rule
        )
        assert whole == catalog
        assert whole.counts == catalog.counts

    @invariant()
    def names_and_ids_are_unique(self) -> None:
        projects = self.catalog.projects.values()
        names = [self.catalog.name_of(project) for project in projects]
        assert len({*names}) == len({project.id for project in projects}) == len(projects)


def replayed(before: Catalog, changes: Sequence[Change]) -> dict[bytes, Project]:
    """Apply the changes to the projects of `before`. Each change starts where the last one
    ended.
    """
    projects = dict(before.projects)
    for change in changes:
        if isinstance(change, ProjectChange):
            assert projects.pop(change.path, None) == change.before
            if change.after is not None:
                projects[change.path] = change.after
    return projects


def _as_seen(project: Project) -> tuple[Input, ...]:
    seen = project.observed
    match seen.presence:
        case Presence.MISSING:
            return (ProjectGone(project.path),)
        case Presence.SUSPENDED:
            return (ProjectUnreachable(project.path),)
        case Presence.PRESENT:
            sighted = ProjectObserved(
                project.path, seen.kind, seen.identity, seen.incomplete, seen.main_checkout
            )
            return (
                (sighted, ProjectUnsafe(project.path, seen.hazard)) if seen.hazard else (sighted,)
            )
