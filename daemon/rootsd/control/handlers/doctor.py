"""Handle `rootsd doctor`: what the daemon can reach, and what it lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from anyio import to_thread

from rootsd.confine import landlock
from rootsd.control import doctor_checks
from rootsd.control.handlers.daemon import DaemonControl
from rootsd.control.handlers.scan import DiscoveryControl
from rootsd.control.routes import Route, query_route
from rootsd.core.doctor import DoctorFinding, error, ok, warning
from rootsd.core.labels import safe_label
from rootsd.disk.identity import diagnose_identity
from rootsd.state.ledger import Ledger
from rootsd.system.clock import utc_now
from rootsd.watch.inotify_limits import InotifyLimit, read_inotify_limit
from rootsd.wire.daemon import DoctorItem, DoctorRequest, DoctorResult, ParentStatus

# Words of app.discovery.status.ParentState: those in which changes are not seen as they happen.
_UNWATCHED_STATES = ("missing", "unreadable")


@dataclass(frozen=True, slots=True)
class DoctorHandlers:
    """Answers what the doctor asks. `state` is the folder of the decisions."""

    ledger: Ledger
    surveyor: DiscoveryControl
    host: DaemonControl
    state: bytes
    now: Callable[[], datetime] = utc_now

    def entries(self) -> Iterable[Route[Any]]:
        """What is answered here."""
        return (query_route(DoctorRequest, self.examine),)

    async def examine(self, _: DoctorRequest) -> DoctorResult:
        """Everything, looked at now."""
        parents = self.surveyor.parent_status(self.ledger.catalog)
        found = [*self._within(parents), *await to_thread.run_sync(self._outside, parents)]
        items = [diagnosis_item(each, "daemon") for each in found]
        return DoctorResult(revision=self.ledger.revision, items=items, warnings=[])

    def _within(self, parents: Sequence[ParentStatus]) -> Iterator[DoctorFinding]:
        """What the daemon knows without looking."""
        yield doctor_checks.check_confinement(self.host.about()["confined"], landlock.version)
        if not parents:
            yield warning("parents", "no folder is watched yet", "rootsd up ~/src")
        for parent in parents:
            yield _parent_diagnosis(parent)
        for sentence in self.host.degraded(is_look=False):
            yield warning("daemon", safe_label(sentence, limit=None), "rootsd status")
        if self.ledger.unsaved:
            count = self.ledger.unsaved
            yield error("store", f"the disk refuses {count} changes", "df -h, then rootsd status")
        seen = (p.observed.first_seen for p in self.ledger.catalog.projects.values())
        yield doctor_checks.check_clock(self.now(), max(seen, default=None))
        yield doctor_checks.check_watch_limit(
            self.surveyor.watches(), read_inotify_limit(InotifyLimit.WATCHES)
        )

    def _outside(self, parents: Sequence[ParentStatus]) -> list[DoctorFinding]:
        """What has to be looked at on the disk."""
        reachable = [p for p in parents if p["state"] not in _UNWATCHED_STATES]
        return [
            doctor_checks.check_private_folder("state", self.state),
            doctor_checks.check_disk_space("disk", self.state),
            *(diagnose_identity(p["path"].encode("utf-8", "surrogateescape")) for p in reachable),
        ]


def diagnosis_item(diagnosis: DoctorFinding, seen_by: str) -> DoctorItem:
    """One finding as it is told."""
    return DoctorItem(
        topic=diagnosis.topic,
        condition=diagnosis.condition.value,
        finding=diagnosis.finding,
        remedy=diagnosis.remedy or None,
        seen_by=seen_by,
    )


def _parent_diagnosis(parent: ParentStatus) -> DoctorFinding:
    path, count = safe_label(parent["path"], limit=None), parent["projects"]
    if parent["note"] is None:
        return ok("parents", f"{path} is {parent['state']}; projects: {count}")
    finding = f"{path}: {safe_label(parent['note'], limit=None)}"
    remedy = parent["remedy"] or f"findmnt --target {path}"
    judge = error if parent["state"] in _UNWATCHED_STATES else warning
    return judge("parents", finding, remedy)
