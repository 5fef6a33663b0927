"""The engines of the wall: how the kernel is made to enforce a view.

Each engine has a part in the warden, an `EnforcedView`, and a way in for the program's process.
Everything else is shared: the view and its changes, orders, the feed, and the supervision of
programs. A further system, such as macOS, is a further engine.

The warden and the program's process load what they need: see `kernel.warden`.
"""

from __future__ import annotations

import gc
import os
from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, NoReturn

from rootsd.core.wall import WallEngine
from rootsd.wall.kernel import landlock
from rootsd.wall.kernel.warden import WaitingWarden

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from rootsd.wall.kernel.supervision import CellOptions
    from rootsd.wall.kernel.warden import Warden
    from rootsd.wall.kernel.warden_loop import FollowRoots, MakeView


class Engine(ABC):
    """A way to enforce walls."""

    kind: WallEngine

    def fork_warden(
        self, leave: Callable[[], object] = lambda: None, follow: FollowRoots | None = None
    ) -> WaitingWarden:
        """Fork a warden for programs of this process. With `follow`, it gets no orders.

        It calls `leave` to close what only its owner may hold.
        """
        owner = os.getpid()

        def be_warden(channel: socket.socket, alive: int) -> NoReturn:
            leave()
            from rootsd.wall.kernel import warden_loop  # noqa: PLC0415

            make_view = self._load_view(owner)
            gc.freeze()  # see `rootsd.__main__`
            gc.enable()
            warden_loop.be_warden(make_view, follow, channel, alive)

        return WaitingWarden(be_warden)

    @abstractmethod
    def _load_view(self, owner: int) -> MakeView:
        """Load the part in the warden, and return what makes it for programs of `owner`."""

    def enter(self, warden: Warden, options: CellOptions) -> None:
        """Move this forked process behind the wall. Return in the program's process only.

        It may run then. Raises OSError.
        """
        self._enter(warden, options)
        warden.wait_ready()

    @abstractmethod
    def _enter(self, warden: Warden, options: CellOptions) -> None:
        """Move this forked process behind the wall. Return in the program's process only."""


class NamespaceEngine(Engine):
    """Mounts and namespaces. A change reaches running programs."""

    kind = WallEngine.NAMESPACES

    def _load_view(self, owner: int) -> MakeView:
        """Load the view in a shared tree."""
        from rootsd.wall.kernel.mounted_view import MountedView  # noqa: PLC0415
        from rootsd.wall.kernel.root_folder import mapped_owners  # noqa: PLC0415

        mapped_owners()
        return partial(MountedView, owner=owner)

    def _enter(self, warden: Warden, options: CellOptions) -> None:
        """Move this process into namespaces below the warden's."""
        from rootsd.wall.kernel import cell  # noqa: PLC0415

        cell.enter(warden, options)


class StaticEngine(Engine):
    """Landlock and seccomp, for systems without namespaces. The view is fixed at each start.

    `version` is the one of Landlock to use, by default the kernel's.
    """

    kind = WallEngine.STATIC

    def __init__(self, version: int | None = None) -> None:
        self._version = landlock.version() if version is None else version

    def _load_view(self, owner: int) -> MakeView:  # noqa: ARG002 - it searches no processes
        """Load the view that holds for one start of a program."""
        from rootsd.wall.kernel.fixed_view import FixedView  # noqa: PLC0415

        return partial(FixedView, version=self._version)

    def _enter(self, warden: Warden, options: CellOptions) -> None:
        """Restrict this process by the warden's rules."""
        from rootsd.wall.kernel import static_cell  # noqa: PLC0415

        static_cell.enter(warden, options, self._version)
