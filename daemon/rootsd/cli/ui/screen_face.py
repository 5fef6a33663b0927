"""Decide on the screen: the other face of `rootsd.cli.answers.decision_flow`.

A dialog opens at once, and shows the facts when they are there. As soon as a person answers it,
the rows leave the list, so the next key is about the next row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine
from typing import Any, Generic

from msgspec import Struct

from rootsd.cli.answers.decision_flow import Facts, OrderT, Send
from rootsd.cli.ui.widgets import PassedRows, RowList
from rootsd.core.errors import RootsdError

Confirm = Callable[[Facts[OrderT]], Coroutine[Any, Any, OrderT | None]]
"""Shows facts, and returns the order as a person confirms it, or None."""


class ScreenFace(Struct, Generic[OrderT]):
    """One decision on the screen.

    `ask` shows the facts in a dialog, and `order` may leave the screen for a challenge. The rows
    `leaving` are those that the decision takes from a list; None keeps also the marks.
    """

    read: Send
    order: Send
    ask: Confirm[OrderT]
    rows: RowList
    leaving: Collection[str] | None
    passed: PassedRows | None = None
    is_confirmed: bool = False

    async def confirm(self, facts: Facts[OrderT]) -> OrderT | None:
        """Return the order as the person confirms it, or None. Pass over the rows."""
        order = await self.ask(facts)
        self.is_confirmed = order is not None
        if self.is_confirmed and self.leaving is not None:
            self.passed = self.rows.pass_over(self.leaving)
        return order

    async def send(self, order: OrderT) -> dict[str, Any]:
        """Send the order. If it is refused, the rows and the marks come back."""
        try:
            return await self.order(order)
        except (RootsdError, KeyboardInterrupt):
            if self.passed is not None:
                self.rows.take_back(self.passed)
            raise
