"""The changes that inputs make. The ledger saves, logs, and reports them."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from rootsd.core.guard import Guard
from rootsd.core.model import UNDECIDED, Actor, Project, Rule


class ChangeVerb(StrEnum):
    """The verb of a change, and of its event in the history. `OBSERVED` adds no event."""

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
    PROGRAM_ALLOWED = "program allowed"
    PROGRAM_DISALLOWED = "program disallowed"
    FOCUS_SET = "focus set"
    PARENT_ADDED = "parent added"
    PARENT_REMOVED = "parent removed"
    POLICY_CHANGED = "policy changed"
    CONFIGURATION_CHANGED = "configuration changed"
    COMMAND = "command"
    REFUSED = "refused"
    AGENT_COMMAND = "agent command"
    REQUESTED = "requested"


class ProjectChange(Struct, frozen=True):
    """One project before and after a change; either may be None. `actor` gave the order."""

    path: bytes
    before: Project | None
    after: Project | None
    verb: ChangeVerb
    actor: Actor | None = None

    @property
    def is_decision(self) -> bool:
        """Return whether the ruling changed. Then the change becomes an event in the history."""
        before = self.before.ruling if self.before else UNDECIDED
        after = self.after.ruling if self.after else UNDECIDED
        return before != after


class RuleChange(Struct, frozen=True):
    """One rule before and after a change."""

    number: int
    before: Rule | None
    after: Rule | None
    verb: ChangeVerb
    actor: Actor


class GuardChange(Struct, frozen=True):
    """A new setting of the guard."""

    after: Guard
    actor: Actor
    verb: ChangeVerb = ChangeVerb.GUARD_SET


class ProgramsChange(Struct, frozen=True):
    """The programs that a person has added to those that the guard knows, after a change."""

    after: frozenset[str]
    actor: Actor
    verb: ChangeVerb = ChangeVerb.PROGRAM_ALLOWED


class FocusChange(Struct, frozen=True):
    """A new focus: the tag that narrows sessions, or None."""

    after: str | None
    actor: Actor
    verb: ChangeVerb = ChangeVerb.FOCUS_SET


class Attempt(Struct, frozen=True):
    """A command or a request of a caller that may not decide. `what` describes it, safe to show.

    The guard refused the command. If the verb is `AGENT_COMMAND`, it decides nothing, and the
    daemon carried it out. If it is `REQUESTED`, a client asked for a folder.
    """

    what: str
    actor: Actor
    verb: ChangeVerb = ChangeVerb.REFUSED


class ParentChange(Struct, frozen=True):
    """A parent that was added to the configuration or removed from it, as `verb` says.

    `actor` is the caller whose command changed the configuration, or None if the file was edited
    in another way.
    """

    path: bytes
    verb: ChangeVerb
    actor: Actor | None


class PolicyChange(Struct, frozen=True):
    """The machine's policy changed. `summary` says what it is now and is safe to show."""

    summary: str
    actor: Actor | None = None
    verb: ChangeVerb = ChangeVerb.POLICY_CHANGED


class ConfigurationChange(Struct, frozen=True):
    """Settings that changed, beside the list of parents. `summary` names them, safe to show.

    `actor` is the caller whose command changed them, or None if the file was edited.
    """

    summary: str
    actor: Actor | None
    verb: ChangeVerb = ChangeVerb.CONFIGURATION_CHANGED


class PlainCommand(Struct, frozen=True):
    """A person's command that changed something, but no decision. `what` is not safe to show."""

    what: str
    actor: Actor
    verb: ChangeVerb = ChangeVerb.COMMAND


Change = ProjectChange | RuleChange
"""A change of the catalog."""
AuditRecord = (
    GuardChange
    | ProgramsChange
    | FocusChange
    | ParentChange
    | PolicyChange
    | ConfigurationChange
    | PlainCommand
    | Attempt
)
"""An event in the history that does not change the catalog."""
