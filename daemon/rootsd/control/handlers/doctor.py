"""Handle `rootsd doctor`: run the checks that need the daemon's view of the system."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from anyio import to_thread

from rootsd.control import doctor_checks
from rootsd.control.exclusions import clause_of, remedy_for
from rootsd.control.routes import Route, query_route
from rootsd.control.services import ControlServices, Handlers
from rootsd.core.doctor import DoctorFinding, Severity, error, ok, warning
from rootsd.core.exclusion import Exclusion
from rootsd.core.labels import safe_label
from rootsd.core.policy import MachinePolicy
from rootsd.core.record import to_json
from rootsd.disk.identity import diagnose_identity
from rootsd.state.clock import utc_now
from rootsd.wall.kernel import landlock
from rootsd.watch.inotify_limits import InotifyLimit, read_inotify_limit
from rootsd.wire.daemon import ParentItem, PolicyStatus
from rootsd.wire.doctor import DoctorRequest, DoctorResult

# Values of ParentState in rootsd.discovery.status. The daemon sees no changes in such a parent.
_UNWATCHED_STATES = ("missing", "unreadable")


def routes(services: ControlServices) -> Iterable[Route[Any]]:
    """Return the routes of this module."""
    handlers = DoctorHandlers(services)
    return (query_route(DoctorRequest, handlers.examine),)


class DoctorHandlers(Handlers):
    """Handles `DoctorRequest`. `state` is the folder of the store."""

    async def examine(self, _: DoctorRequest) -> dict[str, Any]:
        """Return all findings as of now."""
        parents = self.discovery.parent_status(self.ledger.catalog)
        found = [
            *self._known_findings(parents, await self.services.daemon.degraded()),
            *await to_thread.run_sync(self._disk_findings, parents),
            *map(_left_out_finding, await self.discovery.left_out()),
        ]
        items = tuple(each._replace(seen_by="daemon") for each in found)
        return to_json(DoctorResult(items))

    def _known_findings(
        self, parents: Sequence[ParentItem], problems: Sequence[str]
    ) -> Iterator[DoctorFinding]:
        """Yield the findings that need no disk access."""
        yield doctor_checks.check_confinement(
            self.services.daemon.about()["confined"], landlock.version
        )
        if (policy := self.services.daemon.policy_status()) is not None:
            yield _policy_finding(self.ledger.catalog.policy, policy)
        if not parents:
            yield warning("parents", "no folder is watched yet", "rootsd up ~/src")
        for parent in parents:
            yield _parent_finding(parent)
        for sentence in problems:
            yield warning("daemon", safe_label(sentence, limit=None), "rootsd status")
        if self.ledger.unsaved:
            count = self.ledger.unsaved
            yield error("store", f"the disk refuses {count} changes", "df -h, then rootsd status")
        seen = (p.observed.first_seen for p in self.ledger.catalog.projects.values())
        yield doctor_checks.check_clock(utc_now(), max(seen, default=None))
        yield doctor_checks.check_watch_limit(
            self.discovery.watches(), read_inotify_limit(InotifyLimit.WATCHES)
        )

    def _disk_findings(self, parents: Sequence[ParentItem]) -> list[DoctorFinding]:
        """Return the findings that need disk access. Call this in a thread."""
        reachable = [p for p in parents if p["state"] not in _UNWATCHED_STATES]
        return [
            doctor_checks.check_private_folder("state", self.services.state),
            doctor_checks.check_disk_space("disk", self.services.state),
            *(diagnose_identity(p["path"].encode("utf-8", "surrogateescape")) for p in reachable),
        ]


def _left_out_finding(found: Exclusion) -> DoctorFinding:
    """Return what discovery leaves out. That is no problem, but a person may want to change it."""
    shown, clause = safe_label(found.at, limit=None), clause_of(found)
    finding = clause if shown in clause else f"{shown}: {clause}"
    return DoctorFinding("left out", Severity.OK, finding, remedy_for(found, found.at))


def _policy_finding(policy: MachinePolicy, status: PolicyStatus) -> DoctorFinding:
    if policy.problem:
        return error("policy", safe_label(policy.summary, limit=None), status["remedy"] or "")
    return ok("policy", f"{safe_label(status['file'], limit=None)} is in force; {policy.summary}")


def _parent_finding(parent: ParentItem) -> DoctorFinding:
    path, count = safe_label(parent["path"], limit=None), parent["projects"]
    if parent["note"] is None:
        return ok("parents", f"{path} is {parent['state']}; projects: {count}")
    finding = f"{path}: {safe_label(parent['note'], limit=None)}"
    remedy = parent["remedy"] or f"findmnt --target {path}"
    judge = error if parent["state"] in _UNWATCHED_STATES else warning
    return judge("parents", finding, remedy)
