"""The engines of the wall: how the kernel is made to enforce a view.

Each engine has a part in the warden, an `EnforcedView`, and a way in for the program's process.
Everything else is shared: the view and its changes, orders, the feed, and the supervision of
programs. A further system, such as macOS, is a further engine.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Protocol

from rootsd.core.mount_plan import ConfinedRoot
from rootsd.core.wall import WallEngine
from rootsd.wall.kernel import cell, landlock
from rootsd.wall.kernel.mounted_view import MountedView
from rootsd.wall.kernel.supervision import CellOptions
from rootsd.wall.kernel.warden import FollowRoots, Warden, WardenSettings, start_warden

if TYPE_CHECKING:
    from rootsd.wall.kernel.fixed_view import FixedView


class Engine(Protocol):
    """A way to enforce walls."""

    kind: WallEngine

    def start(
        self,
        settings: WardenSettings,
        roots: Iterable[ConfinedRoot],
        follow: FollowRoots | None = None,
    ) -> Warden:
        """Fork a warden that shows `roots`. See `start_warden`. Raises WallSetupFailed."""

    def enter(self, warden: Warden, options: CellOptions) -> None:
        """Move this forked process behind the wall. Return in the program's process only.

        Raises OSError.
        """


class NamespaceEngine:
    """Mounts and namespaces. A change reaches running programs."""

    kind = WallEngine.NAMESPACES

    def start(
        self,
        settings: WardenSettings,
        roots: Iterable[ConfinedRoot],
        follow: FollowRoots | None = None,
    ) -> Warden:
        """Fork a warden with a shared tree."""
        make_view = partial(MountedView, owner=os.getpid())
        return start_warden(make_view, settings, roots, follow)

    def enter(self, warden: Warden, options: CellOptions) -> None:
        """Move this process into namespaces below the warden's."""
        cell.enter(warden, options)


class StaticEngine:
    """Landlock and seccomp, for systems without namespaces. The view is fixed at each start.

    `version` is the one of Landlock to use, by default the kernel's.
    """

    kind = WallEngine.STATIC

    def __init__(self, version: int | None = None) -> None:
        self._version = landlock.version() if version is None else version

    def start(
        self,
        settings: WardenSettings,
        roots: Iterable[ConfinedRoot],
        follow: FollowRoots | None = None,
    ) -> Warden:
        """Fork a warden with the rules for one start of a program."""
        return start_warden(self._make_view, settings, roots, follow)

    def enter(self, warden: Warden, options: CellOptions) -> None:
        """Restrict this process by the warden's rules."""
        from rootsd.wall.kernel import static_cell  # noqa: PLC0415 - few walls need it

        static_cell.enter(warden, options, self._version)

    def _make_view(self, settings: WardenSettings) -> FixedView:
        from rootsd.wall.kernel.fixed_view import FixedView  # noqa: PLC0415 - few walls need it

        return FixedView(settings, self._version)
