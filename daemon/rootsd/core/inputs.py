"""The inputs that can change a catalog: events, from the disk and the clock, and orders.

A person gives orders. An order can be refused; an event cannot. Only an order can approve.
"""

from __future__ import annotations

from msgspec import Struct

from rootsd.core.access import Access
from rootsd.core.model import (
    Actor,
    Expiry,
    Identity,
    IncompleteReason,
    Inspection,
    LapseReason,
    ProjectKind,
    Rule,
    Ruling,
    SessionKey,
    Verdict,
)
from rootsd.core.risks import RiskLimit


class ProjectObserved(Struct, frozen=True):
    """A project is at `path`. The catalog keeps what follows from it, as an `ObservedState`.

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


class ProjectGone(Struct, frozen=True):
    """There is certainly no project at `path`. (An unreadable folder is `ProjectUnreachable`.)

    `lapse` is set if something else is at the path, such as a link. Then an approval lapses at
    once. Otherwise it stays, because the project may return.
    """

    path: bytes
    lapse: LapseReason | None = None


class ProjectUnreachable(Struct, frozen=True):
    """The state of `path` is unknown.

    For example, it is not mounted, its disk fails, or permission is missing.
    """

    path: bytes


class ProjectUnsafe(Struct, frozen=True):
    """The project at `path` may not be published now, for example because others can write to a
    folder above it.
    """

    path: bytes
    reason: LapseReason


class ProjectNamed(Struct, frozen=True):
    """Lists show the new project at `path` as `name` from now on, unless another has it by now."""

    path: bytes
    name: str


class ProjectInspected(Struct, frozen=True):
    """A look into the project at `path`, when it had this identity, found this.

    `lapse` is set if the approval lapses when a file that runs by itself has changed. `accepted`
    are the files that the approval is based on if this is the first look: for a worktree that
    inherits, those of its main checkout, and otherwise None, for what was found.
    """

    path: bytes
    identity: Identity | None
    inspection: Inspection
    lapse: LapseReason | None = None
    accepted: tuple[tuple[str, str], ...] | None = None


class ApprovalExpired(Struct, frozen=True):
    """The approval of `path` that has the end `expires` is over."""

    path: bytes
    expires: Expiry


class SessionEnded(Struct, frozen=True):
    """The one session that the approval of `path` was for has ended."""

    path: bytes
    session: SessionKey


class PolicyRuleEnded(Struct, frozen=True):
    """No approve rule of the policy covers `path` any more. `rule` gave the grant that ends."""

    path: bytes
    rule: Actor


Observation = ProjectObserved | ProjectGone | ProjectUnreachable | ProjectUnsafe
InputEvent = (
    Observation
    | ProjectNamed
    | ProjectInspected
    | ApprovalExpired
    | SessionEnded
    | PolicyRuleEnded
)


class ConfirmedWorktree(Struct, frozen=True):
    """A worktree that a person saw together with its main checkout, and confirmed."""

    path: bytes
    identity: Identity


class Approve(Struct, frozen=True):
    """Publish `path` as long as it has the directory `identity`, which the person saw.

    It becomes a `Decision`, whose time and number only the plan knows.

    * `origin`: the repository address to remember.
    * `number`: set to restore a lapsed approval as it was; a new approval gets the next number.
    * `worktrees`: existing worktrees that the person confirmed; they inherit the approval.
    * `since_ns`: see `Decision.since_ns`.
    * `session`: the one session that the approval is for, or None for all.
    * `shared_git`: see `Decision.shared_git`; the checkout that the person saw.
    * `proposes`: see `Decision.proposes`.
    * `incomplete`: why the project is incomplete, if the person knows that and approves it anyway.
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
    proposes: bool = False
    incomplete: IncompleteReason | None = None


class Reinstate(Struct, frozen=True):
    """Let a rule or a main checkout approve `path` again, after its approval lapsed.

    If no rule or main checkout approves it now, apply `approval` instead.
    """

    path: bytes
    approval: Approve
    actor: Actor


class Deny(Struct, frozen=True):
    """Never publish `path` or anything below it. A denial stays until a person takes it back.

    `proposes` is that of a `Decision`.
    """

    path: bytes
    actor: Actor
    proposes: bool = False


class Forget(Struct, frozen=True):
    """Make the project undecided again.

    A project that is gone from the disk, or that only a person proposed, is dropped.
    """

    path: bytes
    actor: Actor


class Accept(Struct, frozen=True):
    """Accept the files that changed since the approval of `path`, as the person saw them."""

    path: bytes
    actor: Actor
    files: tuple[tuple[str, str], ...]


class Rename(Struct, frozen=True):
    """Give the project the name `name`, whether it is published now or later."""

    path: bytes
    name: str
    actor: Actor


class Retag(Struct, frozen=True):
    """Add the tags `on` to the project and remove the tags `off`."""

    path: bytes
    on: tuple[str, ...]
    off: tuple[str, ...]
    actor: Actor


class Restore(Struct, frozen=True):
    """Undo the decision that led to the ruling `undone`, and restore the earlier `ruling`.

    This restores an approval only if the same directory is still there.
    """

    path: bytes
    undone: Ruling
    ruling: Ruling
    actor: Actor


class AddRule(Struct, frozen=True):
    """Add a rule, which gets a number. `verdict` is APPROVED or DENIED.

    `origin` and `risk` are those of a `Rule`.
    """

    pattern: bytes
    verdict: Verdict
    actor: Actor
    origin: str | None = None
    risk: RiskLimit | None = None


class RemoveRule(Struct, frozen=True):
    """Remove a rule. Grants that only this rule gave no longer count."""

    number: int
    actor: Actor


class ApproveRule(Struct, frozen=True):
    """Let the lapsed rule `number` approve again."""

    number: int
    actor: Actor


class RestoreRule(Struct, frozen=True):
    """Undo a change of rule `number`: the rule becomes `rule` again.

    If `rule` is None, the rule is removed.
    """

    number: int
    rule: Rule | None
    actor: Actor


VerdictOrder = Approve | Reinstate | Accept | Deny | Forget
ProjectOrder = VerdictOrder | Rename | Retag | Restore
RuleOrder = AddRule | RemoveRule | ApproveRule | RestoreRule
Order = ProjectOrder | RuleOrder
Input = InputEvent | Order
