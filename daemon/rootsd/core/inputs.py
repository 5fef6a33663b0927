"""Everything that can change the catalog: facts (the disk, the clock) and orders (a person).

A fact cannot be refused; an order can. Only orders approve.
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
    """A project lies at `path`; `incomplete` says why it is not whole (yet), `named` that a person
    called it one, marker or not.

    `proposed` is False if no parent, repository or person proposes what is there any more. Then a
    project that nobody decided about is dropped.
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
    """No project lies at `path` any more: proven absent, not merely unseen.

    `lapse` is set where something else took its place, such as a link: then no approval waits
    for its return.
    """

    path: bytes
    lapse: LapseReason | None = None


@dataclass(frozen=True, slots=True)
class ProjectUnreachable:
    """Nothing can be said about `path`: unmounted, permission lost, I/O error."""

    path: bytes


@dataclass(frozen=True, slots=True)
class ProjectUnsafe:
    """What lies at `path` may not be published any more, e.g. others can write an ancestor."""

    path: bytes
    reason: LapseReason


@dataclass(frozen=True, slots=True)
class ApprovalExpired:
    """The time of the approval of `path` that was to last until `expires` is over."""

    path: bytes
    expires: Expiry


@dataclass(frozen=True, slots=True)
class SessionEnded:
    """The session `session` is over, for which alone `path` was approved."""

    path: bytes
    session: SessionKey


Observation = ProjectObserved | ProjectGone | ProjectUnreachable | ProjectUnsafe
Fact = Observation | ApprovalExpired | SessionEnded


@dataclass(frozen=True, slots=True)
class ConfirmedWorktree:
    """A worktree that the person was shown with its main checkout, and confirmed."""

    path: bytes
    identity: Identity


@dataclass(frozen=True, slots=True)
class Approve:
    """Publish `path` as long as the directory there is `identity`, which the person was shown.

    `origin` is where it says that it came from, to be remembered. `number` is set where a lapsed
    approval is restored as it was; a new approval gets the next number. With
    `session`, it is for that session alone.

    `worktrees` are those that existed before this order and are to inherit it. `since_ns` is as in
    a `Decision`.
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


@dataclass(frozen=True, slots=True)
class Reinstate:
    """Let speak again for `path` what had, and lapsed with a lost history: a rule, or its main
    checkout. Where nothing does any more, it is `approval` instead."""

    path: bytes
    approval: Approve
    actor: Actor


@dataclass(frozen=True, slots=True)
class Deny:
    """Never publish `path` nor anything below it; silent and sticky."""

    path: bytes
    actor: Actor


@dataclass(frozen=True, slots=True)
class Forget:
    """Back to undecided; a project that is gone as well is dropped."""

    path: bytes
    actor: Actor


@dataclass(frozen=True, slots=True)
class Rename:
    """Call the project `name`, now and once it is published."""

    path: bytes
    name: str
    actor: Actor


@dataclass(frozen=True, slots=True)
class Retag:
    """Tag the project with the tags `on` and take the tags `off` from it."""

    path: bytes
    on: tuple[str, ...]
    off: tuple[str, ...]
    actor: Actor


@dataclass(frozen=True, slots=True)
class Restore:
    """Take back what made `undone` of a project: its ruling is to be `ruling` again.

    An approval comes back only to the directory that it was bound to.
    """

    path: bytes
    undone: Ruling
    ruling: Ruling
    actor: Actor


@dataclass(frozen=True, slots=True)
class AddRule:
    """A standing order; `verdict` is approved or denied."""

    pattern: bytes
    verdict: Verdict
    actor: Actor


@dataclass(frozen=True, slots=True)
class RemoveRule:
    """Take a standing order back, and with it the grants it alone had given."""

    number: int
    actor: Actor


@dataclass(frozen=True, slots=True)
class ApproveRule:
    """Let rule `number`, which has lapsed, approve again."""

    number: int
    actor: Actor


@dataclass(frozen=True, slots=True)
class RestoreRule:
    """Take back what happened to rule `number`: it is `rule` again, or gone where that is None."""

    number: int
    rule: Rule | None
    actor: Actor


VerdictOrder = Approve | Reinstate | Deny | Forget
ProjectOrder = VerdictOrder | Rename | Retag | Restore
RuleOrder = AddRule | RemoveRule | ApproveRule | RestoreRule
Order = ProjectOrder | RuleOrder
Input = Fact | Order
