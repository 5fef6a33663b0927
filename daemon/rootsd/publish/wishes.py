"""`request_root`: a client asks for a folder, and waits for what the user decides.

The answer tells of roots, and of what the user says to this very request while the call waits.
Whether the folder is there, pending, denied before, or a place that can never be a root makes no
difference to it, nor to the time it takes.
"""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import suppress
from math import ceil
from typing import Protocol

import anyio
from mcp.shared.exceptions import MCPError

from rootsd.core.errors import Busy
from rootsd.core.labels import safe_label
from rootsd.core.model import Published, Root
from rootsd.core.paths import bytes_of
from rootsd.core.scope import holding
from rootsd.publish.arguments import Arguments, BadArguments
from rootsd.publish.offers import LONGEST_REASON, LONGEST_WAIT_S
from rootsd.publish.shapes import JsonObject, item_of
from rootsd.publish.source import Asked
from rootsd.publish.view import View

_APPROVED = "The folder is approved: work in it."
_DENIED = "The user said no. Do not work in the folder, and do not ask for it again."
_NOT_YET = (
    "The folder is not approved in this session. If it can be approved at all, the user has your"
    " request. Do not work in the folder meanwhile; list_roots shows it once it is approved."
)


class Report(Protocol):
    """How progress is told, where the client asked for it."""

    def __call__(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> Awaitable[None]: ...


async def request_root(
    arguments: Arguments, view: View, report: Report
) -> tuple[JsonObject, Published]:
    """Return the result of the tool, and the set that it is made from.

    Raises BadArguments, also if the client asked for too many folders of late.
    """
    typed, why = arguments.path(), arguments.text("reason")
    if typed is None or why is None:
        raise arguments.wrong(f"{'reason' if typed else 'path'} is left out")
    reason = safe_label(why, limit=LONGEST_REASON)
    patience = view.patience
    wait = _wait(arguments, patience.usual_s)
    folder = arguments.absolute(typed)
    _count(view)
    denied = False
    path = await view.source.canonical(folder)
    published = await view.current()
    if (root := holding(published, path)) is None:
        try:
            asked = view.source.request(path, view.client, reason, view.member.key)
        except Busy as error:
            raise BadArguments(error.message) from error
        if view.waiting < patience.calls:
            view.waiting += 1
            try:
                published, root = await _decision(path, view, asked, wait, report)
            finally:
                view.waiting -= 1
        denied = root is None and asked.is_denied
    found = {
        "approved": root is not None,
        "denied": denied,
        "root": item_of(root, view.workspace(published)) if root else None,
        "revision": published.revision,
        "advice": _APPROVED if root else _DENIED if denied else _NOT_YET,
    }
    return found, published


def _wait(arguments: Arguments, usual: float) -> float:
    """Return the seconds to wait; a number out of bounds means the nearest that is allowed."""
    wait = arguments.number("wait_seconds")
    return usual if wait is None else min(max(wait, 0.0), LONGEST_WAIT_S)


async def propose(path: str, reason: str, view: View) -> None:
    """Make a folder known to the user that a client has open; no answer says what becomes of it.
    Where too much was asked for of late, it is dropped."""
    if not path.startswith("/") or "\0" in path or view.requests.wait(anyio.current_time()):
        return
    folder = await view.source.canonical(bytes_of(path))
    with suppress(Busy, MCPError):
        if holding(await view.current(), folder) is None:
            reason = safe_label(reason, limit=LONGEST_REASON)
            view.source.request(folder, view.client, reason, None)


def _count(view: View) -> None:
    """Every call counts, whatever it asks for: else the count would tell what lies there."""
    if wait := view.requests.wait(anyio.current_time()):
        raise BadArguments(f"too many folders were asked for; ask again in {ceil(wait)} seconds")


async def _decision(
    path: bytes, view: View, asked: Asked, wait: float, report: Report
) -> tuple[Published, Root | None]:
    """Wait until a root holds `path`, the user has said no, or the time is over; the set as it is
    then."""
    begin = anyio.current_time()
    published = await view.current()
    while (passed := anyio.current_time() - begin) < wait and not asked.is_denied:
        with anyio.move_on_after(min(view.patience.progress_s, wait - passed)) as pause:
            await _news(view, asked, published.revision)
            published = await view.current()
            if root := holding(published, path):
                return published, root
        if pause.cancelled_caught:
            passed = min(wait, anyio.current_time() - begin)
            await report(passed, wait, "waiting for the user to decide")
    published = await view.current()
    return published, holding(published, path)


async def _news(view: View, asked: Asked, revision: int) -> None:
    """Wait until the set is newer than `revision`, or the user has said no."""
    async with anyio.create_task_group() as group:
        group.start_soon(_end_at_a_denial, asked, group.cancel_scope)
        await view.source.wait_past(
            revision
        )  # not verified here: that raises, which a group wraps
        group.cancel_scope.cancel()


async def _end_at_a_denial(asked: Asked, waiting: anyio.CancelScope) -> None:
    await asked.denial()
    waiting.cancel()
