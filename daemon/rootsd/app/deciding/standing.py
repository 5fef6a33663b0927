"""Where a path stands, from the published set, and why, from the voices that make a verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from anyio import to_thread

from rootsd.app.control.items import NoteOn, items_of
from rootsd.app.control.register import Entry, look
from rootsd.app.control.worktrees import why_not_inherited
from rootsd.app.deciding.ledger import Ledger
from rootsd.app.deciding.references import canonical, never_plain
from rootsd.core.catalog import Catalog
from rootsd.core.decide import Ground, Judgement, approving_rule, voices
from rootsd.core.labels import safe_label
from rootsd.core.model import Presence, Project, Verdict
from rootsd.core.parents import Parent
from rootsd.core.paths import bytes_of, is_utf8, text_of
from rootsd.core.uris import looks_like_a_uri
from rootsd.wire.request import BadRequest
from rootsd.wire.standing import Checked, CheckQuery, Voice, Why, WhyQuery

# Either is only there where nothing else speaks: they are an end, and no voice of their own.
_ENDS = (Ground.LAPSED, Ground.UNDECIDED)
# What a person decided about the project itself.
_OF_ITSELF = (Ground.APPROVED, Ground.DENIED)


@dataclass(frozen=True, slots=True)
class Standing:
    """Answers `CheckQuery` and `WhyQuery`. `real_path` is as for
    `rootsd.app.deciding.choosing`; `is_plain` tells at once that a path is its own real path."""

    ledger: Ledger
    real_path: Callable[[str, str], bytes]
    parents: Callable[[], Sequence[Parent]]
    note_on: NoteOn
    is_plain: Callable[[bytes], bool] = never_plain

    def entries(self) -> Iterable[Entry[Any]]:
        """What is answered here."""
        return look(CheckQuery, self.check), look(WhyQuery, self.why)

    async def check(self, query: CheckQuery) -> Checked:
        """Whether the path lies in a root, as the disk shows it now, or the URI is one. Raises
        BadRequest where it is no absolute path."""
        path = await self._canonical(query.path)
        root = await self.ledger.root_at(path)
        if root is not None:
            return Checked(
                published=True,
                verdict=Verdict.APPROVED.value,
                root=root.name,
                access=root.access.value,
            )
        catalog = self.ledger.catalog
        project = catalog.holding(path)
        verdict = catalog.judgements[project.path].verdict if project else None
        if verdict is Verdict.APPROVED:
            # Approved and yet not published: out of reach, so there is nothing to rely on.
            verdict = Verdict.PENDING
        return Checked(published=False, verdict=verdict, root=None, access=None)

    async def why(self, query: WhyQuery) -> Why:
        """What speaks for and against the innermost project at or above the path, as the disk
        shows it now. Raises BadRequest where it is no absolute path and no URI."""
        path = await self._canonical(query.path)
        revision = (await self.ledger.current()).revision
        catalog = self.ledger.catalog
        project = catalog.holding(path)
        known = [] if project is None else [project]
        return Why(
            revision=revision,
            path=text_of(path),
            published=project is not None and project.path in catalog.roots,
            items=items_of(catalog, known, self.parents(), self.note_on),
            voices=[] if project is None else _voices(project, catalog),
            obstacles=_no_project(path, catalog)
            if project is None
            else _obstacles(project, catalog),
            warnings=[],
        )

    async def _canonical(self, path: str) -> bytes:
        is_uri = looks_like_a_uri(path)
        if not (is_uri or path.startswith("/")):
            raise BadRequest(f"{safe_label(path, limit=None)} is no absolute path")
        with suppress(ValueError):  # what can be no path: `canonical` says so
            plain = bytes_of(path)
            if is_uri or self.is_plain(plain):
                return plain  # another thread would take longer than all that is asked
        return await to_thread.run_sync(canonical, self.real_path, path, "/")


def _voices(project: Project, catalog: Catalog) -> list[Voice]:
    spoken = {voice.ground: voice for voice in voices(project, catalog.surroundings)}
    deciding = catalog.judgements[project.path].ground
    # A rule grants nothing to a denied project, and a person asks why it does not.
    rule = approving_rule(project, catalog.surroundings)
    if rule is not None and catalog.is_denied(project):
        outweighed = Judgement(Verdict.APPROVED, Ground.APPROVE_RULE, rule.number)
        spoken.setdefault(Ground.APPROVE_RULE, outweighed)
    return [
        Voice(
            ground=ground.value,
            verdict=spoken[ground].verdict.value if ground in spoken else None,
            by=_by(spoken[ground], project, catalog) if ground in spoken else None,
            decides=ground is deciding,
        )
        for ground in Ground
        if ground not in _ENDS or ground is deciding
    ]


def _by(voice: Judgement, project: Project, catalog: Catalog) -> str | None:
    match voice.by:
        case bytes() as folder:
            return text_of(folder)
        case int() as number:
            rule = next(rule for rule in catalog.rules if rule.number == number)
            return f"{number}: {text_of(rule.pattern)}"
        case None:
            return text_of(project.path) if voice.ground in _OF_ITSELF else None


def _obstacles(project: Project, catalog: Catalog) -> list[str]:
    """Return what keeps a project from clients besides its verdict, a sentence each."""
    seen = project.sighting
    obstacles = []
    if seen.presence is not Presence.PRESENT:
        obstacles.append(f"it is {seen.presence.value}")
    if seen.incomplete is not None:
        obstacles.append(f"it is incomplete: {seen.incomplete.value}")
    if seen.hazard is not None:
        obstacles.append(f"it cannot be published: {seen.hazard.value}")
    if not is_utf8(project.path):
        obstacles.append("its path is not UTF-8")
    if (reason := why_not_inherited(catalog, project)) is not None:
        obstacles.append(reason)
    return obstacles


def _no_project(path: bytes, catalog: Catalog) -> list[str]:
    reason = catalog.places.why_no_root(path)
    return ["no project is known at or above it", *([reason] if reason else [])]
