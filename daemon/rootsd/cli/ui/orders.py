"""Build the requests for decisions from what a person saw and typed. Pure.

An approval carries the identity of each folder as it was when the person saw it: when they marked
the row, or else when the details were read. If another folder is at the path by now, the daemon
refuses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click
from msgspec import Struct
from msgspec.structs import replace

from rootsd.cli.answers.decision_flow import Facts, including
from rootsd.cli.options.times import Duration
from rootsd.cli.ui.board import ProjectRow
from rootsd.core.access import Access
from rootsd.core.errors import ErrorCode, RootsdError
from rootsd.wire.decisions import ApprovalScope, DecideRequest, DecisionVerb


class BadInput(RootsdError):
    """A field of a dialog that is not valid."""

    code = ErrorCode.USAGE


class Target(Struct, frozen=True):
    """A project that a person chose, with the identity of the folder that they saw."""

    row: ProjectRow
    identity: str


class ApprovalForm(Struct, frozen=True):
    """The fields of the approval dialog, as typed.

    If several sessions request the folder, the person has to choose one of them as `session`, or
    all sessions.
    """

    name: str = ""
    tags: str = ""
    duration: str = ""
    is_read_only: bool = False
    is_for_all_sessions: bool = False
    has_worktrees: bool = False
    has_git: bool = False
    session: str | None = None
    accepts_incomplete: bool = False


def approval_of(targets: Sequence[Target]) -> DecideRequest:
    """Return an approval of the targets."""
    return DecideRequest(
        DecisionVerb.APPROVE,
        cwd="/",
        refs=tuple(target.row.id for target in targets),
        shown=tuple(target.identity for target in targets),
    )


def approval(
    targets: Sequence[Target], facts: Facts[DecideRequest], form: ApprovalForm
) -> DecideRequest:
    """Return the approval of the targets with the worktrees and Git directories of the facts that
    the person confirmed. Raises BadInput.
    """
    is_answer = any(target.row.request for target in targets)
    is_for_session = is_answer and not form.is_for_all_sessions
    if is_for_session and facts.requests and form.session is None:
        raise BadInput("choose which session gets it: Tab and Space")
    lasts = _seconds(form.duration)
    if is_for_session and lasts is not None:
        raise BadInput("an approval for one session ends with the session, so it has no duration")
    if facts.incomplete and not form.accepts_incomplete:
        raise BadInput("it is incomplete: tick the last field to publish it anyway")
    # A session that requests a folder does not request a Git directory elsewhere.
    has_git = form.has_git and not (is_for_session and facts.requests)
    return replace(
        including(
            facts.order,
            facts.worktrees if form.has_worktrees else (),
            facts.git_directories if has_git else (),
            facts.incomplete,
        ),
        name=form.name.strip() or None,
        tags=tuple(tag.lstrip("#") for tag in form.tags.replace(",", " ").split()),
        access=_access(form, is_answer=is_answer),
        span=_span(form),
        session=None if form.is_for_all_sessions else form.session,
        lasts=lasts,
    )


def _span(form: ApprovalForm) -> ApprovalScope:
    if form.is_for_all_sessions:
        return ApprovalScope.ALWAYS
    return ApprovalScope.SESSION if form.session is not None else ApprovalScope.USUAL


def effect_of(targets: Sequence[Target], facts: Facts[DecideRequest], form: ApprovalForm) -> str:
    """Return for how long `approval` approves, and whether for writing. Raises BadInput."""
    order = approval(targets, facts, form)
    asked = sum(bool(target.row.request) for target in targets)
    lasts = "for ever" if order.lasts is None else f"for {form.duration.strip()}"
    if asked and not form.is_for_all_sessions:
        which = "the session that you chose" if facts.requests else "the session that requested it"
        session = f"until {which} ends"
        lasts = session if asked == len(targets) else f"{lasts}, or {session}"
    return f"{lasts}, {_described_access(order, facts.plan)}"


def _described_access(order: DecideRequest, plan: Mapping[str, Any]) -> str:
    if order.access is not None:
        access = {order.access}
    else:  # an approved project keeps the access that it has
        access = {Access(item["access"]) for item in (*plan["items"], *plan["unchanged"])}
    if access == {Access.READ}:
        return "read-only"
    return "writable" if Access.READ not in access else "some read-only, the others writable"


def _access(form: ApprovalForm, *, is_answer: bool) -> Access | None:
    if form.is_read_only:
        return Access.READ
    # An answer to a request is read-only, unless the order says otherwise.
    return Access.READ_WRITE if is_answer else None


def _seconds(typed: str) -> int | None:
    """Return the seconds of a duration such as `8h`; None if nothing was typed."""
    if not typed.strip():
        return None
    try:
        seconds: int = Duration().convert(typed.strip(), None, None)
    except click.BadParameter as error:
        raise BadInput(error.message) from error
    return seconds
