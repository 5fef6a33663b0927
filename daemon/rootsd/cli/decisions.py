"""What all orders on projects have in common: one is sent, and its effect is told."""

from __future__ import annotations

from dataclasses import replace

from rootsd.cli.columns import NAME, NOTE, PATH, PROJECT_COLUMNS, VERDICT, extent_of, pattern_of
from rootsd.cli.render import Answer, Column
from rootsd.cli.session import Session
from rootsd.core.labels import safe_label
from rootsd.wire.deciding import Decide, DecisionVerb, Effect
from rootsd.wire.naming import Renaming, Tagging

ProjectOrder = Decide | Renaming | Tagging

UNCHANGED = "This would be so; nothing was changed."

# A sentence each, not a table: no titles.
_TOLD = tuple(replace(column, title="") for column in (VERDICT, NAME, PATH))
_TOLD_NAMED = tuple(replace(column, title="") for column in (NAME, PATH, NOTE))
_SO_ALREADY = {
    DecisionVerb.APPROVE: "approved already",
    DecisionVerb.DENY: "denied already",
    DecisionVerb.FORGET: "undecided already",
}


def effect_of(*, dry_run: bool) -> Effect:
    """What `--dry-run` says."""
    return Effect.DRY_RUN if dry_run else Effect.APPLY


def decide(session: Session, order: ProjectOrder) -> None:
    """Send the order and print the projects as they are now."""
    decided = session.call(order)
    output = session.output
    is_rehearsal = order.effect is Effect.DRY_RUN
    rules = decided.get("rules", [])
    extra = {"unchanged": decided["unchanged"], "dry_run": is_rehearsal}
    if rules:
        extra["rules"] = rules
    answer = Answer(decided["items"], decided["revision"], decided["warnings"], extra)
    output.show(answer, _columns(order) if output.on_terminal else PROJECT_COLUMNS)
    for item in decided["unchanged"]:
        output.say(f"{safe_label(item['name'])}: {_so_already(order)}")
    for rule in rules:
        pattern = safe_label(pattern_of(rule), limit=None)
        output.say(f"Rule {rule['number']} approves again: {pattern}. {extent_of(rule)}")
    if not decided["items"] and not decided["unchanged"] and not rules:
        output.say("Done; what is gone from the disk is no longer listed.")
    if is_rehearsal:
        output.say(UNCHANGED)


def _columns(order: ProjectOrder) -> tuple[Column, ...]:
    return _TOLD if isinstance(order, Decide) else _TOLD_NAMED


def _so_already(order: ProjectOrder) -> str:
    match order:
        case Decide(verb=verb):
            return _SO_ALREADY[verb]
        case Renaming():
            return "called so already"
        case Tagging():
            return "tagged so already"
