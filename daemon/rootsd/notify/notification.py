"""A notification on the desktop, and what every kind of desktop can do with it."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from rootsd.core.labels import safe_text


class DesktopUnavailable(Exception):
    """The notification cannot be shown. The message is the reason."""


class DesktopNotification(Struct, frozen=True):
    """A message to the person. It never has a button that decides anything.

    `folders` are the folders that the file manager shows if the person clicks.
    """

    summary: str
    lines: tuple[str, ...]
    folders: tuple[bytes, ...] = ()

    @property
    def safe_summary(self) -> str:
        """The summary on one line, with escapes for what could deceive a reader."""
        return safe_text(self.summary)

    @property
    def safe_body(self) -> str:
        """The lines, with escapes for what could deceive a reader. It is not markup."""
        return "\n".join(safe_text(line) for line in self.lines)


class Desktop(Protocol):
    """Shows notifications."""

    async def show(self, notification: DesktopNotification) -> None:
        """Show a notification, and return once a click on it has no effect any more.

        Raises DesktopUnavailable if it cannot be shown.
        """

    async def describe(self) -> str:
        """Return what shows the notifications. Raises DesktopUnavailable if nothing does."""
