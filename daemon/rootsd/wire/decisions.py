"""Control requests that decide: approve, deny, forget, add, import, rename, tag, rules and focus.

Orders on projects, and what they did.

A folder or a URI that a person adds by hand, in control requests.

Projects from a file that `rootsd export` wrote, in control requests.

Names and tags that a person gives to projects, in control requests.

Standing orders in control requests: who asks for them, and what they cover.

The focus in control requests: which tag sessions without a scope of their own see.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, NotRequired, TypedDict

from rootsd.core.model import Access, Verdict
from rootsd.wire.projects import ProjectItem, RuleItem, Selection, WorktreeItem
from rootsd.wire.request import ControlRequest

MAX_APPROVAL_S = 3650 * 86_400  # of an approval that has an end


class DecisionVerb(StrEnum):
    """The three orders on projects."""

    APPROVE = "approve"
    DENY = "deny"
    FORGET = "forget"


class ApplyMode(StrEnum):
    """Whether an order is carried out or only shown."""

    APPLY = "apply"
    DRY_RUN = "dry-run"


class ApprovalScope(StrEnum):
    """For whom an approval holds."""

    USUAL = "usual"
    """For the running session that asks for the folder; for all where none does."""
    SESSION = "session"
    """For the running session that asks; an error where none does."""
    ALWAYS = "always"
    """For all, until it is revoked."""


@dataclass(frozen=True, slots=True)
class DecideRequest(ControlRequest):
    """An order on projects: answers with `Decided`. `name` goes with exactly one project.

    `refs` name projects when `select` is NAMED; else `select` (narrowed by `under`) does. An
    approval ends after `lasts` seconds, if that is given. With `shown`, the `identity` of each of
    `refs` as a `ShowQuery` told it, nothing is decided where one is another directory by now.
    Without `access`, an approval is for reading where it answers a session, else for writing too.

    An approval also publishes the `worktrees` that a person confirmed: each is the `id` of a
    `WorktreeItem` with `confirmable`, and `worktrees_shown` has the `identity` of each. If one of
    them is another directory by now, nothing is decided.
    """

    method: ClassVar[str] = "decide"

    verb: DecisionVerb
    cwd: str
    refs: tuple[str, ...] = ()
    select: Selection = Selection.NAMED
    under: str | None = None
    name: str | None = None
    tags: tuple[str, ...] = ()
    access: Access | None = None
    span: ApprovalScope = ApprovalScope.USUAL
    lasts: int | None = None
    effect: ApplyMode = ApplyMode.APPLY
    shown: tuple[str, ...] = ()
    worktrees: tuple[str, ...] = ()
    worktrees_shown: tuple[str, ...] = ()


class ExecutedItem(TypedDict):
    """A project with files that agents execute; `files` are relative to it."""

    id: str
    name: str
    path: str | None
    files: list[str]


class DecideResult(TypedDict):
    """What an order did: `items` were changed, `unchanged` were so already. `rules` are those
    that had lapsed and approve again, where there are any. `renewed` has the ids of the `items`
    that were approved as they are before, and are approved again for sessions that run.

    An approval lists the `worktrees` of what it approves: those that clients see with it, and
    those that stay pending. `published` are the paths of all folders that clients see from now on
    and did not before, or would see. A dry run of an approval of many projects also tells which
    of them hold files that agents execute: `executed`.
    """

    revision: int
    items: list[ProjectItem]
    unchanged: list[ProjectItem]
    warnings: list[str]
    rules: NotRequired[list[RuleItem]]
    worktrees: NotRequired[list[WorktreeItem]]
    published: NotRequired[list[str]]
    executed: NotRequired[list[ExecutedItem]]
    renewed: NotRequired[list[str]]


@dataclass(frozen=True, slots=True)
class AddRequest(ControlRequest):
    """Propose `what`, a path (relative ones are to `cwd`) or a URI, under `name` if that is given:
    `Added`. It waits for a decision like all that is found."""

    method: ClassVar[str] = "add"

    what: str
    cwd: str
    name: str | None = None
    effect: ApplyMode = ApplyMode.APPLY


class AddResult(TypedDict):
    """The one project; `is_new` tells whether it was not known before."""

    revision: int
    items: list[ProjectItem]
    is_new: bool
    warnings: list[str]


EXPORT_FORMAT = 1
"""Of the file; another number is another form."""
MAX_IMPORT_ITEMS = 500


@dataclass(frozen=True, slots=True)
class ImportRequest(ControlRequest):
    """Propose these projects under the names and tags that they had: answers with `Decided`.

    The three go together: `whats[n]` is a path or a URI, `names[n]` its name or empty, `tags[n]`
    its tags with a newline between them. At most `MOST_AT_ONCE`. Nothing is approved; what was
    decided about already stays as it is.
    """

    method: ClassVar[str] = "import"

    whats: tuple[str, ...]
    names: tuple[str, ...]
    tags: tuple[str, ...]
    effect: ApplyMode = ApplyMode.APPLY


@dataclass(frozen=True, slots=True)
class RenameRequest(ControlRequest):
    """Call the one project that `ref` means `name`: answers with `Decided`."""

    method: ClassVar[str] = "rename"

    ref: str
    name: str
    cwd: str
    effect: ApplyMode = ApplyMode.APPLY


@dataclass(frozen=True, slots=True)
class TagRequest(ControlRequest):
    """Tag the projects with the tags `on`, take the tags `off` from them: answers with
    `Decided`."""

    method: ClassVar[str] = "tag"

    refs: tuple[str, ...]
    cwd: str
    on: tuple[str, ...] = ()
    off: tuple[str, ...] = ()
    effect: ApplyMode = ApplyMode.APPLY


@dataclass(frozen=True, slots=True)
class RulesQuery(ControlRequest):
    """The rules, in the order in which they were made: `RuleListing`."""

    method: ClassVar[str] = "rules"


@dataclass(frozen=True, slots=True)
class AddRuleRequest(ControlRequest):
    """Approve or deny whatever `pattern` matches, from now on: `Ruled`. See `rootsd.core.rules`.

    A pattern may begin with `~/`, or be relative to `cwd`.
    """

    method: ClassVar[str] = "rule-add"

    verdict: Verdict
    pattern: str
    cwd: str
    effect: ApplyMode = ApplyMode.APPLY


@dataclass(frozen=True, slots=True)
class RemoveRuleRequest(ControlRequest):
    """Take rule `number` back, and what it alone had decided: `Ruled`."""

    method: ClassVar[str] = "rule-rm"

    number: int
    effect: ApplyMode = ApplyMode.APPLY


class RuleListing(TypedDict):
    """Rules, oldest first."""

    revision: int
    items: list[RuleItem]
    warnings: list[str]


class RuleResult(TypedDict):
    """What became of a rule, and the known projects that it matches, as they are now. `is_new`
    tells an addition that was made from one that was there."""

    revision: int
    rule: RuleItem
    is_new: bool
    items: list[ProjectItem]
    warnings: list[str]


class FocusTarget(StrEnum):
    """Which sessions a change of the focus is for."""

    LATER = "later"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class FocusQuery(ControlRequest):
    """The focus: `Focusing`."""

    method: ClassVar[str] = "focus"


@dataclass(frozen=True, slots=True)
class SetFocusRequest(ControlRequest):
    """Narrow sessions to `tag`, or to nothing where it is null; an order: `Focusing`."""

    method: ClassVar[str] = "set-focus"

    tag: str | None = None
    reach: FocusTarget = FocusTarget.LATER
    effect: ApplyMode = ApplyMode.APPLY


class FocusStatus(TypedDict):
    """`tag` is null where nothing is focused; `roots` are the names that a session sees of the
    published set which begins now."""

    revision: int
    tag: str | None
    roots: list[str]
    warnings: list[str]
