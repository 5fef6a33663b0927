"""Read the facts that a person needs to approve a project: its plan, risks, and requests."""

from __future__ import annotations

from asyncio import Lock
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from rootsd.cli.text.projects import path_of
from rootsd.cli.ui import details
from rootsd.cli.ui.details import Paragraph
from rootsd.cli.ui.orders import Target, plan_of
from rootsd.core.errors import ErrorCode, RootsdError
from rootsd.wire.decisions import ApprovalScope
from rootsd.wire.projects import ProjectsQuery, RiskReading, ShowQuery
from rootsd.wire.request import ControlRequest

Item = Mapping[str, Any]
Ask = Callable[[ControlRequest], Awaitable[dict[str, Any]]]
"""Sends a request. Raises RootsdError."""


class ApprovalFacts(Struct, frozen=True):
    """The dry run of an approval, and what a person should look at before it.

    `asking` has the `SessionRequestItem`s if several sessions request the one folder.
    """

    plan: Item
    risks: Sequence[Paragraph]
    asking: Sequence[Item] = ()

    def has_more_than(self, targets: Sequence[Target]) -> bool:
        """Return whether the approval is about more than the projects that a person chose."""
        confirmation = self.plan.get("confirmation")
        if confirmation is None:
            return False
        chosen = {target.row.path for target in targets}
        others = any(path_of(each) not in chosen for each in confirmation["projects"])
        return others or bool(confirmation["parents"] or confirmation["unsearched"])


async def read_approval(targets: Sequence[Target], ask: Ask, turn: Lock) -> ApprovalFacts:
    """Read the facts about an approval of the targets, in their turn. Raises RootsdError."""
    async with turn:
        ids = tuple(target.row.id for target in targets)
        order = plan_of(targets)
        if len(ids) > 1:
            query = ProjectsQuery("/", refs=ids, risks=RiskReading.THOROUGH)
            plan = await ask(order)
            return ApprovalFacts(plan, [*details.risks_of_several(await ask(query))])
        asking: Sequence[Item] = ()
        try:
            plan = await ask(order)
            (item,) = (await ask(ShowQuery("/", ids)))["items"]
        except RootsdError as error:
            if error.code is not ErrorCode.AMBIGUOUS:
                raise
            (item,) = (await ask(ShowQuery("/", ids)))["items"]
            asking = item.get("requests", ())
            if not asking:
                raise
            plan = await ask(replace(order, span=ApprovalScope.ALWAYS))
        return ApprovalFacts(plan, [*details.risks_of(item)], asking)
