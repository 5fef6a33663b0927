"""The gate in front of every order that decides about more than one project.

A person types a few words, and the order can cover everything below a folder. So the ledger plans
each order, and before the plan takes effect, `refuse_unconfirmed` counts the projects that it
decides about (`rootsd.core.affected`). If there are several, the order has to carry a token for
each of them. A dry run of the same order returns the tokens, together with the names and the risks
of these projects. So no client can send such an order without having had the list. If there is
another project by then, or another folder in its place, it has to be listed again.

The catalog does not have everything that a new root shows. So before an order opens a root, the
`ConfirmationGate` looks for projects below it, also in hidden folders, below other mounts, and
while a scan still runs. If it cannot look at everything, the order has to be confirmed, too.

Whoever shows the list asks the person: the faces of `cli.answers.decision_flow`. The gate is not
the guard. It stops slips, and the guard stops programs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sized
from posixpath import basename

from msgspec import Struct

from rootsd.control.daemon_parts import DiscoveryControl
from rootsd.control.project_reader import ProjectReader
from rootsd.core.affected import (
    NOTHING_FOUND,
    AffectedProject,
    FoundBelow,
    affected_projects,
    openable,
)
from rootsd.core.catalog import Catalog
from rootsd.core.errors import Unconfirmed
from rootsd.core.model import Project
from rootsd.core.paths import text_of
from rootsd.core.plan import Plan
from rootsd.core.risks import describe_risks
from rootsd.state.ledger import CheckPlan
from rootsd.vcs.facts import CollectedRisks
from rootsd.wire.decisions import AffectedItem, ConfirmationItem
from rootsd.wire.projects import named_folder

# A person waits for the list, so projects on a slow disk are listed without their risks.
_RISK_SECONDS = 5.0


class ConfirmationGate(Struct, frozen=True):
    """What the gate reads about the projects of an order: what is below them, and their risks."""

    discovery: DiscoveryControl
    reader: ProjectReader

    async def found_below(self, catalog: Catalog, approved: Iterable[Project]) -> FoundBelow:
        """Return what an approval of these projects would show that `catalog` does not have."""
        opened = openable(catalog, approved)
        if not opened:
            return NOTHING_FOUND
        seen = await self.discovery.look_below(opened)
        return FoundBelow.of(catalog, seen.projects, seen.unsearched)

    async def confirmation_of(
        self, before: Catalog, made: Plan, found: FoundBelow
    ) -> ConfirmationItem | None:
        """Return what a person has to see before the orders in `made`; None for one project.

        Read the risks of the projects that clients will see.
        """
        affected = affected_projects(before, made, found)
        if not affected.are_several:
            return None
        shown = [each.project for each in affected.projects if each.is_shown]
        risks = await self.reader.risks(shown, _RISK_SECONDS) if shown else {}
        catalog = made.catalog
        return ConfirmationItem(
            projects=[_item(each, before, catalog, risks) for each in affected.projects],
            parents=[text_of(parent) for parent in affected.parents],
            unsearched=[text_of(path) for path in affected.unsearched],
        )


def refuse_unconfirmed(confirmed: Collection[str], found: FoundBelow = NOTHING_FOUND) -> CheckPlan:
    """Return a check that refuses the plan of an order about several projects.

    It accepts projects whose tokens are `confirmed`. `found` is what the gate found below the
    roots of the plan. The check raises Unconfirmed.
    """
    tokens = frozenset(confirmed)

    def check(before: Catalog, made: Plan) -> None:
        affected = affected_projects(before, made, found)
        if affected.are_several and not affected.are_among(tokens):
            raise _unconfirmed(len(affected.projects), affected.parents, confirmed)

    return check


def refuse_unconfirmed_widening(
    confirmed: Collection[str], found: FoundBelow = NOTHING_FOUND
) -> CheckPlan:
    """Return the same check for an undo: a person may take back what many projects got at once."""
    tokens = frozenset(confirmed)

    def check(before: Catalog, made: Plan) -> None:
        affected = affected_projects(before, made, found)
        if affected.are_wider and not affected.are_among(tokens):
            raise _unconfirmed(len(affected.projects), affected.parents, confirmed)

    return check


def refuse_unshown(shown: ConfirmationItem | None, confirmed: Collection[str]) -> None:
    """Raise Unconfirmed if a dry run lists projects whose tokens are not `confirmed`."""
    if shown is not None and not {each["token"] for each in shown["projects"]} <= set(confirmed):
        raise _unconfirmed(len(shown["projects"]), shown["parents"], confirmed)


def _unconfirmed(count: int, parents: Sized, confirmed: Collection[str]) -> Unconfirmed:
    if count > 1:
        what = f"{count:,} projects"
    elif len(parents):
        what = "a whole parent"
    else:
        what = "a folder with more folders than rootsd can look through"
    if confirmed:
        return Unconfirmed(f"this decides about {what}, and not the ones you were shown")
    return Unconfirmed(f"this decides about {what}, and nobody has confirmed that")


def _item(
    each: AffectedProject,
    before: Catalog,
    after: Catalog,
    risks: Mapping[bytes, CollectedRisks],
) -> AffectedItem:
    project = each.project
    has_it = (catalog for catalog in (after, before) if project.path in catalog.projects)
    known = next(has_it, None)
    name = text_of(basename(project.path)) if known is None else known.name_of(project)
    found = risks.get(project.path)
    return AffectedItem(
        **named_folder(project.id, name, project.path),
        token=each.token,
        before=None if each.before is None else each.before.value,
        after=each.after.value,
        within=None if each.within is None else text_of(each.within),
        risk=None if found is None else describe_risks(found.findings, is_whole=found.is_whole),
    )
