"""The gate in front of every order that decides about more than one project.

A person types a few words, and the order can cover everything below a folder. So the ledger plans
each order, and before the plan takes effect, `refuse_unconfirmed` counts the projects that it
decides about (`rootsd.core.affected`). If there are several, the order has to carry a token for
each of them. A dry run of the same order returns the tokens, together with the names and the risks
of these projects. So no client can send such an order without having had the list. If there is
another project by then, or another folder in its place, it has to be listed again.

Whoever shows the list asks the person: `rootsd.cli.confirm` on the command line, and the dialogs
of `rootsd ui`. The gate is not the guard. It stops slips, and the guard stops programs.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Collection, Mapping
from typing import Any

from rootsd.control.facts import ReadRisks
from rootsd.core.affected import AffectedProject, AffectedProjects, affected_projects
from rootsd.core.catalog import Catalog
from rootsd.core.errors import Unconfirmed
from rootsd.core.paths import is_utf8, text_of
from rootsd.core.plan import Plan
from rootsd.core.risks import describe_risks
from rootsd.state.ledger import CheckPlan
from rootsd.wire.decisions import AffectedItem, ConfirmationItem

# A person waits for the list, so projects on a slow disk are listed without their risks.
_RISK_SECONDS = 5.0


def refuse_unconfirmed(confirmed: Collection[str]) -> CheckPlan:
    """Return a check that refuses the plan of an order about several projects.

    It accepts projects whose tokens are `confirmed`. The check raises Unconfirmed.
    """
    tokens = frozenset(confirmed)

    def check(before: Catalog, made: Plan) -> None:
        affected = affected_projects(before, made)
        if affected.are_several and not affected.are_among(tokens):
            raise _unconfirmed(affected, confirmed)

    return check


def refuse_unconfirmed_widening(confirmed: Collection[str]) -> CheckPlan:
    """Return the same check for an undo: a person may take back what many projects got at once."""
    tokens = frozenset(confirmed)

    def check(before: Catalog, made: Plan) -> None:
        affected = affected_projects(before, made)
        if affected.are_wider and not affected.are_among(tokens):
            raise _unconfirmed(affected, confirmed)

    return check


def _unconfirmed(affected: AffectedProjects, confirmed: Collection[str]) -> Unconfirmed:
    count = len(affected.projects)
    what = f"{count:,} projects" if count > 1 else "a whole parent"
    if confirmed:
        return Unconfirmed(f"this decides about {what}, and not the ones you were shown")
    return Unconfirmed(f"this decides about {what}, and nobody has confirmed that")


async def confirmation_of(
    before: Catalog, made: Plan, risks_of: ReadRisks
) -> ConfirmationItem | None:
    """Return what a person has to see before the orders in `made`; None for a single project.

    Read the risks of the projects that clients will see.
    """
    affected = affected_projects(before, made)
    if not affected.are_several:
        return None
    shown = [each.project for each in affected.projects if each.is_shown]
    risks = await risks_of(shown, _RISK_SECONDS) if shown else {}
    catalog = made.catalog
    return ConfirmationItem(
        projects=[_item(each, before, catalog, risks) for each in affected.projects],
        parents=[text_of(parent) for parent in affected.parents],
    )


def _item(
    each: AffectedProject,
    before: Catalog,
    after: Catalog,
    risks: Mapping[bytes, Mapping[str, Any]],
) -> AffectedItem:
    project = each.project
    known = after if project.path in after.projects else before
    readable = is_utf8(project.path)
    found = risks.get(project.path)
    return AffectedItem(
        token=each.token,
        id=project.id,
        name=known.name_of(project),
        path=text_of(project.path) if readable else None,
        path_b64=None if readable else b64encode(project.path).decode(),
        before=None if each.before is None else each.before.value,
        after=each.after.value,
        within=None if each.within is None else text_of(each.within),
        risk=None
        if found is None
        else describe_risks(found["findings"], is_whole=found["findings_whole"]),
    )
