"""What `approve`, `deny` and `forget` have in common: an order is sent, its effect is told."""

from __future__ import annotations

from dataclasses import replace

from rootsd.cli.columns import NAME, PATH, PROJECT_COLUMNS, VERDICT
from rootsd.cli.render import Answer
from rootsd.cli.session import Session
from rootsd.core.labels import safe_label
from rootsd.wire.deciding import Decide, DecisionVerb, Effect

# A sentence each, not a table: no titles.
_TOLD = tuple(replace(column, title="") for column in (VERDICT, NAME, PATH))
_SO_ALREADY = {
    DecisionVerb.APPROVE: "approved already",
    DecisionVerb.DENY: "denied already",
    DecisionVerb.FORGET: "undecided already",
}


def decide(session: Session, order: Decide) -> None:
    """Send the order and print the projects as they are now."""
    decided = session.call(order)
    output = session.output
    is_rehearsal = order.effect is Effect.DRY_RUN
    extra = {"unchanged": decided["unchanged"], "dry_run": is_rehearsal}
    answer = Answer(decided["items"], decided["revision"], decided["warnings"], extra)
    output.show(answer, _TOLD if output.on_terminal else PROJECT_COLUMNS)
    for item in decided["unchanged"]:
        output.say(f"{safe_label(item['name'])}: {_SO_ALREADY[order.verb]}")
    if not decided["items"] and not decided["unchanged"]:
        output.say("Done; what is gone from the disk is no longer listed.")
    if is_rehearsal:
        output.say("This would be so; nothing was changed.")
