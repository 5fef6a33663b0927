"""Handle focus: limit MCP sessions to the published roots with one tag."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rootsd.control.routes import Route, plain_route, query_route
from rootsd.control.services import ControlServices, Handlers
from rootsd.core.changes import ChangeVerb, SettingChange
from rootsd.core.encoding import FocusRecord
from rootsd.core.errors import UnknownProject
from rootsd.core.labels import safe_label
from rootsd.core.model import Actor, Focus
from rootsd.core.scope import FULL_SCOPE, apply_focus, apply_scope
from rootsd.core.suggestions import did_you_mean, nearest
from rootsd.wire.decisions import FocusQuery, FocusStatus, FocusTarget, SetFocusRequest
from rootsd.wire.request import ApplyMode

_MAX_CHOICES = 20


class UnknownTag(UnknownProject):
    """No project has that tag."""


def routes(services: ControlServices) -> Iterable[Route[Any]]:
    """Return the routes of this module."""
    handlers = FocusHandlers(services)
    return query_route(FocusQuery, handlers.focus), plain_route(
        SetFocusRequest, handlers.set_focus, _focus_command
    )


class FocusHandlers(Handlers):
    """Handles `FocusQuery` and `SetFocusRequest`."""

    async def focus(self, _: FocusQuery) -> FocusStatus:
        """Return the focus, and the roots that sessions see with it."""
        return await self._status(self.ledger.focus.tag)

    async def set_focus(self, request: SetFocusRequest, actor: Actor) -> FocusStatus:
        """Set the focus. Raises UnknownTag, and what the store raises."""
        tag = request.tag
        if tag is not None:
            self._check_known(tag)
        is_unchanged = self.ledger.focus.tag == tag and request.reach is FocusTarget.LATER
        if request.effect is ApplyMode.APPLY and not is_unchanged:

            def change(focus: Focus) -> Focus:
                return (
                    focus.for_new_sessions(tag)
                    if request.reach is FocusTarget.LATER
                    else focus.for_all_sessions(tag)
                )

            await self.ledger.change_focus(
                SettingChange(FocusRecord(tag), actor, ChangeVerb.FOCUS_SET), change
            )
        return await self._status(tag)

    def _check_known(self, tag: str) -> None:
        projects = self.ledger.catalog.projects.values()
        known = {each for project in projects for each in project.ruling.tags}
        if tag not in known:
            message = f"no project has the tag {safe_label(tag)}"
            if similar := nearest(tag, known):
                message += did_you_mean(map(safe_label, similar))
            elif known:
                tags = sorted(map(safe_label, known))[:_MAX_CHOICES]
                message += f"; the tags are: {' '.join(tags)}"
            raise UnknownTag(message, "rootsd tag", typed=tag, choices=similar)

    async def _status(self, tag: str | None) -> FocusStatus:
        published = await self.ledger.current()
        focus = Focus(tag)
        seen = apply_scope(published, apply_focus(FULL_SCOPE, focus, focus)).roots
        warnings = []
        if tag is not None and not seen:
            warnings.append(f"no published root is tagged {safe_label(tag)}: sessions see none")
        return FocusStatus(
            revision=published.revision,
            tag=tag,
            roots=[root.name for root in seen],
            warnings=warnings,
        )


def _focus_command(request: SetFocusRequest) -> str:
    what = "--clear" if request.tag is None else request.tag
    return f"focus {what}" + (" --now" if request.reach is FocusTarget.ALL else "")
