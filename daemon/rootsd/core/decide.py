"""Decide the verdict on a project, whether it is published, and which worktrees inherit approval.

`judge` returns the verdict on a project and the reason for it. It gets what it needs from other
projects and the rules in a `DecisionContext`. `judgments_by_precedence` also returns the judgments
that have less precedence. Only `is_published` decides whether clients may see a project.

The order of precedence is the same for every project:

1. The machine's policy refuses the place, denies it by a rule, or cannot be used.
2. A person denied the folder, or a folder above it.
3. A deny rule matches.
4. A person approved the folder, and its identity is still the same.
5. An approve rule matches.
6. An approve rule of the policy matches.
7. It is a linked worktree, and its main checkout is approved.
8. Otherwise the project is pending.

An approved project that contains a denied project stays pending, because a root includes
everything below it. It is *withheld*. A wall masks the denied project, so a program behind a wall
still gets the withheld root: `judge_behind_wall`.

A linked worktree can inherit the approval of its main checkout. But anybody can write a `.git`
file that names an approved repository, and an archive can also contain the link back. Nobody can
forge the birth time of a folder, or the time of a person's approval. So a worktree inherits only
if all of these are true:

* The repository links back to it. `rootsd.vcs.git.repository` checks that.
* `git worktree add` made it: the folder, its `.git` file, and its entry in the repository were
  born within two seconds.
* It is not a parent, and it contains no parent, no main checkout, and no other known project. It
  may contain worktrees that inherit from the same main checkout, because they are published too.
* Neither its `.git` file nor its entry was replaced since the last grant.
* Its entry was born after the approval, or a person saw the worktree and confirmed it, or it lies
  in its main checkout. Clients of that root read such a worktree anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum

from msgspec import Struct

from rootsd.core.access import Access
from rootsd.core.encoding import to_ns
from rootsd.core.model import (
    ActorKind,
    Identity,
    LapseReason,
    ObservedState,
    Presence,
    Project,
    ProjectKind,
    PublishedRoot,
    Rule,
    Verdict,
)
from rootsd.core.paths import PolicyEntry, ancestors, contains, is_utf8, text_of
from rootsd.core.policy import NO_POLICY, MachinePolicy
from rootsd.core.rules import first_match

CREATION_WINDOW_NS = 2 * 10**9


class InheritanceBlocker(StrEnum):
    """Why a worktree of an approved main checkout does not inherit the approval."""

    NO_BIRTH_TIMES = "its file system does not record when files were created"
    BORN_APART = "its folder, its .git file and its entry in git were not created together"
    REPLACED = "its .git file or its entry in git was replaced"
    PARENT = "it is a parent, or contains one"
    HOLDS_MAIN = "it contains its main checkout"
    HOLDS_PROJECT = "it contains another project"
    OLDER = "it existed before its main checkout was approved"


def entry_born_ns(identity: Identity | None) -> int | None:
    """Return the birth time of a worktree's entry in its repository, or None if it is unknown."""
    target = identity.git_target if identity is not None else None
    return target.born_ns if target is not None else None


def creation_blocker(identity: Identity | None) -> InheritanceBlocker | None:
    """Return why `git worktree add` may not have created the folder, or None if it did."""
    if identity is None:
        return InheritanceBlocker.NO_BIRTH_TIMES
    births = [identity.born_ns, identity.git_born_ns, entry_born_ns(identity)]
    known = [born for born in births if born is not None]
    if len(known) < len(births):
        return InheritanceBlocker.NO_BIRTH_TIMES
    return InheritanceBlocker.BORN_APART if max(known) - min(known) > CREATION_WINDOW_NS else None


def location_blocker(
    path: bytes, main: bytes, parents: Iterable[bytes]
) -> InheritanceBlocker | None:
    """Return what a root at `path` would include besides a worktree of `main`, or None."""
    if any(contains(path, parent) for parent in parents):
        return InheritanceBlocker.PARENT
    return InheritanceBlocker.HOLDS_MAIN if contains(path, main) else None


class VerdictReason(StrEnum):
    """The reason for a verdict, in the order of precedence."""

    POLICY_BROKEN = "policy cannot be used"
    POLICY_PLACE = "place that the policy refuses"
    POLICY_DENY_RULE = "policy deny rule"
    DENIED = "denied"
    DENIED_ABOVE = "a folder above is denied"
    DENY_RULE = "deny rule"
    HOLDS_DENIED = "holds a denied project"
    APPROVED = "approved"
    APPROVE_RULE = "approve rule"
    POLICY_APPROVE_RULE = "policy approve rule"
    MAIN_CHECKOUT = "worktree of an approved checkout"
    LAPSED = "approval lapsed"
    UNDECIDED = "undecided"

    @property
    def is_policy_denial(self) -> bool:
        """Return whether the policy denies the project. No order of a user can change that."""
        return self in _POLICY_DENIALS


_POLICY_DENIALS = (
    VerdictReason.POLICY_BROKEN,
    VerdictReason.POLICY_PLACE,
    VerdictReason.POLICY_DENY_RULE,
)


class Judgment(Struct, frozen=True, gc=False):
    """The verdict on a project, with its reason.

    `by` is the folder, the number of the rule, or the entry of the policy that gives the verdict.
    It is None if a decision about the project itself gives the verdict, if the policy cannot be
    used, or if there is no decision.
    """

    verdict: Verdict
    reason: VerdictReason
    by: bytes | int | PolicyEntry | None = None


class DecisionContext(Struct, frozen=True):
    """Everything that `judge` needs to know apart from the project itself.

    * `denied`: the folders that a person denied.
    * `holding_denied`: the folders above any project that a person or a rule denied.
    * `approved_since`: returns the time since which a main checkout is approved (see
      `approved_since_ns`), or None if it is not approved.
    * `projects_below`: returns the projects below a folder.
    * `parents`: the configured parents.
    * `policy`: the machine's policy.
    """

    rules: tuple[Rule, ...]
    denied: frozenset[bytes]
    holding_denied: frozenset[bytes]
    approved_since: Callable[[bytes], int | None]
    projects_below: Callable[[bytes], Sequence[Project]] = lambda _: ()
    parents: tuple[bytes, ...] = ()
    policy: MachinePolicy = NO_POLICY


# Thousands of projects share these objects, which take 64 bytes each.
_APPROVED = Judgment(Verdict.APPROVED, VerdictReason.APPROVED)
_DENIED = Judgment(Verdict.DENIED, VerdictReason.DENIED)
_PENDING = Judgment(Verdict.PENDING, VerdictReason.UNDECIDED)
_LAPSED = Judgment(Verdict.PENDING, VerdictReason.LAPSED)
_POLICY_BROKEN = Judgment(Verdict.DENIED, VerdictReason.POLICY_BROKEN)


def judge(project: Project, context: DecisionContext) -> Judgment:
    """Return the verdict on `project`, with its reason."""
    return next(judgments_by_precedence(project, context))


def judge_behind_wall(project: Project, context: DecisionContext) -> Judgment:
    """Return the verdict on `project` for a program behind the wall.

    The wall masks denied projects inside `project`.
    """
    judgments = judgments_by_precedence(project, context)
    return next(each for each in judgments if each.reason is not VerdictReason.HOLDS_DENIED)


def denial_of(project: Project, context: DecisionContext) -> Judgment | None:
    """Return the first denial that covers `project`, or None."""
    return next(_denials(project, context), None)


def judgments_by_precedence(project: Project, context: DecisionContext) -> Iterator[Judgment]:
    """Yield every judgment that applies to `project`, by precedence. The first is the verdict."""
    yield from _denials(project, context)
    is_withheld = project.path in context.holding_denied
    for approval in _approvals(project, context):
        if is_withheld:
            is_withheld = False
            yield Judgment(Verdict.PENDING, VerdictReason.HOLDS_DENIED)
        yield approval
    yield _LAPSED if project.ruling.lapse else _PENDING


def _denials(project: Project, context: DecisionContext) -> Iterator[Judgment]:
    yield from _policy_denials(project, context.policy)
    if is_denied_by_person(project):
        yield _DENIED
    if context.denied:
        for folder in ancestors(project.path):
            if folder in context.denied:
                yield Judgment(Verdict.DENIED, VerdictReason.DENIED_ABOVE, folder)
                break  # report the nearest denied folder
    rule = first_match(context.rules, project, Verdict.DENIED)
    if rule is not None:
        yield Judgment(Verdict.DENIED, VerdictReason.DENY_RULE, rule.number)


def _policy_denials(project: Project, policy: MachinePolicy) -> Iterator[Judgment]:
    if policy is NO_POLICY:
        return
    if policy.problem:
        yield _POLICY_BROKEN
    is_folder = project.observed.kind is not ProjectKind.URI
    if is_folder and (place := policy.refused_place(project.path)) is not None:
        yield Judgment(Verdict.DENIED, VerdictReason.POLICY_PLACE, place)
    if (rule := policy.deny_rule(project.path)) is not None:
        yield Judgment(Verdict.DENIED, VerdictReason.POLICY_DENY_RULE, rule)


def policy_refusal(judgment: Judgment, policy: MachinePolicy) -> str:
    """Return why the policy denies a project, as a clause that names the entry of the policy."""
    if not isinstance(judgment.by, PolicyEntry):
        return f"the policy cannot be used, so nothing is published: {policy.problem}"
    return f"the policy denies it ({judgment.by.source})"


def is_denied_by_person(project: Project) -> bool:
    """Return whether a person denied this project itself."""
    decision = project.ruling.decision
    return decision is not None and decision.verdict is Verdict.DENIED


def _approvals(project: Project, context: DecisionContext) -> Iterator[Judgment]:
    ruling, seen = project.ruling, project.observed
    decision = ruling.decision
    if (
        decision is not None
        and decision.verdict is Verdict.APPROVED
        and _covers(decision.identity, seen)
    ):
        yield _APPROVED
    givers = {grant.actor.kind for grant in ruling.grants if _covers(grant.identity, seen)}
    if ActorKind.RULE in givers and (rule := approving_rule(project, context)) is not None:
        yield Judgment(Verdict.APPROVED, VerdictReason.APPROVE_RULE, rule.number)
    if (
        ActorKind.POLICY in givers
        and (entry := context.policy.approve_rule(project.path)) is not None
    ):
        yield Judgment(Verdict.APPROVED, VerdictReason.POLICY_APPROVE_RULE, entry)
    if ActorKind.MAIN_CHECKOUT in givers and _inherits(project, context):
        yield Judgment(Verdict.APPROVED, VerdictReason.MAIN_CHECKOUT, seen.main_checkout)


def _inherits(project: Project, context: DecisionContext) -> bool:
    """Return whether a grant that `project` got as a worktree still counts."""
    seen = project.observed
    main = seen.main_checkout
    since = context.approved_since(main) if main is not None else None
    if since is None or seen.identity is None:
        return False
    # The births at the time of the grant count: overlayfs changes that of a folder when it is
    # written.
    counting = (
        grant.identity
        for grant in project.ruling.grants
        if grant.actor.kind is ActorKind.MAIN_CHECKOUT
        and grant.since_ns == since
        and grant.identity.holds_for(seen.identity)
        and grant.identity.keeps_git_file(seen.identity)
    )
    return any(_permanent_blocker(project, known, context) is None for known in counting)


def inheritance_blocker(project: Project, context: DecisionContext) -> InheritanceBlocker | None:
    """Return why a worktree gets no grant from its approved main checkout, or None.

    The result is also None if `project` is not a worktree, or if its main checkout is not
    approved. A person can overrule `InheritanceBlocker.OLDER`, but no other blocker. A worktree in
    its main checkout is never too old, because clients read it as a part of that root anyway.
    """
    main = project.observed.main_checkout
    since = context.approved_since(main) if main is not None else None
    if since is None:
        return None
    if (blocker := _permanent_blocker(project, project.observed.identity, context)) is not None:
        return blocker
    lapse = project.ruling.lapse
    if lapse is not None and lapse.reason is LapseReason.RETARGETED:
        return InheritanceBlocker.REPLACED
    if main is not None and contains(main, project.path):
        return None
    born = entry_born_ns(project.observed.identity)
    return InheritanceBlocker.OLDER if born is None or born <= since else None


def bulk_approval_blocker(project: Project, context: DecisionContext) -> InheritanceBlocker | None:
    """Return why an approval of many projects, such as `--all`, leaves `project` out, or None.

    A forged `.git` file can make a folder look like a worktree. A person can still approve such a
    folder by name. `InheritanceBlocker.OLDER` does not count here.
    """
    if any(contains(project.path, parent) for parent in context.parents):
        return InheritanceBlocker.PARENT
    if project.observed.main_checkout is None:
        return None
    lapse = project.ruling.lapse
    if lapse is not None and lapse.reason is LapseReason.RETARGETED:
        return InheritanceBlocker.REPLACED
    return _permanent_blocker(project, project.observed.identity, context)


def _permanent_blocker(
    project: Project, identity: Identity | None, context: DecisionContext
) -> InheritanceBlocker | None:
    """Return the blocker that no confirmation removes, or None.

    `identity` is that of the worktree, now or earlier.
    """
    main = project.observed.main_checkout or b""
    blocker = creation_blocker(identity)
    blocker = blocker or location_blocker(project.path, main, context.parents)
    if blocker is None and not all(
        _is_harmless(p, main, context) for p in context.projects_below(project.path)
    ):
        blocker = InheritanceBlocker.HOLDS_PROJECT
    return blocker


def _is_harmless(inner: Project, main: bytes, context: DecisionContext) -> bool:
    """Return whether a worktree of `main` may contain `inner`."""
    if inner.observed.presence is Presence.MISSING:
        return True
    if inner.observed.main_checkout != main:
        return False
    return (
        inheritance_blocker(inner, context) is None
        or judge(inner, context).verdict is Verdict.APPROVED
    )


def approved_since_ns(
    project: Project, judgment: Judgment, context: DecisionContext
) -> int | None:
    """Return the time since which `project` is approved without a break, in ns since the epoch.

    The result is None if `project` is not approved for all sessions, or is approved only as a
    worktree. The time also identifies the approval, because a later approval has another time.
    """
    ruling = project.ruling
    match judgment.reason:
        case VerdictReason.APPROVED if (decision := ruling.decision) and decision.session is None:
            return to_ns(decision.at) if decision.since_ns is None else decision.since_ns
        case VerdictReason.APPROVE_RULE if (rule := approving_rule(project, context)) is not None:
            grants = (g for g in ruling.grants if g.actor.kind is ActorKind.RULE)
            grant = next(grants)
            given = to_ns(grant.at) if grant.since_ns is None else grant.since_ns
            return max(given, to_ns(rule.at))
        case VerdictReason.POLICY_APPROVE_RULE:
            # `PolicyRuleEnded` removes the grant with the rule: it is no older than the rule.
            grant = next(g for g in ruling.grants if g.actor.kind is ActorKind.POLICY)
            return to_ns(grant.at) if grant.since_ns is None else grant.since_ns
        case _:
            return None


def approving_rule(project: Project, context: DecisionContext) -> Rule | None:
    """Return the approve rule that covers `project`, or None."""
    return first_match(context.rules, project, Verdict.APPROVED)


def _covers(approved: Identity | None, observed: ObservedState) -> bool:
    if observed.kind is ProjectKind.URI:
        return True
    seen = observed.identity
    return approved is not None and seen is not None and approved.holds_for(seen)


def is_published(project: Project, judgment: Judgment) -> bool:
    """Return whether clients may see `project`.

    It must be approved, on the disk, and safe, and its path must be UTF-8.
    """
    return (
        judgment.verdict is Verdict.APPROVED
        and project.observed.presence is Presence.PRESENT
        and project.observed.hazard is None
        and is_utf8(project.path)
    )


def root_of(project: Project, access: Access | None = None) -> PublishedRoot:
    """Return a published project as clients see it.

    Its name is the frozen one. Its access is `access`, or else that of its ruling.
    """
    ruling, decision = project.ruling, project.ruling.decision
    session = None if decision is None else decision.session
    return PublishedRoot(
        path=project.path,
        name=ruling.name or text_of(project.path),
        kind=project.observed.kind,
        access=access or ruling.access,
        tags=ruling.tags,
        main_checkout=project.observed.main_checkout,
        approval=0 if decision is None else decision.number,
        session=None if session is None else session.id,
    )
