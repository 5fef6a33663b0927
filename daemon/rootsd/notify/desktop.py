"""The desktop that shows notifications: over D-Bus on Linux, with `osascript` on a Mac."""

from __future__ import annotations

import sys

from rootsd.notify.notification import Desktop


def this_desktop() -> Desktop:
    """Return the desktop of this system, whether or not it is available."""
    if sys.platform == "darwin":
        from rootsd.notify.osascript import OsascriptDesktop  # noqa: PLC0415 - for Macs only

        return OsascriptDesktop()
    from rootsd.notify.session_bus import SessionBusDesktop  # noqa: PLC0415 - not for Macs

    return SessionBusDesktop()
