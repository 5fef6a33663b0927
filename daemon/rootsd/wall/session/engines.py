"""The engines of the wall for people: which one, what it needs, and what stays open with it.

`engine_for` returns the one that the flags select. There is no other choice: where the engine with
namespaces cannot work, its errors name `--static` and what that lacks.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rootsd.core.access import Access
from rootsd.core.labels import safe_label, safe_text
from rootsd.core.mount_plan import (
    GIT_OUTSIDE_OF_CHECKOUT,
    ConfinedRoot,
    ViewEntry,
    ViewEntryKind,
)
from rootsd.core.paths import contains
from rootsd.core.wall import PushPolicy, RevokePolicy
from rootsd.wall.git.shared_folder import shared_git_folder
from rootsd.wall.kernel import landlock
from rootsd.wall.kernel.engine import Engine, NamespaceEngine, StaticEngine
from rootsd.wall.kernel.landlock import SCOPES_SINCE, AttachedGuarantee, attached_guarantee
from rootsd.wall.kernel.probe import LANDLOCK_FOR_STATIC, apparmor_restricts
from rootsd.wall.kernel.warden import WallSetupFailed
from rootsd.wall.session.begin import CannotConfine
from rootsd.wall.session.options import ConfineOptions, Opening
from rootsd.wall.session.session_view import NETWORK_IS_ON, ComposedView, compose, opened_devices
from rootsd.wall.session.view_feed import WallSubscription
from rootsd.wall.session.worktree_front import GitFront
from rootsd.wall.view.denied_base import DeniedBase
from rootsd.wall.view.fixed_roots import HOLDS_HIDDEN

_STATIC_LACKS = (
    "with --static it works without them, but changes do not reach a running program, names stay"
    " visible, and git hooks and settings in a root are writable"
)
_CLOSED = "git push, ssh and gpg agents, docker, rootsd (--static refuses all sockets outside)"
_NOT_SHOWN = "not shown"
_NO_STATIC = f"--static needs Landlock {LANDLOCK_FOR_STATIC} (Linux 6.2), which is missing, too"


class ViewRow(NamedTuple):
    """A line of `confine --show`: a path, what it is inside, and the reason.

    It is no `ViewEntry`, because an engine may refuse or change what the view has.
    """

    path: bytes
    kind: str
    reason: str


class NamespaceWall:
    """The engine with namespaces, with what people must know about it."""

    engine: Engine = NamespaceEngine()

    def __init__(self, guarantee: AttachedGuarantee | None = None) -> None:
        self._guarantee = attached_guarantee() if guarantee is None else guarantee

    def compose(
        self,
        options: ConfineOptions,
        subscription: WallSubscription,
        extra: Iterable[ViewEntry] = (),
    ) -> ComposedView:
        """Return the view, with what stays open by the version of Landlock."""
        return compose(options, subscription, self._guarantee, extra)

    def check(self, options: ConfineOptions, view: ComposedView) -> None:
        """Raise CannotConfine if a revoke would leave open folders, and nobody asked for that."""
        is_weak = self._guarantee < AttachedGuarantee.FOLDERS or Opening.NESTED in options.flags
        if is_weak and view.on_revoke is not RevokePolicy.KILL:
            reason = (
                "--nested leaves Landlock off"
                if Opening.NESTED in options.flags
                else "this kernel has no Landlock 2 (Linux 5.19)"
            )
            raise CannotConfine(
                f"{reason}, so a revoke cannot reach open folders", "--on-revoke kill"
            )

    def rows(
        self, view: ComposedView, roots: Sequence[ConfinedRoot], denied: frozenset[bytes]
    ) -> Iterator[ViewRow]:
        """Yield each path of the base, each root, and each mask."""
        for entry in DeniedBase(view.entries).entries_without(denied):
            yield ViewRow(entry.path, entry.kind.value, entry.reason)
        for root in roots:
            yield from _root_rows(root)
            for path in sorted(root.denied):
                yield ViewRow(path, ViewEntryKind.HIDDEN.value, "denied, inside an approved root")

    def placed(self, variables: Mapping[str, str], view: ComposedView) -> dict[str, str]:  # noqa: ARG002
        """Return the variables: all folders have their usual places."""
        return dict(variables)

    def explain(self, error: WallSetupFailed) -> CannotConfine:
        """Return the error; it names `--static` where that would work."""
        static = _STATIC_LACKS if landlock.version() >= LANDLOCK_FOR_STATIC else _NO_STATIC
        match error.errno:
            case errno.EDQUOT:
                return CannotConfine(
                    "the disk has no room for the folders of the wall",
                    "rootsd confine --clean, or remove other files",
                )
            case errno.ENOSPC:
                return CannotConfine(
                    "the system allows no more user namespaces (user.max_user_namespaces); "
                    + static,
                    "sudo sysctl user.max_user_namespaces=15000",
                )
            case errno.EPERM | errno.EACCES:
                who = "AppArmor" if apparmor_restricts() else "the system"
                return CannotConfine(
                    f"{who} forbids user namespaces to this program ({error.step}); {static}",
                    "rootsd doctor",
                )
            case errno.ENOSYS | errno.EINVAL:
                return CannotConfine(
                    f"this kernel is too old for the wall: Linux 5.12 or newer ({error.step})",
                    "uname -r",
                )
            case _:
                return CannotConfine(f"the wall cannot be built: {error.step}", "rootsd doctor")


class StaticWall:
    """The same for the engine without namespaces. `version` is the one of Landlock to use."""

    def __init__(self, version: int | None = None) -> None:
        self._version = landlock.version() if version is None else version
        self.engine: Engine = StaticEngine(self._version)

    def compose(
        self,
        options: ConfineOptions,
        subscription: WallSubscription,
        extra: Iterable[ViewEntry] = (),
    ) -> ComposedView:
        """Return the view, with what this engine does not close."""
        view = compose(options, subscription, AttachedGuarantee.NOTHING, extra)
        # No option opens the parts of daily work here, so nothing inside may name one.
        entries = (each for each in view.entries if each.kind is not ViewEntryKind.PRIVATE_FILE)
        return view._replace(
            entries=tuple(entries),
            variables={},
            stays_open=tuple(self.open_parts(view)),
            closed=(_CLOSED,),
            push=PushPolicy.OFF,  # the relay has a socket, and so have new worktrees
            git_front=GitFront.NONE,
        )

    def check(self, options: ConfineOptions, view: ComposedView) -> None:  # noqa: ARG002
        """Raise CannotConfine if files that are to be read only could be truncated."""
        if self._version < LANDLOCK_FOR_STATIC:
            raise CannotConfine(
                f"--static needs Landlock {LANDLOCK_FOR_STATIC} (Linux 6.2), and this kernel has"
                f" {self._version or 'none'}",
                "uname -r",
            )

    def rows(
        self, view: ComposedView, roots: Sequence[ConfinedRoot], denied: frozenset[bytes]
    ) -> Iterator[ViewRow]:
        """Yield each path that the program may use, and each root that it does not get."""
        kinds = {
            ViewEntryKind.CACHE: "read-only",
            ViewEntryKind.TOOLS: "read-only",
            ViewEntryKind.PRIVATE: "refused",
            ViewEntryKind.HIDDEN: "refused",
            ViewEntryKind.FOLDER: "read-only",
        }
        for entry in DeniedBase(view.entries).entries_without(denied):
            is_private = entry.kind is ViewEntryKind.PRIVATE
            reason = "HOME and TMPDIR name folders of the program's own" if is_private else ""
            if entry.kind is not ViewEntryKind.FOLDER or entry.path == b"/proc":
                kind = kinds.get(entry.kind, entry.kind.value)
                yield ViewRow(entry.path, kind, reason or entry.reason)
        for root in roots:
            if root.denied:
                yield ViewRow(root.path, "refused", HOLDS_HIDDEN)
            else:
                yield from _root_rows(root)

    def placed(self, variables: Mapping[str, str], view: ComposedView) -> dict[str, str]:
        """Return the variables with the places of kept folders, which no mount can move."""
        state = (e for e in view.entries if e.kind is ViewEntryKind.STATE and e.target)
        places = {os.fsdecode(each.path): os.fsdecode(each.target) for each in state}
        return {name: places.get(text, text) for name, text in variables.items()}

    def explain(self, error: WallSetupFailed) -> CannotConfine:
        """Return the error, which mostly names a path or option."""
        return CannotConfine(f"the wall cannot be built: {error.step}", "rootsd confine --show")

    def open_parts(self, view: ComposedView) -> Iterator[str]:
        """Yield a sentence for each part of the wall that stays open."""
        yield (
            "--static: a new approval is seen after a restart, and the end of an approval ends the"
            " program"
        )
        yield (
            "--static: names, sizes, and times of all your files can be read, and modes and times"
            " changed"
        )
        yield (
            "--static: tools cannot install where your toolchains are, and caches start empty for"
            " each program that runs at the same time"
        )
        yield "--static: all processes of this system are visible, with their arguments"
        yield "--static: files that git, editors, and agents run outside are writable in a root"
        if self._version < SCOPES_SINCE:
            yield (
                "this kernel: the program can stop your other processes, rootsd's among them, and"
                " so keep a folder after a revoke"
            )
        if view.has_network:
            yield NETWORK_IS_ON
        yield from opened_devices(view.entries)


WallKind = NamespaceWall | StaticWall


def engine_for(options: ConfineOptions) -> WallKind:
    """Return the engine that the flags select."""
    return StaticWall() if Opening.STATIC in options.flags else NamespaceWall()


def unshown_git(roots: Iterable[ConfinedRoot], folder: bytes) -> Iterator[str]:
    """Yield a sentence if the git directory of the root around `folder` is not shown."""
    for root in roots:
        if contains(root.path, folder):
            yield from (
                f"not shown: {row.reason}" for row in _root_rows(root) if row.kind == _NOT_SHOWN
            )


def _root_rows(root: ConfinedRoot) -> Iterator[ViewRow]:
    """Yield a root, and the git directory outside of it that it uses."""
    kind = ViewEntryKind.READ if root.access is Access.READ else ViewEntryKind.WRITE
    yield ViewRow(root.path, kind.value, "an approved root")
    if root.git_access and (git := shared_git_folder(root.path)) is not None:
        shown, why = kind.value, safe_text(root.git_access)
        if root.shared_git is None:
            shown = _NOT_SHOWN
        elif not contains(root.shared_git, git):
            shown, why = _NOT_SHOWN, GIT_OUTSIDE_OF_CHECKOUT
        yield ViewRow(git, shown, f"the git directory of {safe_label(root.name)}: {why}")
