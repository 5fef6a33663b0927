"""Answer queries from the store while no daemon runs, with the state at the end of its last run.

This module holds the daemon's own lock while it reads the store, so no daemon can start and write
to it. Nothing is verified on the disk. And nothing counts as published, because no client gets
roots without a daemon.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from rootsd import __version__
from rootsd.config.policy import load_policy
from rootsd.config.policy_file import POLICY_FILE
from rootsd.control.handlers.audit_log import log_items_from
from rootsd.control.handlers.rules import policy_rule_items, rule_item
from rootsd.control.items import project_items
from rootsd.control.listing import add_risks, matches_risk, matching_projects
from rootsd.control.references import is_selected, real_path
from rootsd.core.catalog import Catalog
from rootsd.core.paths import RefusedPlaces
from rootsd.files.lock import DaemonLock, LockRecord
from rootsd.places import runtime_dir
from rootsd.places.daemon_folders import Places
from rootsd.state.store.opening import DATABASE_NAME
from rootsd.state.store.store import Store
from rootsd.wire.decisions import RulesQuery
from rootsd.wire.guard import LogQuery
from rootsd.wire.projects import ProjectItem, ProjectsQuery, RiskReading, Selection

OFFLINE_WARNING = (
    "the daemon is not running: this is the last known state, and no client gets it"
    " (try: rootsd up)"
)

OfflineQuery = LogQuery | ProjectsQuery | RulesQuery


def has_store(places: Places) -> bool:
    """Return whether there is a store to read."""
    return (_state_folder(places) / DATABASE_NAME).exists()


def answer_offline(places: Places, query: OfflineQuery) -> dict[str, Any]:
    """Return the result of a query from the store. Its `revision` is None.

    The answers to `LogQuery` and `RulesQuery` are the same as the daemon's. The answer to
    `ProjectsQuery` has no origins, risks, and parents. Raises Busy if a daemon or another reader
    holds the lock, what the store raises, and what `matching_projects` raises.
    """
    record = LockRecord(os.getpid(), __version__, {})
    with DaemonLock.acquire(_state_folder(places), record):
        store = Store.open(_state_folder(places), Path(os.fsdecode(places.data)))
        try:
            return _answer(store, places, query)
        finally:
            store.close()


def _answer(store: Store, places: Places, query: OfflineQuery) -> dict[str, Any]:
    loaded = store.load()
    extra: dict[str, Any] = {}
    warnings = [OFFLINE_WARNING, *filter(None, [loaded.note, loaded.warning])]
    if isinstance(query, LogQuery):
        items: list[Any] = list(log_items_from(store, store.last_events(max(0, query.last))))
    else:
        own = (places.config, places.log, places.state, places.data)
        refused = RefusedPlaces(
            runtime_dir.home_folder(), own, account_home=runtime_dir.account_home()
        )
        policy = load_policy(POLICY_FILE).policy
        catalog = Catalog.of(
            loaded.projects, loaded.rules, refused, loaded.next_rule, policy=policy
        )
        if isinstance(query, RulesQuery):
            items = [rule_item(rule, catalog) for rule in catalog.rules]
            extra = {"policy": policy_rule_items(catalog)}
        else:
            items = list(_projects(catalog, query))
    return {"revision": None, "items": items, "warnings": warnings, **extra}


def _projects(catalog: Catalog, query: ProjectsQuery) -> list[ProjectItem]:
    matching = matching_projects(catalog, query, real_path)
    is_empty = query.select is Selection.PUBLISHED
    chosen = [
        project
        for project in matching
        if not is_empty
        and is_selected(catalog, project, query.select)
        and matches_risk(None, query.risk)
    ]
    items = project_items(catalog, chosen, ())
    for item in items:
        item["published"] = False
        if query.risks is not RiskReading.NEVER:
            add_risks(item, None)
    return items


def _state_folder(places: Places) -> Path:
    return Path(os.fsdecode(places.state))
