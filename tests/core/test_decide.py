from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rootsd.core.access import Access
from rootsd.core.decide import (
    CREATION_WINDOW_NS,
    DecisionContext,
    InheritanceBlocker,
    Judgment,
    VerdictReason,
    approved_since_ns,
    approving_rule,
    bulk_approval_blocker,
    inheritance_blocker,
    is_published,
    judge,
    judgments_by_precedence,
    root_of,
)
from rootsd.core.encoding import to_ns
from rootsd.core.model import (
    Actor,
    ActorKind,
    Decision,
    Grant,
    Identity,
    Lapse,
    LapseReason,
    ObservedState,
    Presence,
    Project,
    ProjectKind,
    Rule,
    Ruling,
    SessionKey,
    Verdict,
)
from support.core_samples import AFTER_NS, ANN, BEFORE_NS, NOW, UNIDENTIFIABLE, identity, tree

PATH = b"/w/a/b"
MAIN = b"/v/main"
ONE = identity(1)
SEEN = ObservedState(ProjectKind.GIT, ONE, NOW)
TREE = tree(1)
LINKED = ObservedState(ProjectKind.GIT_WORKTREE, TREE, NOW, main_checkout=MAIN)
APPROVED = Decision(Verdict.APPROVED, ANN, NOW, ONE)
DENIED = Decision(Verdict.DENIED, ANN, NOW)
BY_RULE = Grant(Actor(ActorKind.RULE, "1"), ONE, NOW)
SINCE = to_ns(NOW)
BY_MAIN = Grant(Actor(ActorKind.MAIN_CHECKOUT, "/v/main"), TREE, NOW, SINCE)
BY_PERSON = Grant(ANN, ONE, NOW)
LAPSE = Lapse(LapseReason.REPLACED, NOW)
ALLOW = Rule(1, b"/w/a", Verdict.APPROVED, ANN, NOW)
FORBID = Rule(2, b"/w/*/b", Verdict.DENIED, ANN, NOW)


def project(ruling: Ruling, observed: ObservedState = SEEN, path: bytes = PATH) -> Project:
    return Project(path, "r7k2", observed, ruling)


def around(
    *rules: Rule,
    denied: bytes | None = None,
    holding: bool = False,
    approved: Callable[[bytes], int | None] = lambda _: None,
) -> DecisionContext:
    folders = frozenset() if denied is None else frozenset({denied})
    return DecisionContext(rules, folders, frozenset({PATH} if holding else ()), approved)


EVERYTHING = Ruling(APPROVED, (BY_RULE, BY_MAIN))


def test_each_reason_takes_precedence_over_later_ones_and_names_what_decided() -> None:
    """Remove the reasons one by one, in the order of precedence."""
    approved, denied, pending = Verdict.APPROVED, Verdict.DENIED, Verdict.PENDING
    full = around(ALLOW, FORBID, denied=b"/w", holding=True, approved={MAIN: SINCE}.get)
    not_above = replace(full, denied=frozenset())
    not_forbidden = replace(not_above, rules=(ALLOW,))
    not_holding = replace(not_forbidden, holding_denied=frozenset())
    by_main = replace(not_holding, rules=())
    no_decision = replace(EVERYTHING, decision=None)
    is_denied = replace(EVERYTHING, decision=DENIED)
    for ruling, surroundings, judgment in (
        (is_denied, full, Judgment(denied, VerdictReason.DENIED)),
        (EVERYTHING, full, Judgment(denied, VerdictReason.DENIED_ABOVE, b"/w")),
        (EVERYTHING, not_above, Judgment(denied, VerdictReason.DENY_RULE, 2)),
        (EVERYTHING, not_forbidden, Judgment(pending, VerdictReason.HOLDS_DENIED)),
        (EVERYTHING, not_holding, Judgment(approved, VerdictReason.APPROVED)),
        (no_decision, not_holding, Judgment(approved, VerdictReason.APPROVE_RULE, 1)),
        (no_decision, by_main, Judgment(approved, VerdictReason.MAIN_CHECKOUT, MAIN)),
        (replace(no_decision, lapse=LAPSE), around(), Judgment(pending, VerdictReason.LAPSED)),
        (no_decision, around(), Judgment(pending, VerdictReason.UNDECIDED)),
    ):
        assert judge(project(ruling, LINKED), surroundings) == judgment


def test_a_worktree_keeps_its_approval_when_overlayfs_copies_its_folder() -> None:
    """The first write makes a copy of the folder, which has another birth time."""
    copied = replace(LINKED, identity=replace(TREE, born_ns=2 * SINCE))
    surroundings = around(approved={MAIN: SINCE}.get)
    granted = project(Ruling(grants=(BY_MAIN,)), copied)
    assert judge(granted, surroundings).reason is VerdictReason.MAIN_CHECKOUT
    # The control: a worktree that was born like this gets no grant.
    blocker = inheritance_blocker(granted, surroundings)
    assert blocker is InheritanceBlocker.BORN_APART
    other = replace(BY_MAIN, identity=copied.identity or TREE)
    withheld = project(Ruling(grants=(other,)), copied)
    assert judge(withheld, surroundings).reason is VerdictReason.UNDECIDED


def some(*values: object) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


@given(
    ruling=st.builds(
        Ruling,
        some(None, APPROVED, DENIED, replace(APPROVED, identity=identity(2))),
        st.lists(some(BY_RULE, BY_MAIN, BY_PERSON, replace(BY_RULE, identity=identity(2)))).map(
            tuple
        ),
        some(None, LAPSE),
    ),
    surroundings=st.builds(
        around,
        some(ALLOW, FORBID),
        denied=some(None, b"/", b"/w", b"/v"),
        holding=st.booleans(),
        approved=some({MAIN: SINCE}.get, {MAIN: SINCE + 1}.get, {}.get),
    ),
)
def test_the_first_judgment_is_the_verdict_and_all_follow_precedence(
    ruling: Ruling, surroundings: DecisionContext
) -> None:
    known = project(ruling, LINKED)
    spoken = [voice.reason for voice in judgments_by_precedence(known, surroundings)]
    assert spoken[0] is judge(known, surroundings).reason
    assert spoken == [ground for ground in VerdictReason if ground in spoken]


@pytest.mark.parametrize(
    ("ruling", "observed"),
    [
        pytest.param(Ruling(), SEEN, id="nothing"),
        pytest.param(Ruling(replace(APPROVED, identity=identity(2))), SEEN, id="another folder"),
        pytest.param(Ruling(replace(APPROVED, identity=None)), SEEN, id="an approval of nothing"),
        pytest.param(Ruling(replace(APPROVED, verdict=Verdict.PENDING)), SEEN, id="no approval"),
        pytest.param(
            Ruling(grants=(replace(BY_RULE, identity=identity(2)),)), SEEN, id="another's"
        ),
        pytest.param(Ruling(grants=(BY_PERSON,)), SEEN, id="a grant that persons do not give"),
        pytest.param(Ruling(grants=(BY_MAIN,)), SEEN, id="a main checkout that is not its own"),
        pytest.param(
            Ruling(grants=(replace(BY_MAIN, since_ns=None),)), LINKED, id="an unapproved checkout"
        ),
        pytest.param(
            Ruling(replace(APPROVED, identity=None)),
            replace(SEEN, identity=None),
            id="no identity",
        ),
        pytest.param(
            Ruling(replace(APPROVED, identity=UNIDENTIFIABLE)),
            replace(SEEN, identity=UNIDENTIFIABLE),
            id="no identity of its own",
        ),
    ],
)
def test_no_approval_counts(ruling: Ruling, observed: ObservedState) -> None:
    surroundings = around(ALLOW, approved={b"/v/another": SINCE}.get)
    assert judge(project(ruling, observed), surroundings).reason is VerdictReason.UNDECIDED


def test_a_uri_has_no_directory_and_no_folders_above_it() -> None:
    observed = ObservedState(ProjectKind.URI, None, NOW)
    uri = project(Ruling(replace(APPROVED, identity=None)), observed, b"https://example.com/v1")
    for denied in (b"https://example.com", b"/"):
        judgment = judge(uri, around(FORBID, denied=denied))
        assert judgment.reason is VerdictReason.APPROVED
    assert root_of(uri).uri == "https://example.com/v1"


def test_the_approving_rule_is_the_first_that_covers_the_project() -> None:
    wider = replace(ALLOW, number=9, pattern=b"/")
    assert approving_rule(project(Ruling()), around(FORBID, wider, ALLOW)) == wider
    assert approving_rule(project(Ruling(), path=b"/v"), around(ALLOW)) is None


@pytest.mark.parametrize(
    ("verdict", "observed", "path", "published"),
    [
        (Verdict.APPROVED, SEEN, PATH, True),
        (Verdict.PENDING, SEEN, PATH, False),
        (Verdict.DENIED, SEEN, PATH, False),
        (Verdict.APPROVED, replace(SEEN, presence=Presence.MISSING), PATH, False),
        (Verdict.APPROVED, replace(SEEN, presence=Presence.SUSPENDED), PATH, False),
        (Verdict.APPROVED, replace(SEEN, hazard=LapseReason.EXPOSED), PATH, False),
        (Verdict.APPROVED, SEEN, b"/w/\xff", False),
    ],
)
def test_only_approved_present_safe_and_utf8_projects_are_published(
    verdict: Verdict, observed: ObservedState, path: bytes, published: bool
) -> None:
    judgment = Judgment(verdict, VerdictReason.UNDECIDED)
    assert is_published(project(Ruling(APPROVED), observed, path), judgment) is published


def test_a_root_has_the_fields_that_clients_see() -> None:
    session = SessionKey("1f2e", "claude")
    decision = replace(APPROVED, access=Access.READ, number=7, session=session)
    root = root_of(project(Ruling(decision, name="api", tags=("work",)), path=b"/w/a b"))
    assert (root.path, root.uri, root.name) == (b"/w/a b", "file:///w/a%20b", "api")
    assert (root.kind, root.access, root.tags) == (ProjectKind.GIT, Access.READ, ("work",))
    assert (root.approval, root.session) == (7, "1f2e")
    assert root_of(project(Ruling(replace(decision, session=None)))).session is None
    granted = root_of(project(Ruling(grants=(BY_RULE,))))
    assert (granted.name, granted.access) == ("/w/a/b", Access.READ_WRITE)
    assert granted.approval == 0


def worktree(path: bytes = PATH, main: bytes = MAIN, born_ns: int = AFTER_NS) -> Project:
    observed = replace(LINKED, identity=tree(1, born_ns), main_checkout=main)
    return project(Ruling(), observed, path)


def above(
    *inner: Project, parents: tuple[bytes, ...] = (), since_ns: int = SINCE
) -> DecisionContext:
    """Return a context in which MAIN is approved, and PATH contains the projects `inner`."""
    return replace(
        around(approved={MAIN: since_ns}.get),
        projects_below=lambda path: inner if path == PATH else (),
        parents=parents,
    )


def known_as(identity: Identity | None) -> Project:
    return project(Ruling(), replace(LINKED, identity=identity))


def lapsed(reason: LapseReason) -> Project:
    return replace(worktree(), ruling=Ruling(lapse=Lapse(reason, NOW)))


NEW = tree(1)
BORN = NEW.born_ns or 0
EDGE = BORN + CREATION_WINDOW_NS
Blocker = InheritanceBlocker
INSIDE = PATH + b"/in"
OLD = worktree(INSIDE, born_ns=BEFORE_NS)


@pytest.mark.parametrize(
    ("known", "surroundings", "inherits", "in_bulk"),
    [
        pytest.param(worktree(), above(), None, None, id="a new worktree"),
        pytest.param(project(Ruling()), above(), None, None, id="no worktree"),
        pytest.param(
            project(Ruling()), above(parents=(PATH,)), None, Blocker.PARENT, id="a parent"
        ),
        pytest.param(
            worktree(), above(parents=(INSIDE,)), Blocker.PARENT, Blocker.PARENT, id="holds parent"
        ),
        pytest.param(worktree(), above(parents=(b"/w",)), None, None, id="lies in a parent"),
        pytest.param(
            worktree(b"/v"), above(), Blocker.HOLDS_MAIN, Blocker.HOLDS_MAIN, id="holds main"
        ),
        pytest.param(
            worktree(main=b"/v/other"), above(), None, None, id="its main is not approved"
        ),
        *(
            pytest.param(known_as(each), above(), blocker, blocker, id=name)
            for name, each, blocker in (
                ("no identity", None, Blocker.NO_BIRTH_TIMES),
                ("folder unborn", replace(NEW, born_ns=None), Blocker.NO_BIRTH_TIMES),
                ("file unborn", replace(NEW, git_born_ns=None), Blocker.NO_BIRTH_TIMES),
                ("no entry", replace(NEW, git_target=None), Blocker.NO_BIRTH_TIMES),
                ("in the window", replace(NEW, born_ns=EDGE), None),
                ("after the window", replace(NEW, born_ns=EDGE + 1), Blocker.BORN_APART),
            )
        ),
        pytest.param(
            lapsed(LapseReason.RETARGETED), above(), Blocker.REPLACED, Blocker.REPLACED,
            id="retargeted",
        ),
        pytest.param(lapsed(LapseReason.REPLACED), above(), None, None, id="another lapse"),
        pytest.param(
            worktree(), above(since_ns=AFTER_NS), Blocker.OLDER, None, id="as old as the approval"
        ),
        pytest.param(worktree(), above(since_ns=AFTER_NS - 1), None, None, id="just younger"),
        pytest.param(
            worktree(MAIN + b"/old"), above(since_ns=AFTER_NS), None, None, id="old, in its main"
        ),
        *(
            pytest.param(worktree(), above(each), blocker, blocker, id=f"holds {name}")
            for name, each, blocker in (
                ("a project", project(Ruling(), path=INSIDE), Blocker.HOLDS_PROJECT),
                ("a gone one", project(Ruling(), replace(SEEN, presence=Presence.MISSING)), None),
                ("a new worktree", worktree(INSIDE), None),
                ("another's worktree", worktree(INSIDE, b"/v/other"), Blocker.HOLDS_PROJECT),
                ("an old worktree", OLD, Blocker.HOLDS_PROJECT),
                ("an old approved one", replace(OLD, ruling=Ruling(
                    replace(APPROVED, identity=OLD.observed.identity))), None),
            )
        ),
    ],
)  # fmt: skip
def test_what_keeps_a_worktree_from_an_approval_that_nobody_gave_it_by_name(
    known: Project,
    surroundings: DecisionContext,
    inherits: InheritanceBlocker | None,
    in_bulk: InheritanceBlocker | None,
) -> None:
    assert inheritance_blocker(known, surroundings) is inherits
    assert bulk_approval_blocker(known, surroundings) is in_bulk


def test_an_approval_for_one_session_is_no_start_for_worktrees() -> None:
    known = project(Ruling(APPROVED))
    judgment = judge(known, around())
    assert approved_since_ns(known, judgment, around()) == SINCE
    earlier = project(Ruling(replace(APPROVED, since_ns=SINCE - 1)))
    assert approved_since_ns(earlier, judgment, around()) == SINCE - 1
    limited = project(Ruling(replace(APPROVED, session=SessionKey("1f2e", "claude"))))
    assert judge(limited, around()) == judgment
    assert approved_since_ns(limited, judgment, around()) is None
