"""Verify roots with a timeout, so that a hung file system cannot block the event loop.

Before each answer, a `BlockingVerifier` compares every root with the approved identity. Roots on
local disks are verified on the event loop, which takes milliseconds for thousands of roots. A file
system that depends on another machine or program may hang, so its roots are verified in a thread.
If the thread makes no progress, the verifier abandons it, and its roots count as unreachable.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

import anyio
from msgspec import Struct

from rootsd.core.inputs import Observation, ProjectObserved, ProjectUnreachable
from rootsd.core.model import GitEntry, Identity, has_lost_git
from rootsd.disk.git_pointer import read_git_pointer
from rootsd.disk.hung_mounts import entered_mount
from rootsd.disk.mounts import innermost

VERIFY_TIMEOUT_S = 1.0

_Roots = Mapping[bytes, Identity]


class BlockingVerifier(Protocol):
    """A verifier that may block, such as RootVerifier. `lstat_calls` shows progress."""

    lstat_calls: int

    def verify(self, roots: _Roots) -> list[Observation]:
        """Do what `TimeoutVerifier.verify` does."""

    def verify_more(self, roots: _Roots) -> list[Observation]:
        """Do what `TimeoutVerifier.verify_more` does."""


_VerifyMethod = Callable[[BlockingVerifier, _Roots], list[Observation]]


class TimeoutVerifier:
    """The verifier of the ledger.

    `make` creates a blocking verifier. `remote` returns the mount points of file systems that may
    not answer. `on_failed` gets the paths that could not be verified, so that discovery looks at
    them again. `timeout_s` is the timeout for one folder.
    """

    def __init__(
        self,
        make: Callable[[], BlockingVerifier],
        remote: Callable[[], tuple[bytes, ...]],
        on_failed: Callable[[Sequence[bytes]], None],
        timeout_s: float = VERIFY_TIMEOUT_S,
    ) -> None:
        self._make = make
        self._remote = remote
        self._on_failed = on_failed
        self._timeout_s = timeout_s
        self._local = make()
        self._remote_verifiers: dict[bytes, BlockingVerifier] = {}
        self._abandoned: dict[bytes, _VerifierThread] = {}

    async def verify(self, roots: _Roots) -> Sequence[Observation]:
        """Return the observations that contradict `roots`; none if all roots hold."""
        local, remote = self._split(roots)
        found = self._local.verify(local)
        for point, some in remote.items():
            found += await self._verify_remote(point, some, _verify)
        return self._report(found)

    async def verify_more(self, roots: _Roots) -> Sequence[Observation]:
        """Verify some roots, which are published or about to be approved.

        The verifier keeps what it knows about all other roots.
        """
        local, remote = self._split(roots)
        found = self._local.verify_more(local)
        for point, some in remote.items():
            found += await self._verify_remote(point, some, _verify_more)
        return self._report(found)

    def _split(self, roots: _Roots) -> tuple[_Roots, dict[bytes, dict[bytes, Identity]]]:
        local: dict[bytes, Identity] = {}
        remote: dict[bytes, dict[bytes, Identity]] = {}
        points = self._remote()
        if not points:
            return roots, remote
        for path, identity in roots.items():
            point = _remote_mount_of(path, identity, points)
            some = local if point is None else remote.setdefault(point, {})
            some[path] = identity
        return local, remote

    async def _verify_remote(
        self,
        point: bytes,
        roots: _Roots,
        question: _VerifyMethod,
    ) -> list[Observation]:
        abandoned = self._abandoned.get(point)
        if abandoned is None or abandoned.answer is not None:
            self._abandoned.pop(point, None)
            # Remove the verifier from the table, so that no other call uses it at the same time.
            # If the thread is abandoned, its verifier is lost.
            verifier = self._remote_verifiers.pop(point, None) or self._make()
            thread = _VerifierThread(verifier)
            await thread.run(question, roots, self._timeout_s)
            if thread.answer is not None:
                self._remote_verifiers[point] = thread.verifier
                return thread.answer
            self._abandoned[point] = thread
        return [ProjectUnreachable(path) for path in roots]

    def _report(self, found: list[Observation]) -> list[Observation]:
        failed = [seen.path for seen in found if _needs_rescan(seen)]
        if failed:
            self._on_failed(failed)
        return found


def _remote_mount_of(path: bytes, identity: Identity, points: tuple[bytes, ...]) -> bytes | None:
    """Return the remote mount point that a root depends on, or None.

    It is the mount of the root itself, or one on the way to which its `.git` leads.
    """
    point = innermost(points, path)
    if point is None and identity.git is GitEntry.FILE:
        named = read_git_pointer(path)
        with suppress(OSError):  # no folder has such a path
            point = None if named is None else entered_mount(named, points)
    return point


def _needs_rescan(seen: Observation) -> bool:
    """Return whether discovery must read the project again.

    The project leaves the published set, so the ledger no longer verifies it. Discovery reports
    when it is back.
    """
    return not isinstance(seen, ProjectObserved) or has_lost_git(seen.identity)


def _verify(verifier: BlockingVerifier, roots: _Roots) -> list[Observation]:
    return verifier.verify(roots)


def _verify_more(verifier: BlockingVerifier, roots: _Roots) -> list[Observation]:
    return verifier.verify_more(roots)


class _VerifierThread(Struct):
    """One verification in its own thread. `answer` is set when the verification has ended."""

    verifier: BlockingVerifier
    answer: list[Observation] | None = None

    async def run(self, question: _VerifyMethod, roots: _Roots, timeout_s: float) -> None:
        """Return when the verification ends, or when it reads one folder for `timeout_s`."""
        loop, over = asyncio.get_running_loop(), anyio.Event()

        def verify() -> None:
            self.answer = question(self.verifier, roots)
            with suppress(RuntimeError):  # the event loop may have ended in the meantime
                loop.call_soon_threadsafe(over.set)

        threading.Thread(target=verify, name="verify", daemon=True).start()
        progress = -1
        while self.answer is None and progress != self.verifier.lstat_calls:
            progress = self.verifier.lstat_calls
            with anyio.move_on_after(timeout_s):
                await over.wait()
