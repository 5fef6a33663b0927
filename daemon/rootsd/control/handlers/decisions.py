"""Handle approve, deny, and forget: decide about projects, or preview the decision.

A request is resolved to projects once and planned once. If another request changes the catalog in
between, both steps start over. `decision_orders` has what the orders of a request are.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
from msgspec.structs import replace

from rootsd.control.confirmation import refuse_unshown
from rootsd.control.decision_orders import (
    DecisionFacts,
    check_changes_shown,
    check_incomplete,
    orders_of,
    rule_orders,
)
from rootsd.control.handlers.rules import rule_item
from rootsd.control.inspector import MAX_AT_ONCE
from rootsd.control.items import (
    dropped_project_items,
    shared_git_item,
    unlisted_project_items,
    worktree_items,
)
from rootsd.control.plain_commands import note_taken_off
from rootsd.control.references import check_label, check_name, check_tag
from rootsd.control.routes import (
    COMMAND_TEXT_LIMIT,
    DRY_RUN_ACTOR,
    GuardedCommand,
    Route,
    command_route,
    shorten_preview,
)
from rootsd.control.selection import ProjectSelection, ProjectSelector
from rootsd.control.services import ControlServices, Handlers
from rootsd.core.affected import NOTHING_FOUND, FoundBelow
from rootsd.core.catalog import Catalog
from rootsd.core.decide import VerdictReason
from rootsd.core.errors import (
    NameTaken,
    NotPresent,
    OrderRefused,
    RootsdError,
    UnknownProject,
)
from rootsd.core.inputs import (
    ProjectObserved,
)
from rootsd.core.labels import safe_label
from rootsd.core.model import (
    UNDECIDED,
    Actor,
    Presence,
    Project,
    Verdict,
)
from rootsd.core.paths import text_of
from rootsd.core.shared_git import GitAccess, shared_git
from rootsd.state.ledger import Conflict
from rootsd.wire.decisions import (
    MAX_APPROVAL_S,
    DecideRequest,
    DecideResult,
    DecisionVerb,
    IncompleteItem,
)
from rootsd.wire.projects import Selection, SharedGitItem
from rootsd.wire.request import ApplyMode, BadRequest


def routes(services: ControlServices) -> Iterable[Route[Any]]:
    """Return the routes of this module."""
    handlers = DecisionHandlers(services)
    return (command_route(DecideRequest, handlers.carry_out, handlers.guarded_command),)


class DecisionHandlers(Handlers):
    """Handles `DecideRequest`."""

    def __init__(self, services: ControlServices) -> None:
        super().__init__(services)
        self.selector = ProjectSelector(services)

    async def carry_out(self, request: DecideRequest, actor: Actor) -> DecideResult:
        """Decide about the projects of the request. On RootsdError, nothing has changed.

        Before the approval of a named project is refused because of the state on the disk,
        discovery looks again: the project may have appeared, or become complete, a moment ago.
        Raises Unconfirmed if there are several, and `confirmed` does not stand for them.
        """
        _check_request(request, self.ledger.catalog)
        try:
            return await self._carry_out_now(request, actor)
        except (NotPresent, UnknownProject):
            if request.verb is not DecisionVerb.APPROVE or request.select is not Selection.NAMED:
                raise
        await self.selector.look_again(request)
        try:
            return await self._carry_out_now(request, actor)
        except NotPresent as refused:
            if (why := await self.selector.why_unsafe(request, refused.message)) is None:
                raise
            raise NotPresent(why, refused.remedy) from refused

    async def _carry_out_now(self, request: DecideRequest, actor: Actor) -> DecideResult:
        proposed: set[bytes] = set()
        chosen = await self._choose(request, actor, proposed)
        if request.verb is DecisionVerb.ACCEPT:
            await self._look_into(request, chosen)
            chosen = await self._choose(request, actor, proposed)
            check_changes_shown(request, chosen)
        while True:
            try:
                decided = await self._decide(request, actor, chosen, proposed)
                break
            except Conflict:  # another request came first, so resolve with the new catalog
                chosen = await self._choose(request, actor, proposed)
            except OrderRefused:
                # In a selection, one project that has just changed does not stop the others.
                unchanged = chosen.without_changed(self.ledger.catalog)
                if request.select is Selection.NAMED or not 0 < len(unchanged) < len(chosen):
                    raise
                chosen = unchanged
        if request.effect is ApplyMode.APPLY:
            if len(chosen) > MAX_AT_ONCE:
                self.services.inspector.note(each.path for each in chosen.projects)
            for folder in chosen.unseen:
                with suppress(RootsdError):  # the folder is gone, and stays denied
                    await self.discovery.propose(folder.path)
        return decided

    async def _choose(
        self, request: DecideRequest, actor: Actor, proposed: set[bytes]
    ) -> ProjectSelection:
        """Return the projects of the request, and add the unknown ones to `proposed`.

        They also get into the catalog if the request is going to approve them.
        """
        chosen = await self.selector.choose(request)
        await self._refuse_at_work(request, chosen)
        if request.effect is ApplyMode.DRY_RUN or request.verb is DecisionVerb.FORGET:
            return chosen
        proposed.update(folder.path for folder in chosen.unseen)
        if request.verb is DecisionVerb.APPROVE and chosen.unseen:
            await self._refuse_before_proposing(request, actor, chosen)
            for folder in chosen.unseen:
                await self.discovery.propose(folder.path)
            return chosen.as_known(self.ledger.catalog)
        return chosen

    async def _look_into(self, request: DecideRequest, chosen: ProjectSelection) -> None:
        """Read the files on which the order is based, unless they are those of many projects."""
        if request.effect is ApplyMode.APPLY and len(chosen) <= MAX_AT_ONCE:
            await self.services.inspector.look(chosen.projects)

    async def _refuse_before_proposing(
        self, request: DecideRequest, actor: Actor, chosen: ProjectSelection
    ) -> None:
        """Raise what the approval would raise while its folders are still unknown.

        An approval that is refused then leaves no trace.
        """
        planned = replace(request, effect=ApplyMode.DRY_RUN)
        would = await self._decide(planned, actor, chosen, ())
        check_incomplete(request, chosen)
        refuse_unshown(would.get("confirmation"), request.confirmed)

    async def _refuse_at_work(self, request: DecideRequest, chosen: ProjectSelection) -> None:
        """Raise NotPresent if an approval names an incomplete project that a program works on."""
        if request.verb is not DecisionVerb.APPROVE:
            return
        for project in chosen.projects:
            is_incomplete = project.observed.incomplete is not None
            if is_incomplete and await self.discovery.is_at_work(_seen(project)):
                shown = safe_label(project.path, limit=None)
                raise NotPresent(
                    f"{shown} is incomplete, and a program still works on it",
                    "rootsd scan, when that has ended",
                )

    def guarded_command(self, request: DecideRequest) -> GuardedCommand:
        """Return the command to guard, with a preview."""
        return GuardedCommand(_command_text(request), partial(self._preview, request))

    async def _preview(self, request: DecideRequest) -> Sequence[str]:
        """Return a line for each path that the request would decide about.

        Raises RootsdError if the request would be refused.
        """
        try:
            preview = await self.carry_out(
                replace(request, effect=ApplyMode.DRY_RUN), DRY_RUN_ACTOR
            )
        except UnknownProject:
            # The folder is unknown, or nothing was found. The command itself reports that.
            paths = [safe_label(f"{ref} (in {request.cwd})", limit=None) for ref in request.refs]
        else:
            items = [*preview["items"], *preview["unchanged"]]
            paths = [
                safe_label(item["path"] or item["uri"] or item["name"], limit=None)
                for item in items
            ]
            paths += [f"rule {rule['number']}" for rule in preview.get("rules", ())]
            trees = (
                tree for tree in preview.get("worktrees", ()) if tree["id"] in request.worktrees
            )
            paths += [safe_label(tree["path"] or tree["name"], limit=None) for tree in trees]
            included = (git for git in preview.get("shared_git", ()) if git["included"])
            paths += [
                f"the use of {safe_label(git['git_directory'] or git['name'], limit=None)}"
                for git in included
            ]
        return shorten_preview(f"{request.verb.value} {path}" for path in paths)

    async def _decide(
        self,
        request: DecideRequest,
        actor: Actor,
        chosen: ProjectSelection,
        proposed: Container[bytes],
    ) -> DecideResult:
        """Decide about the `chosen` projects. The request itself has added those in `proposed`.

        Raises Conflict if another request decided about one of them in the meantime, and
        OrderRefused if one of them has changed on the disk.
        """
        _check_new_name(request, chosen)
        approves = request.verb is DecisionVerb.APPROVE
        origins = await self._look_and_read(request, chosen) if approves else {}
        found = await self._found_below(request, chosen)
        sessions = await self.services.requests.answered(request, chosen.projects)
        before = self.ledger.catalog
        facts = DecisionFacts(actor, self.ledger.expiries, origins, sessions, proposed)
        orders = orders_of(request, chosen, chosen.catalog if chosen.unseen else before, facts)
        inputs = [*rule_orders(chosen, actor), *chosen.unseen, *orders.fresh]
        made, confirmation = await self.carried_out(
            request.effect,
            inputs,
            confirmed=request.confirmed,
            found=found,
            seen=chosen.projects,
        )
        if request.effect is ApplyMode.APPLY:
            await note_taken_off(self.ledger, made, actor)
        answer = self._decided(chosen, made.catalog, {order.path for order in orders.fresh})
        if approves:
            self._add_publication_facts(chosen, before, made.catalog, answer)
            _add_notes_on_chosen(chosen, orders.renewed, answer)
        if confirmation is not None:
            answer["confirmation"] = confirmation
        if request.effect is ApplyMode.APPLY and self.ledger.unsaved:
            answer["warnings"].append(
                "the disk refuses to keep this: it holds until the daemon ends"
            )
        return answer

    async def _look_and_read(
        self, request: DecideRequest, chosen: ProjectSelection
    ) -> Mapping[bytes, str]:
        """Look into the projects of an approval, update their worktrees, and return their origins.

        The look takes 2 ms in another process, so the rest is done beside it. Raises RootsdError.
        """
        refusals: list[RootsdError] = []  # raised below, because the task group would wrap them
        origins: Mapping[bytes, str] = {}

        async def look() -> None:
            try:
                await self._look_into(request, chosen)
            except RootsdError as error:
                refusals.append(error)

        async with anyio.create_task_group() as group:
            group.start_soon(look)
            try:
                await self.discovery.refresh_worktrees([each.path for each in chosen.projects])
                if request.effect is ApplyMode.APPLY:
                    origins = await self.services.reader.origins(chosen.projects)
            except RootsdError as error:
                refusals.append(error)
        for refusal in refusals:
            raise refusal
        return origins

    async def _found_below(self, request: DecideRequest, chosen: ProjectSelection) -> FoundBelow:
        """Return what an approval would show clients that the catalog does not have."""
        if request.verb is not DecisionVerb.APPROVE:
            return NOTHING_FOUND
        return await self.services.gate.found_below(self.ledger.catalog, chosen.projects)

    def _add_publication_facts(
        self, chosen: ProjectSelection, before: Catalog, after: Catalog, answer: DecideResult
    ) -> None:
        """Add worktrees, Git directories, and published paths to `answer`."""
        trees = worktree_items(after, (project.path for project in chosen.projects))
        answer["worktrees"] = [tree for tree in trees if after.ids[tree["id"]] not in before.roots]
        fresh = {item["id"] for item in answer["items"]}
        answer["shared_git"] = [
            git
            for project in chosen.projects
            if project.id in fresh and (git := _shared_git_of(after, project.path)) is not None
        ]
        answer["published"] = [
            text_of(path) for path in sorted(after.roots.keys() - before.roots.keys())
        ]

    def _decided(
        self, chosen: ProjectSelection, after: Catalog, changed: set[bytes]
    ) -> DecideResult:
        parents = self.discovery.parents()
        known = [after.projects[p.path] for p in chosen.projects if p.path in after.projects]
        dropped = [p for p in chosen.projects if p.path not in after.projects]
        gone = [p for p in dropped if p.observed.presence is Presence.MISSING]
        unlisted = [p for p in dropped if p.observed.presence is not Presence.MISSING]
        withheld = [
            f"{safe_label(after.name_of(p))} is withheld: it holds a denied project"
            for p in after.containing(changed)
            if after.judgments[p.path].reason is VerdictReason.HOLDS_DENIED
        ]
        decided = DecideResult(
            revision=self.ledger.revision,
            items=[
                *self.items(after, (p for p in known if p.path in changed)),
                *dropped_project_items(chosen.catalog, gone, parents),
                *unlisted_project_items(chosen.catalog, unlisted, parents),
            ],
            unchanged=self.items(after, (p for p in known if p.path not in changed)),
            warnings=[*chosen.warnings, *withheld, *map(_how_to_list_again, _undecided(unlisted))],
        )
        if chosen.rules:
            numbers = {rule.number for rule in chosen.rules}
            rules = (rule for rule in after.rules if rule.number in numbers)
            decided["rules"] = [rule_item(rule, after) for rule in rules]
        return decided


def _undecided(projects: Iterable[Project]) -> Iterable[Project]:
    """Return those that nobody decided about: the history has no decision that undo could take."""
    return (project for project in projects if project.ruling == UNDECIDED)


def _how_to_list_again(project: Project) -> str:
    shown = safe_label(project.path, limit=None)
    return f"undo does not list {shown} again, because it was undecided; rootsd add does"


def _command_text(request: DecideRequest) -> str:
    what = request.refs if request.select is Selection.NAMED else (f"--{request.select.value}",)
    under = () if request.under is None else ("--under", request.under)
    words = " ".join((request.verb.value, *what, *under))
    return safe_label(words, COMMAND_TEXT_LIMIT)


def _check_request(request: DecideRequest, catalog: Catalog) -> None:
    """Raise BadRequest for an invalid duration, name, or tag. The name is checked again later."""
    if request.lasts is not None and not 0 < request.lasts <= MAX_APPROVAL_S:
        raise BadRequest("an approval lasts from a second to ten years")
    if request.name is not None:
        check_label(request.name)
    for tag in request.tags:
        check_tag(tag, catalog)


def _check_new_name(request: DecideRequest, chosen: ProjectSelection) -> None:
    """Raise NameTaken or BadRequest if the projects cannot get the name of the request."""
    if request.name is None:
        return
    if len(chosen.projects) != 1:
        raise NameTaken("--as names one project, but several match", "rootsd ls")
    check_name(request.name, chosen.projects[0].path, chosen.catalog)


def _add_notes_on_chosen(
    chosen: ProjectSelection, renewed: Container[bytes], answer: DecideResult
) -> None:
    """Add the projects that were approved before, and those that are incomplete."""
    if again := [p.id for p in chosen.projects if p.path in renewed]:
        answer["renewed"] = again
    if incomplete := _incomplete_items(chosen):
        answer["incomplete"] = incomplete


def _seen(project: Project) -> ProjectObserved:
    seen = project.observed
    return ProjectObserved(
        project.path, seen.kind, seen.identity, seen.incomplete, seen.main_checkout, seen.named
    )


def _incomplete_items(chosen: ProjectSelection) -> list[IncompleteItem]:
    """Return the incomplete projects of an approval, with what they lack."""
    return [
        IncompleteItem(
            id=project.id,
            name=chosen.catalog.name_of(project),
            reason=reason.value,
            lacks=reason.lacks,
        )
        for project in chosen.projects
        if (reason := project.observed.incomplete) is not None
    ]


def _shared_git_of(catalog: Catalog, path: bytes) -> SharedGitItem | None:
    """Return the Git directory of an undecided checkout that the approved project at `path` uses.

    Return None for an approval by a rule or for one session. A session that requests a folder does
    not request a Git directory elsewhere.
    """
    project = catalog.projects.get(path)
    decision = project.ruling.decision if project is not None else None
    if (
        project is None
        or decision is None
        or decision.verdict is not Verdict.APPROVED
        or decision.session is not None
    ):
        return None
    git = shared_git(catalog, project)
    if git is None or git.access not in (GitAccess.CHECKOUT_PENDING, GitAccess.INCLUDED):
        return None
    return shared_git_item(catalog, project)
