"""Handle the request about the last upgrade: what it kept, and what differs for clients now."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import Any

from anyio import to_thread
from msgspec import Struct

from rootsd.control.routes import RequestContext, Route
from rootsd.control.services import ControlServices
from rootsd.core.catalog import Catalog
from rootsd.core.model import ActorKind, LapseReason, Project, Verdict
from rootsd.state.ledger import Ledger
from rootsd.state.store.backup import FOLDER_NAME
from rootsd.state.store.upgrade import StoreUpgrade
from rootsd.state.upgrade_notice import UpgradeNotice
from rootsd.wire.upgrade import (
    RenamedRoot,
    UpgradeItem,
    UpgradeQuery,
    UpgradeResult,
    WiderWorkspace,
)

_COLON = b":"
_MAX_WORKSPACES = 5
_MAX_NAMES = 5


def routes(services: ControlServices) -> Iterable[Route[Any]]:
    """Return the routes of this module."""
    return UpgradeHandlers(services.ledger, services.upgrade).routes()


class UpgradeHandlers(Struct, frozen=True):
    """Handles `UpgradeQuery`."""

    ledger: Ledger
    notice: UpgradeNotice

    def routes(self) -> Iterable[Route[Any]]:
        """Return the routes of these handlers."""
        return (
            Route(
                UpgradeQuery,
                self.upgrade,
                lambda _: None,
                needs_caller=lambda query: query.is_look,
            ),
        )

    async def upgrade(self, query: UpgradeQuery, call: RequestContext) -> UpgradeResult:
        """Return the last upgrade. For an agent that reads it, it stays new."""
        upgrade, is_new = self.notice.upgrade, self.notice.is_new
        if is_new and query.is_look and call.actor.kind is ActorKind.PERSON:
            await to_thread.run_sync(self.notice.mark_seen)
        return UpgradeResult(
            revision=self.ledger.revision,
            upgrade=None if upgrade is None else self._item(upgrade, is_new=is_new),
            warnings=[],
        )

    def _item(self, upgrade: StoreUpgrade, *, is_new: bool) -> UpgradeItem:
        catalog = self.ledger.catalog
        backup = self.notice.folder / FOLDER_NAME / upgrade.backup
        return UpgradeItem(
            at=upgrade.at,
            from_release=upgrade.from_release or None,
            from_version=upgrade.from_version,
            to_version=upgrade.to_version,
            backup=str(backup) if backup.exists() else None,
            kept=dict(upgrade.kept),
            lapsed=_count_lapsed(catalog, datetime.fromisoformat(upgrade.at)),
            waiting_worktrees=sorted(
                catalog.name_of(project)
                for project in catalog.projects.values()
                if _is_waiting_worktree(project, catalog)
            ),
            renamed=list(_renamed(catalog)),
            focus=self.ledger.focus.tag,
            with_colon=sorted(root.name for path, root in catalog.roots.items() if _COLON in path)[
                :_MAX_NAMES
            ],
            wider_workspaces=list(islice(_wider_workspaces(catalog), _MAX_WORKSPACES)),
            is_new=is_new,
        )


def _count_lapsed(catalog: Catalog, at: datetime) -> int:
    """Count the approvals and rules that lapsed since `at` because the store was restored."""
    lapses = (project.ruling.lapse for project in catalog.projects.values())
    restored = [
        lapse
        for lapse in lapses
        if lapse and lapse.reason is LapseReason.STORE_RESTORED and lapse.at >= at
    ]
    return len(restored) + sum(rule.verdict is Verdict.PENDING for rule in catalog.rules)


def _is_waiting_worktree(project: Project, catalog: Catalog) -> bool:
    """Return whether only a grant of version 0.1.0 speaks for a pending worktree.

    That version did not record the `.git` file of the worktree, so the grant does not count.
    """
    return catalog.is_pending(project) and any(
        grant.actor.kind is ActorKind.MAIN_CHECKOUT and grant.identity.git_born_ns is None
        for grant in project.ruling.grants
    )


def _renamed(catalog: Catalog) -> Iterator[RenamedRoot]:
    for path, root in sorted(catalog.roots.items()):
        stored = catalog.projects[path].ruling.name
        if stored is not None and stored != root.name:
            yield RenamedRoot(stored=stored, name=root.name)


def _wider_workspaces(catalog: Catalog) -> Iterator[WiderWorkspace]:
    """Yield the roots that share a tag with another one or have a worktree among the roots."""
    by_tag: dict[str, set[str]] = defaultdict(set)
    worktrees: dict[bytes, set[str]] = defaultdict(set)
    for root in catalog.roots.values():
        for tag in root.tags:
            by_tag[tag].add(root.name)
        if root.main_checkout is not None:
            worktrees[root.main_checkout].add(root.name)
    for root in sorted(catalog.roots.values(), key=lambda root: root.name):
        also = set(worktrees.get(root.path, ())).union(*(by_tag[tag] for tag in root.tags))
        also.discard(root.name)
        if also:
            yield WiderWorkspace(name=root.name, also=sorted(also)[:_MAX_NAMES], count=len(also))
