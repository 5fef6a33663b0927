"""The interface of an object that follows one session of an MCP client."""

from __future__ import annotations

from typing import Protocol

from rootsd.core.model import PublishedSet
from rootsd.core.scope import Scope


class SessionObserver(Protocol):
    """The interface of an object that follows one session. All texts are safe to show."""

    def named(self, name: str) -> None:
        """Take the client's name for itself. Called at most once."""
        ...

    def scoped(self, scope: Scope) -> None:
        """Take the scope that applies from now on.

        It comes from the client's request or from the focus. Called before each answer.
        """
        ...

    def roots_reported(self, roots: int, names: tuple[str, ...]) -> None:
        """Take the number of roots that `rootsd run` reported to its server, and the first names.

        `rootsd run` itself may have received more.
        """
        ...

    def roots_sent(self, published: PublishedSet) -> None:
        """Take the set behind an answer, before the scope is applied. Called for each answer."""
        ...
