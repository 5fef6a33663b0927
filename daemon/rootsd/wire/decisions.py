"""Control requests that decide: approve, deny, forget, add, import, rename, tag, rules, focus.

Each request class names the type of its answer. `cwd` is the caller's working directory, for
relative paths.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, NotRequired, TypedDict

from rootsd.core.access import Access
from rootsd.core.risks import RiskLimit
from rootsd.core.verdict import Verdict
from rootsd.wire.projects import (
    NamedFolder,
    ProjectItem,
    RuleItem,
    Selection,
    SharedGitItem,
    WorktreeItem,
)
from rootsd.wire.request import Answer, ApplyMode, ControlRequest

MAX_APPROVAL_S = 3650 * 86_400  # the longest time for an approval with an end


class DecisionVerb(StrEnum):
    """The orders about projects."""

    APPROVE = "approve"
    DENY = "deny"
    FORGET = "forget"
    ACCEPT = "accept"
    """Accept the files that changed since the approval. The approval itself stays."""


class ApprovalScope(StrEnum):
    """The sessions that an approval is for."""

    USUAL = "usual"
    """The running session that requests the folder, or all sessions if there is none."""
    SESSION = "session"
    """The running session that requests the folder. It is an error if there is none."""
    ALWAYS = "always"
    """All sessions, until the approval is revoked."""


class AffectedItem(NamedFolder):
    """A project that an order decides about."""

    token: str
    """The word for this project in `confirmed`."""
    before: str | None
    """The verdict before the order, or null for a folder that was unknown."""
    after: str
    """The verdict after the order."""
    within: str | None
    """The root around the project that is new or opens more, if the project itself is no root."""
    risk: str | None
    """The risks in words, as in a listing, if clients will see the project. Null if they were not
    read.
    """


# `AffectedProjects` with names and risks, which only the gate of the daemon knows.
class ConfirmationItem(TypedDict):
    """What a person has to see and confirm before an order about more than one project."""

    projects: list[AffectedItem]
    """The projects, by path."""
    parents: list[str]
    """The parents that the order covers, with every project that appears there later."""
    unsearched: list[str]
    """The roots with more folders than rootsd could look through, so they may hold more."""


class IncompleteItem(TypedDict):
    """An incomplete project that an approval names."""

    id: str
    """The id of the project."""
    name: str
    """The name of the project."""
    reason: str
    """Why it is incomplete: the `incomplete` of a `ProjectItem`."""
    lacks: str
    """What is missing in it, as a clause."""


class DecideResult(Answer):
    """The effect of an order. A dry run has the effect that it would have."""

    items: list[ProjectItem]
    """The projects that changed, as they are now."""
    unchanged: list[ProjectItem]
    """The projects that were so already."""
    rules: NotRequired[list[RuleItem]]
    """The lapsed rules that approve again."""
    worktrees: NotRequired[list[WorktreeItem]]
    """The worktrees of approved projects, published or pending."""
    shared_git: NotRequired[list[SharedGitItem]]
    """The Git directories of undecided checkouts that approved projects use, whether the approval
    includes them or could.
    """
    incomplete: NotRequired[list[IncompleteItem]]
    """The incomplete projects of an approval. A person has to know about each."""
    published: NotRequired[list[str]]
    """The paths of all folders that become visible to clients, or would without a dry run."""
    confirmation: NotRequired[ConfirmationItem]
    """In a dry run of an order about more than one project, what a person has to confirm."""
    renewed: NotRequired[list[str]]
    """The ids of those `items` that were already approved in the same way. The new approval adds
    them to running sessions.
    """


class DecideRequest(ControlRequest, frozen=True):
    """Decide about projects: `DecideResult`.

    If `select` is NAMED, `refs` name the projects. Otherwise `select` chooses them, only below
    `under` if that is given. A `name` requires exactly one project. An approval ends after `lasts`
    seconds if that is given. Without `access`, an approval that answers a session's request is for
    reading, and any other approval is also for writing.

    If several sessions request a folder, `session` names the one that gets it: the `session` of a
    `SessionRequestItem`. Otherwise the approval is refused, unless it is for all sessions.

    `shown` has the `identity` of each of `refs`, from the answer to a `ShowQuery`. If one of these
    is another directory now, nothing is decided.

    An approval also publishes the `worktrees` that a person confirmed. Each of these is the `id`
    of a `WorktreeItem` with `confirmable`, and `worktrees_shown` has its `identity`. If one of
    them is another directory now, nothing is decided.

    An order about more than one project needs the `token` of each of them in `confirmed`. They are
    in the `ConfirmationItem` of a dry run.

    An incomplete project is approved only by its name, if no program works on it, and if a person
    knows what it lacks: its id is in `incomplete`, and `incomplete_shown` has the `reason` of its
    `IncompleteItem`.

    To accept changed files, `changes_shown` has the `changes` of each of `refs`.

    Likewise, each of `shared_git` is the `root` of a `SharedGitItem` with `confirmable`, and
    `shared_git_shown` has its `identity`. Programs behind the wall may then use that Git
    directory.
    """

    method: ClassVar[str] = "decide"
    result: ClassVar[type] = DecideResult
    is_long: ClassVar[bool] = True

    verb: DecisionVerb
    cwd: str
    refs: tuple[str, ...] = ()
    select: Selection = Selection.NAMED
    under: str | None = None
    name: str | None = None
    tags: tuple[str, ...] = ()
    access: Access | None = None
    span: ApprovalScope = ApprovalScope.USUAL
    session: str | None = None
    lasts: int | None = None
    effect: ApplyMode = ApplyMode.APPLY
    shown: tuple[str, ...] = ()
    worktrees: tuple[str, ...] = ()
    worktrees_shown: tuple[str, ...] = ()
    shared_git: tuple[str, ...] = ()
    shared_git_shown: tuple[str, ...] = ()
    confirmed: tuple[str, ...] = ()
    incomplete: tuple[str, ...] = ()
    incomplete_shown: tuple[str, ...] = ()
    changes_shown: tuple[str, ...] = ()


class AddResult(Answer):
    """The added project."""

    items: list[ProjectItem]
    """The one project."""
    is_new: bool
    """Whether it was unknown before."""


class AddRequest(ControlRequest, frozen=True):
    """Propose `what`, a path or a URI, with the name `name` if that is given: `AddResult`.

    Then the project is pending, as if discovery had found it.
    """

    method: ClassVar[str] = "add"
    result: ClassVar[type] = AddResult

    what: str
    cwd: str
    name: str | None = None
    effect: ApplyMode = ApplyMode.APPLY


MAX_ADDED_FOLDERS = 500


class AddFoldersRequest(ControlRequest, frozen=True):
    """Propose the folders of a workspace file, and give each the tag `tag`: `DecideResult`.

    `paths` has at most `MAX_ADDED_FOLDERS` absolute paths. A tag that cannot be one is an error.
    This approves nothing, and it does not change projects with a decision or a tag.
    """

    method: ClassVar[str] = "add_folders"
    result: ClassVar[type] = DecideResult
    is_long: ClassVar[bool] = True

    paths: tuple[str, ...]
    tag: str
    effect: ApplyMode = ApplyMode.APPLY


class RenameRequest(ControlRequest, frozen=True):
    """Give the project `ref` the name `name`: `DecideResult`."""

    method: ClassVar[str] = "rename"
    result: ClassVar[type] = DecideResult

    ref: str
    name: str
    cwd: str
    effect: ApplyMode = ApplyMode.APPLY


class TagRequest(ControlRequest, frozen=True):
    """Add the tags `on` to the projects and remove the tags `off`: `DecideResult`.

    `confirmed` is that of a `DecideRequest`.
    """

    method: ClassVar[str] = "tag"
    result: ClassVar[type] = DecideResult

    refs: tuple[str, ...]
    cwd: str
    on: tuple[str, ...] = ()
    off: tuple[str, ...] = ()
    effect: ApplyMode = ApplyMode.APPLY
    confirmed: tuple[str, ...] = ()


class RuleListing(Answer):
    """The user's rules, oldest first, and those of the machine's policy."""

    items: list[RuleItem]
    """The user's rules."""
    policy: list[RuleItem]
    """The rules of the machine's policy."""


class RulesQuery(ControlRequest, frozen=True):
    """Ask for the rules, oldest first: `RuleListing`."""

    method: ClassVar[str] = "rules"
    result: ClassVar[type] = RuleListing


class RuleResult(Answer):
    """A rule, and the known projects that it matches."""

    rule: RuleItem
    """The rule."""
    is_new: bool
    """Whether the rule did not exist before."""
    items: list[ProjectItem]
    """The projects that it matches, as they are after the order."""
    confirmation: NotRequired[ConfirmationItem]
    """In a dry run of an order about more than one project, what a person has to confirm."""


class AddRuleRequest(ControlRequest, frozen=True):
    """Add a rule that approves or denies all paths that match `pattern`: `RuleResult`.

    `rootsd.core.rules` describes patterns. A pattern may begin with `~/`, or be relative to `cwd`.
    With `below` instead, the rule is for everything below that folder.

    An approve rule may be only for projects whose own settings claim an `origin`, such as
    `github.com/acme/*`, or for those without a `risk`.
    """

    method: ClassVar[str] = "rule-add"
    result: ClassVar[type] = RuleResult
    is_long: ClassVar[bool] = True

    verdict: Verdict
    pattern: str
    cwd: str
    effect: ApplyMode = ApplyMode.APPLY
    confirmed: tuple[str, ...] = ()
    below: str = ""
    origin: str | None = None
    risk: RiskLimit | None = None


class RemoveRuleRequest(ControlRequest, frozen=True):
    """Remove rule `number`. Verdicts that it alone gave end: `RuleResult`.

    `confirmed` is that of a `DecideRequest`.
    """

    method: ClassVar[str] = "rule-rm"
    result: ClassVar[type] = RuleResult
    is_long: ClassVar[bool] = True

    number: int
    effect: ApplyMode = ApplyMode.APPLY
    confirmed: tuple[str, ...] = ()


class FocusTarget(StrEnum):
    """Which sessions a change of the focus applies to."""

    LATER = "later"
    ALL = "all"


class FocusStatus(Answer):
    """The focus, and the roots in it."""

    tag: str | None
    """The tag, or null without a focus."""
    roots: list[str]
    """The names of the roots that a new session sees."""


class FocusQuery(ControlRequest, frozen=True):
    """Ask for the focus: `FocusStatus`."""

    method: ClassVar[str] = "focus"
    result: ClassVar[type] = FocusStatus


class SetFocusRequest(ControlRequest, frozen=True):
    """Narrow sessions to `tag`, or end the focus if it is null: `FocusStatus`. An order."""

    method: ClassVar[str] = "set-focus"
    result: ClassVar[type] = FocusStatus

    tag: str | None = None
    reach: FocusTarget = FocusTarget.LATER
    effect: ApplyMode = ApplyMode.APPLY
