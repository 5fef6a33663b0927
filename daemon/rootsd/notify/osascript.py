"""Show notifications on a Mac with `osascript`.

AppleScript's `display notification` needs no library, but it has no button, and a click on the
notification opens Script Editor, the program that macOS shows as its sender. It is silent if the
person has not allowed notifications of Script Editor. A program gets its own notifications with
buttons only from a signed app bundle, which rootsd is not.

Source: "Displaying Notifications" in Apple's Mac Automation Scripting Guide, and osascript(1).
"""

from __future__ import annotations

import anyio

from rootsd.notify.notification import DesktopNotification, DesktopUnavailable

TIMEOUT_S = 10.0
_PROGRAM = "/usr/bin/osascript"
# Text is an argument of the script, never a part of it: in a script, text could run any program.
_SCRIPT = (
    "on run argv",
    "display notification (item 2 of argv) with title (item 1 of argv)",
    "end run",
)


class OsascriptDesktop:
    """A Mac's desktop. `program` is `osascript`."""

    def __init__(self, program: str = _PROGRAM) -> None:
        self._program = program

    async def show(self, notification: DesktopNotification) -> None:
        """Show a notification. Raises DesktopUnavailable."""
        await self._run(notification.safe_summary, notification.safe_body)

    async def describe(self) -> str:
        """Return the name of the program that shows notifications."""
        return "Script Editor (if System Settings allows it)"

    async def _run(self, *texts: str) -> None:
        lines = [word for line in _SCRIPT for word in ("-e", line)]
        try:
            with anyio.fail_after(TIMEOUT_S):
                done = await anyio.run_process([self._program, *lines, *texts], check=False)
        except OSError as error:
            raise DesktopUnavailable(str(error) or "osascript does not answer") from error
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()
            raise DesktopUnavailable(said or f"osascript ended with status {done.returncode}")
