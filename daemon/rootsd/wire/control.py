"""What the command line asks of the daemon, and the shape of the answers.

Each request is one JSON-RPC call on the control socket: `method` and `params` of the dataclass
that `METHODS` names. Answers are the JSON objects described by the TypedDicts; `Item` is the
item of the public `rootsd/1` schema. Paths travel as `str` with undecodable bytes as lone
surrogates (PEP 383), which JSON escapes losslessly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, TypedDict

from rootsd.core.callers import Guard
from rootsd.core.errors import ErrorCode, RootsdError
from rootsd.core.model import Access, Verdict
from rootsd.wire.adding import Addition
from rootsd.wire.facts import Facts, MoreFacts, ShowQuery
from rootsd.wire.forms import (
    number,
    number_or_none,
    text,
    text_or_none,
    texts,
    truth,
    word,
)
from rootsd.wire.guarding import GuardQuery, LogQuery, RefusedStatus, SetGuard
from rootsd.wire.rules import RuleAddition, RuleRemoval, RulesQuery
from rootsd.wire.sessions import SessionsQuery, SessionView
from rootsd.wire.standing import CheckQuery, WhyQuery

PROTOCOL = 1
LONGEST_S = 3650 * 86_400  # of an approval that has an end


class BadRequest(RootsdError):
    """A control message that does not have the form of its method."""

    code = ErrorCode.USAGE


class DecisionVerb(StrEnum):
    """The three orders on projects."""

    APPROVE = "approve"
    DENY = "deny"
    FORGET = "forget"


class Selection(StrEnum):
    """Which projects are meant where no reference names them."""

    NAMED = "named"
    ALL = "all"
    WAITING = "waiting"
    LAPSED = "lapsed"
    PUBLISHED = "published"


class Effect(StrEnum):
    """Whether an order is carried out or only shown."""

    APPLY = "apply"
    DRY_RUN = "dry-run"


@dataclass(frozen=True, slots=True)
class StatusQuery:
    """The daemon, its parents, counts, connections, and what is degraded: `Status`.

    `is_look`: a person is shown it, so that what was refused before is no news afterwards.
    """

    is_look: bool = False


@dataclass(frozen=True, slots=True)
class ProjectsQuery:
    """Projects, as `Listing`. `refs` are names, ids, paths or globs; relative ones are to `cwd`.

    With refs, one that fits nothing or several raises; `select`, `verdict` and `tag` narrow.
    """

    cwd: str
    refs: tuple[str, ...] = ()
    select: Selection = Selection.ALL
    verdict: Verdict | None = None
    tag: str | None = None
    under: str | None = None


@dataclass(frozen=True, slots=True)
class ScanOrder:
    """Scan one parent, or all, now: `progress` notices, then `Scanned`."""

    parent: str | None = None


@dataclass(frozen=True, slots=True)
class Reload:
    """Read the configuration again: answers with `Status`."""


@dataclass(frozen=True, slots=True)
class Decide:
    """An order on projects: answers with `Decided`. `name` goes with exactly one project.

    `refs` name projects when `select` is NAMED; else `select` (narrowed by `under`) does. An
    approval ends after `lasts` seconds, if that is given.
    """

    verb: DecisionVerb
    cwd: str
    refs: tuple[str, ...] = ()
    select: Selection = Selection.NAMED
    under: str | None = None
    name: str | None = None
    tags: tuple[str, ...] = ()
    access: Access = Access.READ_WRITE
    lasts: int | None = None
    effect: Effect = Effect.APPLY


@dataclass(frozen=True, slots=True)
class Stop:
    """End the daemon cleanly; answered before it goes."""


Request = (
    StatusQuery
    | ProjectsQuery
    | ShowQuery
    | SessionsQuery
    | RulesQuery
    | ScanOrder
    | Reload
    | Decide
    | Addition
    | RuleAddition
    | RuleRemoval
    | CheckQuery
    | WhyQuery
    | GuardQuery
    | SetGuard
    | LogQuery
    | Stop
)

METHODS: Mapping[str, type[Request]] = {
    "status": StatusQuery,
    "projects": ProjectsQuery,
    "show": ShowQuery,
    "sessions": SessionsQuery,
    "rules": RulesQuery,
    "scan": ScanOrder,
    "reload": Reload,
    "decide": Decide,
    "add": Addition,
    "rule-add": RuleAddition,
    "rule-rm": RuleRemoval,
    "check": CheckQuery,
    "why": WhyQuery,
    "guard": GuardQuery,
    "set-guard": SetGuard,
    "log": LogQuery,
    "stop": Stop,
}
_NAMES = {form: name for name, form in METHODS.items()}


class Item(Facts, MoreFacts):
    """One project in `rootsd/1`. Times are RFC 3339 UTC; `path` is null where it is not UTF-8."""

    id: str
    name: str
    path: str | None
    path_b64: str | None
    uri: str | None
    kind: str
    verdict: str
    presence: str
    published: bool
    lapsed: str | None
    incomplete: str | None
    tags: list[str]
    access: str
    parent: str | None
    discovered_at: str
    decided_at: str | None
    expires_at: str | None
    worktree_of: str | None
    note: str | None


class Listing(TypedDict):
    """Projects in the order they are to be shown."""

    revision: int
    items: list[Item]
    warnings: list[str]


class Decided(TypedDict):
    """What an order did: `items` were changed, `unchanged` were so already."""

    revision: int
    items: list[Item]
    unchanged: list[Item]
    warnings: list[str]


class Scanned(TypedDict):
    """What a scan found: new, gone and changed projects, how many in all, and its cost."""

    revision: int
    new: list[Item]
    gone: list[Item]
    changed: list[Item]
    projects: int
    folders: int
    seconds: float
    warnings: list[str]


class Progress(TypedDict):
    """A `progress` notice during a scan."""

    folders: int
    projects: int
    parent: str


class DaemonStatus(TypedDict):
    """`confined` is a word of `host.confine.Confinement`."""

    version: str
    pid: int
    since: str
    confined: str


class ParentStatus(TypedDict):
    """`state` is a word of `app.discovery_status.ParentState`; `note` says why."""

    path: str
    depth: int
    nested: str
    state: str
    note: str | None
    projects: int


class SessionStatus(TypedDict):
    client: str | None
    pid: int
    since: str


class Status(TypedDict):
    """The whole of `status --json` below its envelope.

    `counts` has `published`, `approved`, `waiting` (what `rootsd pending` lists), `denied`,
    `lapsed`, `incomplete` and `projects`.
    """

    revision: int
    daemon: DaemonStatus
    parents: list[ParentStatus]
    counts: dict[str, int]
    sessions: list[SessionStatus]
    guard: str
    refused: RefusedStatus | None
    degraded: list[str]
    warnings: list[str]


def encode(request: Request) -> tuple[str, dict[str, Any]]:
    """The method and the params of a request; enums as words, absent values left out."""
    params: dict[str, Any] = {}
    for field in fields(request):
        value = getattr(request, field.name)
        if value != field.default:
            params[field.name] = list(value) if isinstance(value, tuple) else value
    return _NAMES[type(request)], params


def decode(method: str, params: Mapping[str, Any]) -> Request:
    """The request behind a method and its params. Unknown keys are ignored: a newer caller's.

    Raises BadRequest where the method is unknown or a value has the wrong form.
    """
    form = METHODS.get(method)
    if form is None:
        raise BadRequest(f"this daemon does not know the request {method!r}", "rootsd version")
    known = {field.name for field in fields(form)}
    values = {name: _decoded(name, raw) for name, raw in params.items() if name in known}
    build: Callable[..., Request] = form
    try:
        return build(**values)
    except TypeError as error:
        raise BadRequest(f"the request {method} lacks a value: {error}") from error


def _decoded(name: str, raw: object) -> object:
    try:
        return _FORMS[name](raw)
    except ValueError as error:
        raise BadRequest(f"the value of {name} is not of its form: {error}") from error


# A field of one name has one form in every request.
_FORMS: Mapping[str, Callable[[object], object]] = {
    "access": word(Access),
    "cwd": text,
    "effect": word(Effect),
    "guard": word(Guard),
    "is_look": truth,
    "last": number,
    "lasts": number_or_none,
    "name": text_or_none,
    "number": number,
    "parent": text_or_none,
    "path": text,
    "pattern": text,
    "refs": texts,
    "select": word(Selection),
    "tag": text_or_none,
    "tags": texts,
    "under": text_or_none,
    "verb": word(DecisionVerb),
    "view": word(SessionView),
    "what": text,
    "verdict": lambda raw: None if raw is None else Verdict(text(raw)),
}
