"""The worktrees that an approval concerns, as items of the public `rootsd/1` schema."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable

from rootsd.core.catalog import Catalog
from rootsd.core.decide import Ground, doubt_about
from rootsd.core.labels import safe_label
from rootsd.core.marks import mark_of
from rootsd.core.model import Presence, Project, ProjectKind, Verdict
from rootsd.core.paths import is_utf8, text_of
from rootsd.core.worktrees import Doubt
from rootsd.wire.facts import WorktreeItem

_OPEN = (Ground.UNDECIDED, Ground.LAPSED)


def worktree_items(catalog: Catalog, mains: Iterable[bytes]) -> list[WorktreeItem]:
    """Return the worktrees of `mains` that inherit an approval in `catalog`, or could.

    Worktrees that were decided about on their own, and those that are incomplete or out of reach,
    are left out.
    """
    linked = (path for main in mains for path in sorted(catalog.linked.get(main, ())))
    projects = (catalog.projects[path] for path in linked)
    return [item for each in projects if (item := _item(catalog, each)) is not None]


def _item(catalog: Catalog, project: Project) -> WorktreeItem | None:
    path, main = project.path, project.sighting.main_checkout
    ground = catalog.judgements[path].ground
    is_inherited = ground is Ground.MAIN_CHECKOUT and path in catalog.roots
    doubt = _doubt(catalog, project) if catalog.is_waiting(project) else None
    if main is None or not (is_inherited or doubt):
        return None
    readable = is_utf8(path)
    return WorktreeItem(
        id=project.id,
        name=catalog.name_of(project),
        path=text_of(path) if readable else None,
        path_b64=None if readable else b64encode(path).decode(),
        main=text_of(main),
        identity=mark_of(project.sighting.identity),
        published=is_inherited,
        confirmable=doubt is Doubt.OLDER,
        reason=doubt.value if doubt else None,
    )


def why_not_inherited(catalog: Catalog, project: Project) -> str | None:
    """Return, as a sentence, why a worktree is not published with its main checkout.

    None for anything that is decided about, or is no worktree of an approved main checkout.
    """
    seen = project.sighting
    if seen.kind is not ProjectKind.GIT_WORKTREE or seen.presence is not Presence.PRESENT:
        return None
    judgement = catalog.judgements[project.path]
    if judgement.verdict is not Verdict.PENDING or judgement.ground not in _OPEN:
        return None
    if seen.main_checkout is None:
        return "no repository links back to this worktree"
    if (doubt := _doubt(catalog, project)) is None:
        return None
    main = catalog.projects[seen.main_checkout]
    name = safe_label(catalog.name_of(main))
    how = f" (rootsd approve {name} --worktrees)" if doubt is Doubt.OLDER else ""
    return f"not published with {name}: {doubt.value}{how}"


def _doubt(catalog: Catalog, project: Project) -> Doubt | None:
    return doubt_about(project, catalog.surroundings)
