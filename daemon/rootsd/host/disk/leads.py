"""Tells where the text of a project may be followed to.

What a `.git` file or a link between worktrees names, anybody may have written: a place on a server
that does not answer, or one that is mounted only because somebody looks there (autofs(5)). To look
at the first would hold us up for ever; the second would reach out to a machine of a stranger's
choice.
"""

from __future__ import annotations

from functools import cache

from rootsd.host.disk.answering import Answering
from rootsd.host.disk.mounts import innermost
from rootsd.host.disk.mounttable import MountTable


class Leads:
    """Judges by what is mounted now; may be used by several threads."""

    def __init__(self, mounted: MountTable, answering: Answering | None = None) -> None:
        self._mounted = mounted
        self._answering = answering or Answering(mounted.remote)

    def may_follow(self, path: bytes) -> bool:
        """Whether a look at an absolute path ends, and mounts nothing. Waits a second at most, and
        only where another machine or program has to answer."""
        automounts = self._mounted.automounts()
        if automounts and innermost(automounts, path) is not None:
            mount = self._mounted.holding(path)
            if mount is not None and mount.is_automount:
                return False
        return self._answering.answers(path)


@cache
def _of_this_process() -> Leads:
    return Leads(MountTable())


def may_follow(path: bytes) -> bool:
    """As `Leads.may_follow`, by what this process sees mounted."""
    return _of_this_process().may_follow(path)
