"""Verify roots with a timeout, so that a hung file system cannot block the event loop.

Roots on local disks are verified at once, on the loop: milliseconds for thousands. Those on file
systems that depend on another machine or program are verified in threads. One that makes no
progress is left behind, and its roots are out of reach.
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
    """What looks at folders, as RootVerifier does; `looks` grows with each look at one."""

    looks: int

    def verify(self, roots: _Roots) -> list[Observation]:
        """As Patience.verify."""

    def verify_more(self, roots: _Roots) -> list[Observation]:
        """As Patience.verify_more."""


_VerifyMethod = Callable[[BlockingVerifier, _Roots], list[Observation]]


class TimeoutVerifier:
    """The ledger's verifier. `make` gives the one that looks; `remote` tells where file systems
    are mounted that may not answer.

    `on_doubt` is told the paths that could not be seen as they were known: whoever reported them
    has to look again. `patience_s` is for one look at one folder.
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
        """What is to be known about `roots` before anybody is told of them; empty if all hold."""
        near, far = self._by_distance(roots)
        found = self._near.verify(near)
        for point, some in far.items():
            found += await self._from_afar(point, some, _verify)
        return self._told(found)

    async def verify_more(self, roots: _Roots) -> Sequence[Observation]:
        """The same of some alone, published or about to be approved; the others stay known."""
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
            # Taken out: nobody else uses it meanwhile, and one that is left behind is lost.
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
    """Where the file system is mounted that has to answer for a root: its own, or that of what
    its `.git` file leads to."""
    point = innermost(points, path)
    if point is None and identity.git is GitEntry.FILE:
        target = read_gitfile(path)
        point = None if target is None else innermost(points, target)
    return point


def _needs_rescan(seen: Observation) -> bool:
    """Whether discovery is to look as well, and to tell when it is over: what is not published is
    verified no more."""
    return not isinstance(seen, ProjectObserved) or seen.incomplete is IncompleteReason.NO_GIT_DIR


def _verify(looker: BlockingVerifier, roots: _Roots) -> list[Observation]:
    return looker.verify(roots)


def _verify_more(looker: BlockingVerifier, roots: _Roots) -> list[Observation]:
    return looker.verify_more(roots)


@dataclass(slots=True)
class _VerifierThread:
    """One verification in a thread of its own; `answer` is there once it has ended."""

    looker: BlockingVerifier
    answer: list[Observation] | None = None

    async def take(self, question: _VerifyMethod, roots: _Roots, patience_s: float) -> None:
        """Return when it has ended, or when it looked at one folder for `patience_s`."""
        loop, over = asyncio.get_running_loop(), anyio.Event()

        def run() -> None:
            self.answer = question(self.looker, roots)
            with suppress(RuntimeError):  # long after the loop was closed
                loop.call_soon_threadsafe(over.set)

        threading.Thread(target=run, name="verify", daemon=True).start()
        progress = -1
        while self.answer is None and progress != self.looker.looks:
            progress = self.looker.looks
            with anyio.move_on_after(patience_s):
                await over.wait()
