"""The changes that inputs make. The ledger saves, logs, and reports them."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from rootsd.core.encoding import AllowedPrograms, FocusRecord
from rootsd.core.guard_setting import Guard
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
    NOTED = "files noted"
    ACCEPTED = "changes accepted"
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


class SettingChange(Struct, frozen=True):
    """A new setting: the guard, the programs that it allows, or the focus."""

    after: Guard | AllowedPrograms | FocusRecord
    actor: Actor
    verb: ChangeVerb


class AuditNote(Struct, frozen=True):
    """An event in the history without an outcome. `verb` says what kind of event.

    `text` is the path of a parent, a summary of the policy or of what changed in the
    configuration, or a command. It is safe to show, except for a path or a person's command.
    `actor` is None for a file that was edited. With `REFUSED`, the guard refused the command. With
    `AGENT_COMMAND`, the daemon carried it out, since it decides nothing. With `REQUESTED`, a
    client asked for a folder.
    """

    verb: ChangeVerb
    text: str
    actor: Actor | None = None


Change = ProjectChange | RuleChange
"""A change of the catalog."""
AuditRecord = SettingChange | AuditNote
"""An event in the history that does not change the catalog."""
