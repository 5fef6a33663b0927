"""What discovery has told about each path, so that nothing is told twice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from rootsd.core.inputs import Observation, Sighted, Unreachable, Unsafe, Vanished
from rootsd.core.model import Identity, Incomplete, LapseReason, Project, ProjectKind
from rootsd.host.disk.safety import Surroundings


@dataclass(slots=True)
class Tally:
    """How many paths were new, gone or changed since it was last taken."""

    new: int = 0
    gone: int = 0
    changed: int = 0


class _Stand(NamedTuple):
    """How a project was seen to stand; who it is, is kept apart. Most stand alike."""

    kind: ProjectKind
    incomplete: Incomplete | None
    main_checkout: bytes | None
    named: bool
    proposed: bool
    hazards: tuple[LapseReason, ...]


class Told:
    """Collects observations to be handed out, and remembers the last of each path."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        # For a sighting `_seen` has the rest of it.
        self._reported: dict[bytes, Observation | _Stand] = {}
        self._stands: dict[_Stand, _Stand] = {}
        self._seen: dict[bytes, Identity | None] = {}
        self._outbox: list[Observation] = []
        self._tally = Tally()
        self._safe: set[bytes] = set()

    def __contains__(self, path: bytes) -> bool:
        """Whether somebody was told that a project is at `path`, or knew it before."""
        return path in self._seen

    def know(self, projects: Iterable[Project]) -> None:
        """These were told in an earlier life; what they are now is yet to be said."""
        for project in projects:
            if project.sighting.kind is not ProjectKind.URI:
                self._seen[project.path] = project.sighting.identity
                self.unsay(project.path)

    def identity(self, path: bytes) -> Identity | None:
        """The identity of what was last seen at `path`."""
        return self._seen.get(path)

    def as_held(self, path: bytes, identity: Identity) -> Identity:
        """An identity just read, as the object that is held of `path` already where it is equal.

        The catalogue has that one as well: 200 B for each project.
        """
        held = self._seen.get(path)
        return held if held == identity else identity

    def filesystem(self, path: bytes) -> bytes | None:
        """The file system that a project was last seen on."""
        identity = self._seen.get(path)
        return identity.filesystem if identity is not None else None

    def tell(self, observation: Observation) -> None:
        """Hand an observation out, unless it was the last thing said of its path.

        A sighting in a hazardous place is followed by the hazard. Nobody is told that a path which
        they never heard of is gone.
        """
        path, known = observation.path, observation.path in self._seen
        if isinstance(observation, Sighted):
            hazards = self._hazards(path)
            told: tuple[Observation, ...] = (observation, *hazards)
            report: Observation | _Stand = self._stand(observation, hazards)
            is_same = self._seen.get(path) == observation.identity
        else:
            told, report, is_same = (observation,), observation, True
        if is_same and self._reported.get(path) == report:
            return
        if known or isinstance(observation, Sighted):
            self._outbox += told
            self._count(observation, known=known)
        self._reported[path] = report
        if isinstance(observation, Vanished):
            self.forget(path)
        elif isinstance(observation, Sighted):
            self._seen[path] = observation.identity

    def _stand(self, seen: Sighted, hazards: tuple[Unsafe, ...]) -> _Stand:
        reasons = tuple(hazard.reason for hazard in hazards)
        stand = _Stand(
            seen.kind, seen.incomplete, seen.main_checkout, seen.named, seen.proposed, reasons
        )
        # 160 B for each project; those with a main checkout of their own are few.
        return stand if stand.main_checkout else self._stands.setdefault(stand, stand)

    def unsay(self, path: bytes) -> None:
        """Others know better by now: the next thing said of it is handed out in any case."""
        self._reported.pop(path, None)

    def forget(self, path: bytes) -> None:
        """No project is known there, as if nobody had ever been told of one."""
        self._reported.pop(path, None)
        self._seen.pop(path, None)

    def take(self) -> tuple[Observation, ...]:
        """What is to be handed out since the last call, in order."""
        taken, self._outbox = tuple(self._outbox), []
        # What was judged safe holds for one batch only.
        self._safe.clear()
        return taken

    def take_tally(self) -> Tally:
        """The counts since the last call."""
        taken, self._tally = self._tally, Tally()
        return taken

    def _hazards(self, path: bytes) -> tuple[Unsafe, ...]:
        try:
            hazard = self._surroundings.hazard(path, self._safe)
        except OSError:
            return ()
        return () if hazard is None else (Unsafe(path, hazard.reason),)

    def _count(self, now: Observation, *, known: bool) -> None:
        if isinstance(now, Vanished | Unreachable):
            self._tally.gone += 1
        elif known:
            self._tally.changed += 1
        else:
            self._tally.new += 1
