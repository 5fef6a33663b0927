"""Projects that are known though no parent's tree holds them: looked at one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from rootsd.core.inputs import Observation, Sighted, Unreachable, Vanished
from rootsd.core.model import Identity, LapseReason
from rootsd.core.paths import ancestors
from rootsd.host.disk.identity import Absence, absence, identify
from rootsd.host.disk.markers import BUILT_IN, ProjectFiles, repository_kind
from rootsd.host.disk.probe import vanished
from rootsd.host.disk.reader import names_in


class Strays:
    """`look` probes a folder, `files_at` tells what is a project file there, `known` what a folder
    was when it was told of. Nothing is reported here: the observations are handed back."""

    def __init__(
        self,
        look: Callable[[bytes], Observation],
        files_at: Callable[[bytes], ProjectFiles] = lambda _: BUILT_IN,
        known: Callable[[bytes], Identity | None] = lambda _: None,
    ) -> None:
        self._look = look
        self._files_at = files_at
        self._known = known
        self._all: set[bytes] = set()
        # A folder without a marker is a project only as long as somebody calls it one.
        self._named: set[bytes] = set()
        # Projects and hidden folders that were lost: what is known below may be gone with them.
        self._uncovered: set[bytes] = set()

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._all)

    def know(self, paths: Iterable[bytes]) -> None:
        """These are known from an earlier life; a tree may hold them yet."""
        self._all.update(paths)

    def name(self, paths: Iterable[bytes]) -> None:
        """Somebody called these folders projects, marker or not."""
        named = set(paths)
        self._all |= named
        self._named |= named

    def as_named(self, seen: Observation) -> Observation:
        """What was seen, with whether it is a project because somebody called it one."""
        if isinstance(seen, Sighted) and seen.path in self._named:
            return replace(seen, named=True)
        return seen

    def held(self, path: bytes) -> None:
        """A tree had it in an earlier life, by its marker, and will say what it is now."""
        self.found(path)

    def found(self, path: bytes) -> None:
        """A tree holds it, by its marker."""
        self._all.discard(path)
        self._named.discard(path)

    def lost(self, path: bytes) -> None:
        """No tree holds it any more."""
        self._all.add(path)

    def uncover(self, path: bytes) -> None:
        """What lies below it is not what it was: a project, or a folder nobody could look into."""
        self._uncovered.add(path)

    def forget(self, path: bytes) -> None:
        """It is gone."""
        self._all.discard(path)
        self._named.discard(path)

    def look_at_all(self) -> list[Observation]:
        """What each of them is now."""
        return self.look_at(self._all)

    def look_below_the_lost(self) -> list[Observation]:
        """What became of those that lay below what was lost since the last call."""
        uncovered, self._uncovered = self._uncovered, set()
        if not uncovered:
            return []
        return self.look_at(p for p in self._all if not uncovered.isdisjoint(ancestors(p)))

    def look_at(self, paths: Iterable[bytes]) -> list[Observation]:
        """What each of these is now."""
        return [self._seen(path) for path in sorted(paths)]

    def _seen(self, path: bytes) -> Observation:
        seen = self._look(path)
        if not isinstance(seen, Sighted) or path in self._named:
            return seen
        if not _is_marked(path, self._files_at(path)):
            return _no_more(path, self._known(path), seen.identity)
        return seen


def what_became_of(
    path: bytes,
    within: bytes | None,
    known: Identity | None,
    files: ProjectFiles = BUILT_IN,
) -> Vanished | Unreachable | None:
    """Why a tree that held a project holds it no more; None if it is there, held by another one.

    `known` is what it was; `within` is as for `absence`; `files` are the project files there.
    Raises nothing.
    """
    filesystem = known.filesystem if known is not None else None
    away = absence(path, within, filesystem)
    if away is not None:
        return vanished(path) if away is Absence.GONE else Unreachable(path)
    try:
        identity = identify(path)
    except OSError:
        return Unreachable(path)
    if filesystem not in (None, identity.filesystem):
        return Unreachable(path)
    replaced = known is not None and not known.same_as(identity)
    return _no_more(path, known, identity) if replaced or not _is_marked(path, files) else None


def _no_more(path: bytes, known: Identity | None, now: Identity | None) -> Vanished:
    """The end of the project that was `known`, at whose path a folder `now` lies that is none, or
    another one."""
    if known is None or now is None:
        return Vanished(path)
    if not known.same_as(now):
        return Vanished(path, LapseReason.REPLACED)
    return Vanished(path, None if known.keeps_git(now) else LapseReason.RETARGETED)


def _is_marked(path: bytes, files: ProjectFiles) -> bool:
    names = names_in(path)
    return repository_kind(names) is not None or files.any_in(names)
