"""The daemon examines itself, for `rootsd doctor`: what it can reach, and what it lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from anyio import to_thread

from rootsd.app.control.register import Entry, look
from rootsd.app.control.running import Host
from rootsd.app.control.scans import Surveyor
from rootsd.app.deciding.ledger import Ledger
from rootsd.core.diagnosis import Diagnosis, error, ok, warning
from rootsd.core.labels import safe_label
from rootsd.host import examining, landlock
from rootsd.host.clock import utc_now
from rootsd.host.disk.handles import file_handles
from rootsd.host.watch.limits import Limit, granted
from rootsd.wire.examining import DiagnosisItem, Examine, Examined
from rootsd.wire.running import ParentStatus

# Words of app.discovery.status.ParentState: those in which changes are not seen as they happen.
_BLIND = ("missing", "unreadable")


@dataclass(frozen=True, slots=True)
class Examining:
    """Answers what the doctor asks. `state` is the folder of the decisions."""

    ledger: Ledger
    surveyor: Surveyor
    host: Host
    state: bytes
    now: Callable[[], datetime] = utc_now

    def entries(self) -> Iterable[Entry[Any]]:
        """What is answered here."""
        return (look(Examine, self.examine),)

    async def examine(self, _: Examine) -> Examined:
        """Everything, looked at now."""
        parents = self.surveyor.parent_status(self.ledger.catalog)
        found = [*self._within(parents), *await to_thread.run_sync(self._outside, parents)]
        items = [item_of(each, "daemon") for each in found]
        return Examined(revision=self.ledger.revision, items=items, warnings=[])

    def _within(self, parents: Sequence[ParentStatus]) -> Iterator[Diagnosis]:
        """What the daemon knows without looking."""
        yield examining.confinement(self.host.about()["confined"], landlock.version)
        if not parents:
            yield warning("parents", "no folder is watched yet", "rootsd up ~/src")
        for parent in parents:
            yield _of_parent(parent)
        for sentence in self.host.degraded(is_look=False):
            yield warning("daemon", safe_label(sentence, limit=None), "rootsd status")
        if self.ledger.unsaved:
            count = self.ledger.unsaved
            yield error("store", f"the disk refuses {count} changes", "df -h, then rootsd status")
        seen = (p.sighting.first_seen for p in self.ledger.catalog.projects.values())
        yield examining.clock(self.now(), max(seen, default=None))
        yield examining.watch_limit(self.surveyor.watches(), granted(Limit.WATCHES))

    def _outside(self, parents: Sequence[ParentStatus]) -> list[Diagnosis]:
        """What has to be looked at on the disk."""
        reachable = [p for p in parents if p["state"] not in _BLIND]
        return [
            examining.private_folder("state", self.state),
            examining.disk_room("disk", self.state),
            *(file_handles(p["path"].encode("utf-8", "surrogateescape")) for p in reachable),
        ]


def item_of(diagnosis: Diagnosis, seen_by: str) -> DiagnosisItem:
    """One finding as it is told."""
    return DiagnosisItem(
        topic=diagnosis.topic,
        condition=diagnosis.condition.value,
        finding=diagnosis.finding,
        remedy=diagnosis.remedy or None,
        seen_by=seen_by,
    )


def _of_parent(parent: ParentStatus) -> Diagnosis:
    path, count = safe_label(parent["path"], limit=None), parent["projects"]
    if parent["note"] is None:
        return ok("parents", f"{path} is {parent['state']}; projects: {count}")
    finding = f"{path}: {safe_label(parent['note'], limit=None)}"
    remedy = parent["remedy"] or f"findmnt --target {path}"
    judge = error if parent["state"] in _BLIND else warning
    return judge("parents", finding, remedy)
