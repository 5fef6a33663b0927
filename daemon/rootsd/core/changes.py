"""What a decision changes: the values that the ledger saves, logs and derives notices from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from rootsd.core.guard import Guard
from rootsd.core.model import UNDECIDED, Actor, Project, Rule


class ChangeVerb(StrEnum):
    """What happened, as the history tells it. `OBSERVED` alone leaves no event behind."""

    OBSERVED = "observed"
    APPROVED = "approved"
    DENIED = "denied"
    FORGOTTEN = "forgotten"
    RENAMED = "renamed"
    TAGGED = "tagged"
    UNDONE = "undone"
    GRANTED = "granted"
    WITHDRAWN = "withdrawn"
    LAPSED = "lapsed"
    RULE_ADDED = "rule added"
    RULE_REMOVED = "rule removed"
    GUARD_SET = "guard set"
    FOCUS_SET = "focus set"
    PARENT_ADDED = "parent added"
    PARENT_REMOVED = "parent removed"
    REFUSED = "refused"
    AGENT_COMMAND = "agent command"


@dataclass(frozen=True, slots=True)
class ProjectChange:
    """One project before and after; either side may be absent. `actor` is who ordered it."""

    path: bytes
    before: Project | None
    after: Project | None
    verb: ChangeVerb
    actor: Actor | None = None

    @property
    def is_decision(self) -> bool:
        """Whether the ruling changed: such a change is an event, durable and chained."""
        before = self.before.ruling if self.before else UNDECIDED
        after = self.after.ruling if self.after else UNDECIDED
        return before != after


@dataclass(frozen=True, slots=True)
class RuleChange:
    """One rule before and after."""

    number: int
    before: Rule | None
    after: Rule | None
    verb: ChangeVerb
    actor: Actor


@dataclass(frozen=True, slots=True)
class GuardChange:
    """Who may decide, from now on."""

    after: Guard
    actor: Actor
    verb: ChangeVerb = ChangeVerb.GUARD_SET


@dataclass(frozen=True, slots=True)
class FocusChange:
    """The tag that sessions are narrowed to, from now on; None for no tag."""

    after: str | None
    actor: Actor
    verb: ChangeVerb = ChangeVerb.FOCUS_SET


@dataclass(frozen=True, slots=True)
class Attempt:
    """A command of a caller that may not decide: `what` it was, in words safe to show.

    It was refused. With the verb `AGENT_COMMAND` it decides nothing and was carried out.
    """

    what: str
    actor: Actor
    verb: ChangeVerb = ChangeVerb.REFUSED


@dataclass(frozen=True, slots=True)
class ParentChange:
    """A parent that the configuration names from now on, or no longer; `verb` says which.

    `actor` is the caller whose command had the daemon read the configuration; None where the file
    was edited by other means.
    """

    path: bytes
    verb: ChangeVerb
    actor: Actor | None


Change = ProjectChange | RuleChange
"""What changes the catalog."""
AuditRecord = GuardChange | FocusChange | ParentChange | Attempt
"""What the history tells, too, and no catalog holds."""
