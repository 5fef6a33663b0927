"""Handle rule requests: list, add, and remove rules, and report what each rule covers."""

from __future__ import annotations

import os
import shlex
from base64 import b64encode
from collections.abc import Iterable, Sequence
from typing import Any

from anyio import to_thread

from rootsd.control.routes import Route, plain_route, query_route
from rootsd.control.services import ControlServices, Handlers
from rootsd.core.affected import NOTHING_FOUND, FoundBelow
from rootsd.core.catalog import Catalog
from rootsd.core.decide import policy_refusal
from rootsd.core.errors import RefusedPlace, UnknownRule
from rootsd.core.inputs import AddRule, ApproveRule, RemoveRule
from rootsd.core.labels import safe_label
from rootsd.core.model import Actor, Presence, Project, Rule, Verdict
from rootsd.core.origins import normalize_origin
from rootsd.core.paths import bytes_of, contains, is_utf8, text_of
from rootsd.core.rules import (
    escape_pattern,
    matches,
    normalize_pattern,
    split_pattern,
    why_uncovered,
)
from rootsd.core.timestamps import rfc3339
from rootsd.wire.decisions import (
    AddRuleRequest,
    ConfirmationItem,
    RemoveRuleRequest,
    RuleListing,
    RuleResult,
    RulesQuery,
)
from rootsd.wire.projects import RuleItem
from rootsd.wire.request import BadRequest


def routes(services: ControlServices) -> Iterable[Route[Any]]:
    """Return the routes of this module."""
    handlers = RuleHandlers(services)
    return (
        query_route(RulesQuery, handlers.listing),
        plain_route(AddRuleRequest, handlers.add, _add_command),
        plain_route(RemoveRuleRequest, handlers.remove, lambda r: f"rule rm {r.number}"),
    )


class RuleHandlers(Handlers):
    """Handles requests about rules."""

    async def listing(self, _: RulesQuery) -> RuleListing:
        """Return all rules."""
        catalog = self.ledger.catalog
        items = [rule_item(rule, catalog) for rule in catalog.rules]
        policy = policy_rule_items(catalog)
        return RuleListing(revision=self.ledger.revision, items=items, policy=policy, warnings=[])

    async def add(self, request: AddRuleRequest, actor: Actor) -> RuleResult:
        """Add a rule, unless it exists. A lapsed approve rule approves again.

        Raises BadRequest for an invalid pattern, RefusedPlace for one that would approve the whole
        home folder, and what the store raises.
        """
        if request.verdict is Verdict.PENDING:
            raise BadRequest("a rule approves or denies", "rootsd rule add --help")
        origin = _origin_of(request)
        pattern = await to_thread.run_sync(self._pattern, request)
        if request.verdict is Verdict.APPROVED:
            self._refuse_home_folder(pattern)
        ruling: AddRule | ApproveRule
        ruling = added = AddRule(pattern, request.verdict, actor, origin, request.risk)
        warnings = await self._look_into(added)
        catalog = self.ledger.catalog
        if known := _existing_rule(catalog, added, request.verdict):
            return self._result(known, catalog, catalog)
        lapsed = None
        if request.verdict is Verdict.APPROVED:
            lapsed = _existing_rule(catalog, added, Verdict.PENDING)
        if lapsed is not None:
            ruling = ApproveRule(lapsed.number, actor)
        now, confirmation = await self._carry_out(ruling, request)
        number = now.rules[-1].number if lapsed is None else lapsed.number
        rule = next(rule for rule in now.rules if rule.number == number)
        self.services.inspector.note(each.path for each in _covered(rule, now))
        result = self._result(rule, now, now, confirmation)
        result["is_new"] = True
        result["warnings"] += [*self._unwatched(rule), *warnings]
        return result

    async def _look_into(self, ruling: AddRule) -> list[str]:
        """Look into the projects that a rule with an origin or a risk may cover.

        Return a warning about those that are too many.
        """
        if ruling.origin is None and ruling.risk is None:
            return []
        projects = self.ledger.catalog.projects.values()
        here = (each for each in projects if each.observed.presence is Presence.PRESENT)
        fitting = [each for each in here if matches(ruling.pattern, each.path)]
        late = await self.services.inspector.look(fitting)
        if not late:
            return []
        return [f"projects not read in time: {late}; the rule decides about them later"]

    async def remove(self, request: RemoveRuleRequest, actor: Actor) -> RuleResult:
        """Remove a rule. Raises UnknownRule."""
        before = self.ledger.catalog
        rule = next((rule for rule in before.rules if rule.number == request.number), None)
        if rule is None:
            raise UnknownRule(f"there is no rule {request.number}", "rootsd rule ls")
        after, confirmation = await self._carry_out(RemoveRule(request.number, actor), request)
        return self._result(rule, before, after, confirmation)

    async def _carry_out(
        self,
        ruling: AddRule | ApproveRule | RemoveRule,
        request: AddRuleRequest | RemoveRuleRequest,
    ) -> tuple[Catalog, ConfirmationItem | None]:
        """Return the catalog after the order, and for a dry run what a person has to confirm."""
        found = await self._found_below(ruling)
        made, confirmation = await self.carried_out(
            request.effect, [ruling], confirmed=request.confirmed, found=found
        )
        return made.catalog, confirmation

    async def _found_below(self, ruling: AddRule | ApproveRule | RemoveRule) -> FoundBelow:
        """Return what a rule would show clients that the catalog does not have."""
        catalog = self.ledger.catalog
        match ruling:
            case AddRule(pattern=pattern, verdict=Verdict.APPROVED):
                patterns = {pattern}
            case ApproveRule(number=number):
                patterns = {rule.pattern for rule in catalog.rules if rule.number == number}
            case _:
                return NOTHING_FOUND
        projects = catalog.projects.values()
        approved = (p for p in projects if any(matches(each, p.path) for each in patterns))
        return await self.services.gate.found_below(catalog, approved)

    def _result(
        self,
        rule: Rule,
        matched_in: Catalog,
        now: Catalog,
        confirmation: ConfirmationItem | None = None,
    ) -> RuleResult:
        """Return the answer about a rule that is not new, with the projects that it covers."""
        covered = _covered(rule, matched_in)
        present = [now.projects[p.path] for p in covered if p.path in now.projects]
        result = RuleResult(
            revision=self.ledger.revision,
            rule=_rule_item(rule, covered),
            is_new=False,
            items=self.items(now, present),
            warnings=_policy_warnings(rule, present, now),
        )
        if confirmation is not None:
            result["confirmation"] = confirmation
        return result

    def _unwatched(self, rule: Rule) -> list[str]:
        """Return a warning if no parent has the folders of an approve rule.

        Nobody has seen what is there. A parent that is added later has it published, unasked.
        """
        folder, _ = split_pattern(rule.pattern)
        parents = [parent.path for parent in self.discovery.parents()]
        watched = any(contains(each, folder) or contains(folder, each) for each in parents)
        if watched or rule.verdict is not Verdict.APPROVED:
            return []
        shown = safe_label(folder, limit=None)
        return [
            f"{shown} is in no parent. Once you watch it, this rule publishes what is found there,"
            " without a question"
        ]

    def _refuse_home_folder(self, pattern: bytes) -> None:
        if any(matches(pattern, home) for home in self.ledger.catalog.places.homes):
            shown = safe_label(pattern, limit=None)
            raise RefusedPlace(
                f"{shown} would approve every folder in your home folder, now and later",
                "rootsd rule add approve '~/src/**'",
            )

    def _pattern(self, request: AddRuleRequest) -> bytes:
        """Return the pattern. Resolve the folders before its first wildcard on the disk."""
        typed = request.below or request.pattern
        try:
            if not typed:
                raise ValueError("it is empty")  # noqa: TRY301 - one message for every invalid pattern
            whole = os.path.join(bytes_of(request.cwd), bytes_of(os.path.expanduser(typed)))
            typed_folder, globs = (whole, b"**") if request.below else split_pattern(whole)
            folder = self.services.real_path(text_of(typed_folder), "/")
            return normalize_pattern(b"/".join((escape_pattern(folder), globs)))
        except ValueError as error:
            shown = safe_label(typed, limit=None)
            raise BadRequest(
                f"{shown} is not a valid pattern: {error}", "rootsd rule add --help"
            ) from error


def _add_command(request: AddRuleRequest) -> str:
    word = "approve" if request.verdict is Verdict.APPROVED else "deny"
    origin = None if request.origin is None else normalize_origin(request.origin)
    options = (("--below", request.below), ("--origin", origin), ("--risk", request.risk))
    words = (f" {option} {value}" for option, value in options if value)
    return f"rule add {word} {request.pattern}{''.join(words)}"


def _origin_of(request: AddRuleRequest) -> str | None:
    """Return the normal form of the origin. Raises BadRequest for a rule that cannot be."""
    is_conditional = request.origin is not None or request.risk is not None
    if is_conditional and request.verdict is not Verdict.APPROVED:
        raise BadRequest(
            "only an approve rule takes --origin and --risk", "rootsd rule add --help"
        )
    if request.below and request.pattern:
        raise BadRequest("a rule takes GLOB or --below, not both", "rootsd rule add --help")
    if request.origin is None:
        return None
    if not (request.below or request.pattern):
        shown = shlex.quote(normalize_origin(request.origin) or "github.com/acme/*")
        raise BadRequest(
            "a rule with --origin needs a folder, too, because a clone can claim any origin",
            f"rootsd rule add approve --origin {shown} --below ~/src",
        )
    if (origin := normalize_origin(request.origin)) is None:
        # What was typed may hold a password.
        raise BadRequest(
            "--origin takes a host and a path, such as 'github.com/acme/*', or one address",
            "rootsd rule add --help",
        )
    return origin


def _existing_rule(catalog: Catalog, added: AddRule, verdict: Verdict) -> Rule | None:
    wanted = verdict, added.pattern, added.origin, added.risk
    rules = (r for r in catalog.rules if (r.verdict, r.pattern, r.origin, r.risk) == wanted)
    return next(rules, None)


def _covered(rule: Rule, catalog: Catalog) -> list[Project]:
    covered = (p for p in catalog.projects.values() if why_uncovered(rule, p) is None)
    return sorted(covered, key=lambda p: p.path)


def _policy_warnings(rule: Rule, covered: Iterable[Project], catalog: Catalog) -> list[str]:
    """Return a warning if the policy denies projects that the approve rule covers."""
    if rule.verdict is not Verdict.APPROVED:
        return []
    judgments = (catalog.judgments[project.path] for project in covered)
    denials = [each for each in judgments if each.reason.is_policy_denial]
    if not denials:
        return []
    why = policy_refusal(denials[0], catalog.policy)
    return [f"the rule does not approve {len(denials)} of these projects: {why}"]


def policy_rule_items(catalog: Catalog) -> list[RuleItem]:
    """Return the rules of the machine's policy. Deny rules come first, as they count more."""
    policy, paths = catalog.policy, catalog.projects
    rules = [
        *((Verdict.DENIED, entry) for entry in policy.denied),
        *((Verdict.APPROVED, entry) for entry in policy.approved),
    ]
    return [
        _item(
            verdict,
            entry.pattern,
            sum(1 for path in paths if matches(entry.pattern, path)),
            source=entry.source,
        )
        for verdict, entry in rules
    ]


def rule_item(rule: Rule, catalog: Catalog) -> RuleItem:
    """Return a rule as an item, with the number of projects in `catalog` that it covers."""
    return _rule_item(rule, _covered(rule, catalog))


def _rule_item(rule: Rule, covered: Sequence[Project]) -> RuleItem:
    item = _item(rule.verdict, rule.pattern, len(covered), rule.number, rfc3339(rule.at))
    item["origin"], item["risk"] = rule.origin, rule.risk
    return item


def _item(
    verdict: Verdict,
    pattern: bytes,
    covers: int,
    number: int | None = None,
    added_at: str | None = None,
    source: str | None = None,
) -> RuleItem:
    readable = is_utf8(pattern)
    return RuleItem(
        number=number,
        verdict=verdict.value,
        pattern=text_of(pattern) if readable else None,
        pattern_b64=None if readable else b64encode(pattern).decode(),
        origin=None,
        risk=None,
        covers=covers,
        added_at=added_at,
        source=source,
    )
