"""The engines of the wall: how the kernel is made to enforce a view.

Each engine has a part in the warden, an `EnforcedView`, and a way in for the program's process.
Everything else is shared: the view and its changes, orders, the feed, and the supervision of
programs. A further system, such as macOS, is a further engine.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import partial

from rootsd.core.mount_plan import ConfinedRoot
from rootsd.core.wall import WallEngine
from rootsd.wall.kernel import cell, landlock
from rootsd.wall.kernel.mounted_view import MountedView
from rootsd.wall.kernel.supervision import CellOptions
from rootsd.wall.kernel.warden import (
    EnforcedView,
    FollowRoots,
    ServeUntil,
    Warden,
    WardenSettings,
    start_warden,
)


class Engine(ABC):
    """A way to enforce walls."""

    kind: WallEngine

    def start(
        self,
        settings: WardenSettings,
        roots: Iterable[ConfinedRoot],
        follow: FollowRoots | None = None,
        serve_until: ServeUntil | None = None,
    ) -> Warden:
        """Fork a warden that shows `roots`. See `start_warden`. Raises WallSetupFailed."""
        make_view = partial(self.make_view, owner=os.getpid())
        return start_warden(make_view, settings, roots, follow, serve_until)

    @abstractmethod
    def make_view(self, settings: WardenSettings, owner: int) -> EnforcedView:
        """Return the part in the warden. `owner` is the process that has started that."""

    @abstractmethod
    def enter(self, warden: Warden, options: CellOptions) -> None:
        """Move this forked process behind the wall. Return in the program's process only.

        Raises OSError.
        """


class NamespaceEngine(Engine):
    """Mounts and namespaces. A change reaches running programs."""

    kind = WallEngine.NAMESPACES

    def make_view(self, settings: WardenSettings, owner: int) -> EnforcedView:
        """Return a view in a shared tree."""
        return MountedView(settings, owner)

    def enter(self, warden: Warden, options: CellOptions) -> None:
        """Move this process into namespaces below the warden's."""
        cell.enter(warden, options)


class StaticEngine(Engine):
    """Landlock and seccomp, for systems without namespaces. The view is fixed at each start.

    `version` is the one of Landlock to use, by default the kernel's.
    """

    kind = WallEngine.STATIC

    def __init__(self, version: int | None = None) -> None:
        self._version = landlock.version() if version is None else version

    def make_view(self, settings: WardenSettings, owner: int) -> EnforcedView:  # noqa: ARG002
        """Return a view that holds for one start of a program."""
        from rootsd.wall.kernel.fixed_view import FixedView  # noqa: PLC0415 - few walls need it

        return FixedView(settings, self._version)

    def enter(self, warden: Warden, options: CellOptions) -> None:
        """Restrict this process by the warden's rules."""
        from rootsd.wall.kernel import static_cell  # noqa: PLC0415 - few walls need it

        static_cell.enter(warden, options, self._version)
