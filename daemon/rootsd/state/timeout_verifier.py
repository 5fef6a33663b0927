"""Verify roots with a timeout, so that a hung file system cannot block the event loop.

Before each answer, every root is compared with the approved identity (`BlockingVerifier`). Roots
on local disks are verified on the event loop: that takes milliseconds for thousands. A file system
that depends on another machine or program may hang, so its roots are verified in a thread. If the
thread makes no progress, it is abandoned, and its roots count as unreachable.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import anyio

from rootsd.core.inputs import Observation, ProjectObserved, ProjectUnreachable
from rootsd.core.model import GitEntry, Identity, IncompleteReason
from rootsd.disk.identity import read_gitfile
from rootsd.disk.mounts import innermost

VERIFY_TIMEOUT_S = 1.0

_Roots = Mapping[bytes, Identity]


class BlockingVerifier(Protocol):
    """A verifier that may block, such as RootVerifier. `looks` grows with each
    folder looked at.
    """

    looks: int

    def verify(self, roots: _Roots) -> list[Observation]:
        """Do what `TimeoutVerifier.verify` does."""

    def verify_more(self, roots: _Roots) -> list[Observation]:
        """Do what `TimeoutVerifier.verify_more` does."""


_VerifyMethod = Callable[[BlockingVerifier, _Roots], list[Observation]]


class TimeoutVerifier:
    """The verifier of the ledger.

    `make` creates a blocking verifier. `remote` returns the mount points of file systems that may
    not answer. `on_doubt` gets the paths that could not be verified, so that discovery looks at
    them again. `patience_s` is the timeout for one folder.
    """

    def __init__(
        self,
        make: Callable[[], BlockingVerifier],
        remote: Callable[[], tuple[bytes, ...]],
        on_doubt: Callable[[Sequence[bytes]], None],
        patience_s: float = VERIFY_TIMEOUT_S,
    ) -> None:
        self._make = make
        self._remote = remote
        self._on_doubt = on_doubt
        self._patience_s = patience_s
        self._near = make()
        self._far: dict[bytes, BlockingVerifier] = {}
        self._left_behind: dict[bytes, _VerifierThread] = {}

    async def verify(self, roots: _Roots) -> Sequence[Observation]:
        """Return the observations that contradict `roots`; none if all roots hold."""
        near, far = self._by_distance(roots)
        found = self._near.verify(near)
        for point, some in far.items():
            found += await self._from_afar(point, some, _verify)
        return self._told(found)

    async def verify_more(self, roots: _Roots) -> Sequence[Observation]:
        """Do the same for some roots alone, published ones or ones about to be approved.

        The verifier keeps what it knows about all other roots.
        """
        near, far = self._by_distance(roots)
        found = self._near.verify_more(near)
        for point, some in far.items():
            found += await self._from_afar(point, some, _verify_more)
        return self._told(found)

    def _by_distance(self, roots: _Roots) -> tuple[_Roots, dict[bytes, dict[bytes, Identity]]]:
        near: dict[bytes, Identity] = {}
        far: dict[bytes, dict[bytes, Identity]] = {}
        points = self._remote()
        if not points:
            return roots, far
        for path, identity in roots.items():
            point = _remote_mount_of(path, identity, points)
            some = near if point is None else far.setdefault(point, {})
            some[path] = identity
        return near, far

    async def _from_afar(
        self,
        point: bytes,
        roots: _Roots,
        question: _VerifyMethod,
    ) -> list[Observation]:
        behind = self._left_behind.get(point)
        if behind is None or behind.answer is not None:
            self._left_behind.pop(point, None)
            # Remove it first: no other call uses it meanwhile, and an abandoned one is lost.
            look = _VerifierThread(self._far.pop(point) if point in self._far else self._make())
            await look.take(question, roots, self._patience_s)
            if look.answer is not None:
                self._far[point] = look.looker
                return look.answer
            self._left_behind[point] = look
        return [ProjectUnreachable(path) for path in roots]

    def _told(self, found: list[Observation]) -> list[Observation]:
        doubted = [seen.path for seen in found if _needs_rescan(seen)]
        if doubted:
            self._on_doubt(doubted)
        return found


def _remote_mount_of(path: bytes, identity: Identity, points: tuple[bytes, ...]) -> bytes | None:
    """Return the remote mount point that a root depends on, or None.

    That is the mount of the root itself, or of the target of its `.git` file.
    """
    point = innermost(points, path)
    if point is None and identity.git is GitEntry.FILE:
        target = read_gitfile(path)
        point = None if target is None else innermost(points, target)
    return point


def _needs_rescan(seen: Observation) -> bool:
    """Return whether discovery must look at the project too.

    The project leaves the published set, so nothing verifies it any more. Discovery reports when
    it is back.
    """
    return not isinstance(seen, ProjectObserved) or seen.incomplete is IncompleteReason.NO_GIT_DIR


def _verify(looker: BlockingVerifier, roots: _Roots) -> list[Observation]:
    return looker.verify(roots)


def _verify_more(looker: BlockingVerifier, roots: _Roots) -> list[Observation]:
    return looker.verify_more(roots)


@dataclass(slots=True)
class _VerifierThread:
    """One verification in its own thread. `answer` is set when it has ended."""

    looker: BlockingVerifier
    answer: list[Observation] | None = None

    async def take(self, question: _VerifyMethod, roots: _Roots, patience_s: float) -> None:
        """Return when the verification has ended, or looked at one folder for `patience_s`."""
        loop, over = asyncio.get_running_loop(), anyio.Event()

        def run() -> None:
            self.answer = question(self.looker, roots)
            with suppress(RuntimeError):  # the loop may be closed by then
                loop.call_soon_threadsafe(over.set)

        threading.Thread(target=run, name="verify", daemon=True).start()
        progress = -1
        while self.answer is None and progress != self.looker.looks:
            progress = self.looker.looks
            with anyio.move_on_after(patience_s):
                await over.wait()
