"""The inputs that can change a catalog: events, from the disk and the clock, and orders.

A person gives orders. An order can be refused; an event cannot. Only an order can approve.
"""

from __future__ import annotations

from dataclasses import dataclass

from rootsd.core.model import (
    Access,
    Actor,
    Expiry,
    Identity,
    IncompleteReason,
    LapseReason,
    ProjectKind,
    Rule,
    Ruling,
    SessionKey,
    Verdict,
)


@dataclass(frozen=True, slots=True)
class ProjectObserved:
    """A project is at `path`.

    * `incomplete`: set while the repository is incomplete.
    * `named`: whether a person named the folder as a project. It then needs no marker.
    * `proposed`: False if no parent, repository, or person proposes the folder any more. A project
      without a decision is then dropped.
    """

    path: bytes
    kind: ProjectKind
    identity: Identity | None
    incomplete: IncompleteReason | None = None
    main_checkout: bytes | None = None
    named: bool = False
    proposed: bool = True


@dataclass(frozen=True, slots=True)
class ProjectGone:
    """There is certainly no project at `path`. (An unreadable folder is `ProjectUnreachable`.)

    `lapse` is set if something else is at the path, such as a link. Then an approval lapses at
    once. Otherwise it stays, because the project may return.
    """

    path: bytes
    lapse: LapseReason | None = None


@dataclass(frozen=True, slots=True)
class ProjectUnreachable:
    """The state of `path` is unknown.

    For example, it is not mounted, its disk fails, or permission is missing.
    """

    path: bytes


@dataclass(frozen=True, slots=True)
class ProjectUnsafe:
    """The project at `path` may not be published now, for example because others can write to a
    folder above it.
    """

    path: bytes
    reason: LapseReason


@dataclass(frozen=True, slots=True)
class ApprovalExpired:
    """The approval of `path` that has the end `expires` is over."""

    path: bytes
    expires: Expiry


@dataclass(frozen=True, slots=True)
class SessionEnded:
    """The one session that the approval of `path` was for has ended."""

    path: bytes
    session: SessionKey


@dataclass(frozen=True, slots=True)
class PolicyRuleEnded:
    """No approve rule of the policy covers `path` any more. `rule` gave the grant that ends."""

    path: bytes
    rule: Actor


Observation = ProjectObserved | ProjectGone | ProjectUnreachable | ProjectUnsafe
InputEvent = Observation | ApprovalExpired | SessionEnded | PolicyRuleEnded


@dataclass(frozen=True, slots=True)
class ConfirmedWorktree:
    """A worktree that a person saw together with its main checkout, and confirmed."""

    path: bytes
    identity: Identity


@dataclass(frozen=True, slots=True)
class Approve:
    """Publish `path` as long as it has the directory `identity`, which the person saw.

    * `origin`: the repository address to remember.
    * `number`: set to restore a lapsed approval as it was; a new approval gets the next number.
    * `worktrees`: existing worktrees that the person confirmed; they inherit the approval.
    * `since_ns`: see `Decision.since_ns`.
    * `session`: the one session that the approval is for, or None for all.
    * `shared_git`: see `Decision.shared_git`; the checkout that the person saw.
    """

    path: bytes
    identity: Identity | None
    actor: Actor
    name: str | None = None
    tags: tuple[str, ...] = ()
    access: Access = Access.READ_WRITE
    expires: Expiry | None = None
    origin: str | None = None
    number: int | None = None
    worktrees: tuple[ConfirmedWorktree, ...] = ()
    since_ns: int | None = None
    session: SessionKey | None = None
    shared_git: Identity | None = None


@dataclass(frozen=True, slots=True)
class Reinstate:
    """Let a rule or a main checkout approve `path` again, after its approval lapsed.

    If no rule or main checkout approves it now, apply `approval` instead.
    """

    path: bytes
    approval: Approve
    actor: Actor


@dataclass(frozen=True, slots=True)
class Deny:
    """Never publish `path` or anything below it. A denial stays until a person takes it back."""

    path: bytes
    actor: Actor


@dataclass(frozen=True, slots=True)
class Forget:
    """Make the project undecided again. A project that is gone from the disk is dropped."""

    path: bytes
    actor: Actor


@dataclass(frozen=True, slots=True)
class Rename:
    """Give the project the name `name`, whether it is published now or later."""

    path: bytes
    name: str
    actor: Actor


@dataclass(frozen=True, slots=True)
class Retag:
    """Add the tags `on` to the project and remove the tags `off`."""

    path: bytes
    on: tuple[str, ...]
    off: tuple[str, ...]
    actor: Actor


@dataclass(frozen=True, slots=True)
class Restore:
    """Undo the decision that led to the ruling `undone`, and restore the earlier `ruling`.

    This restores an approval only if the same directory is still there.
    """

    path: bytes
    undone: Ruling
    ruling: Ruling
    actor: Actor


@dataclass(frozen=True, slots=True)
class AddRule:
    """Add a rule. `verdict` is APPROVED or DENIED."""

    pattern: bytes
    verdict: Verdict
    actor: Actor


@dataclass(frozen=True, slots=True)
class RemoveRule:
    """Remove a rule. Grants that only this rule gave no longer count."""

    number: int
    actor: Actor


@dataclass(frozen=True, slots=True)
class ApproveRule:
    """Let the lapsed rule `number` approve again."""

    number: int
    actor: Actor


@dataclass(frozen=True, slots=True)
class RestoreRule:
    """Undo a change of rule `number`: the rule becomes `rule` again.

    If `rule` is None, the rule is removed.
    """

    number: int
    rule: Rule | None
    actor: Actor


VerdictOrder = Approve | Reinstate | Deny | Forget
ProjectOrder = VerdictOrder | Rename | Retag | Restore
RuleOrder = AddRule | RemoveRule | ApproveRule | RestoreRule
Order = ProjectOrder | RuleOrder
Input = InputEvent | Order
