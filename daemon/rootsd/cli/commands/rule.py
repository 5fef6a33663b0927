"""`rootsd rule`: standing orders for paths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from rootsd.cli import completing
from rootsd.cli.columns import PROJECT_COLUMNS, age, extent_of, home_short, pattern_of
from rootsd.cli.decisions import UNCHANGED, effect_of
from rootsd.cli.flags import Command, Group, pass_session
from rootsd.cli.layout import Fit
from rootsd.cli.render import Answer, Column
from rootsd.cli.session import Session
from rootsd.core.labels import exact_path, safe_label
from rootsd.core.model import Verdict
from rootsd.wire.deciding import Effect
from rootsd.wire.rules import RuleAddition, RuleRemoval, RulesQuery

_VERBS = {"approve": Verdict.APPROVED, "deny": Verdict.DENIED}
_LAPSED = "lapsed"
_STYLES = {"approve": "green", "deny": "red", _LAPSED: "yellow"}
_WORDS = {verdict.value: word for word, verdict in _VERBS.items()}


_COLUMNS = (
    Column("RULE", lambda rule: str(rule["number"])),
    Column("SAYS", lambda rule: _WORDS.get(rule["verdict"], _LAPSED), style=_STYLES),
    Column(
        "PATTERN",
        pattern_of,
        short=lambda rule: home_short(pattern_of(rule)),
        fit=Fit.PATH,
        exact=exact_path,
    ),
    Column("COVERS", lambda rule: str(rule["covers"])),
    Column("ADDED", lambda rule: rule["added_at"], short=lambda rule: age(rule["added_at"])),
)


@click.group(
    "rule",
    cls=Group,
    invoke_without_command=True,
    epilog="rootsd rule\nrootsd rule add approve '~/src/acme/**'\nrootsd rule rm 1",
)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Standing orders for what lies, or comes to lie, below a path; alone, this lists them.

    A clone below an approve rule is published at once, one below a deny rule is never proposed. A
    deny rule outweighs every approval; your own denial of a folder outweighs an approve rule.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_)


@command.command("ls", cls=Command, epilog="rootsd rule ls --json")
@pass_session
def list_(session: Session) -> None:
    """List the rules, with how many known projects each covers."""
    listing = session.call(RulesQuery())
    output = session.output
    output.show(Answer(listing["items"], listing["revision"], listing["warnings"]), _COLUMNS)
    if output.on_terminal and not listing["items"]:
        output.say("There is no rule: rootsd rule add approve '~/src/acme/**'")
    if any(rule["verdict"] == Verdict.PENDING for rule in listing["items"]):
        output.say("What lapsed approves again after: rootsd approve --lapsed --all")


@command.command(
    "add",
    cls=Command,
    epilog=("rootsd rule add approve '~/src/acme/**'\nrootsd rule add deny '~/src/*/scratch-*'"),
)
@click.argument("verb", type=click.Choice(list(_VERBS)))
@click.argument("glob", shell_complete=completing.folders)
@click.option("--dry-run", is_flag=True, help="only show what it would cover")
@pass_session
def add(session: Session, *, verb: str, glob: str, dry_run: bool) -> None:
    """Approve or deny whatever GLOB matches, from now on; prints what it covers now.

    Quote GLOB. *, ? and [...] stay within one component of the path, ** stands for any number of
    them. What is matched is covered with all that is below it.
    """
    effect = effect_of(dry_run=dry_run)
    ruled = session.call(RuleAddition(_VERBS[verb], glob, session.cwd, effect))
    number = ruled["rule"]["number"]
    would = "would say" if dry_run else "says"
    done = would if ruled["is_new"] else "said already"
    _show(session, ruled, effect)
    pattern = safe_label(pattern_of(ruled["rule"]), limit=None)
    session.output.say(f"Rule {number} {done}: {verb} {pattern}. {extent_of(ruled['rule'])}")
    if dry_run:
        session.output.say(UNCHANGED)


@command.command("rm", cls=Command, epilog="rootsd rule\nrootsd rule rm 1")
@click.argument("number", type=click.IntRange(min=1), shell_complete=completing.rules)
@click.option("--dry-run", is_flag=True, help="only show how its projects would stand then")
@pass_session
def remove(session: Session, *, number: int, dry_run: bool) -> None:
    """Take a rule back; prints the projects that it covered, as they are now.

    What it alone had approved or denied waits for your decision again.
    """
    effect = effect_of(dry_run=dry_run)
    ruled = session.call(RuleRemoval(number, effect))
    _show(session, ruled, effect)
    pattern = safe_label(pattern_of(ruled["rule"]), limit=None)
    verb = _WORDS.get(ruled["rule"]["verdict"], "approve")  # as it said before it lapsed
    gone = "would be gone" if dry_run else "is gone"
    session.output.say(f"Rule {number} {gone}: {verb} {pattern}.")
    if dry_run:
        session.output.say(UNCHANGED)


def _show(session: Session, ruled: Mapping[str, Any], effect: Effect) -> None:
    extra = {
        "rule": ruled["rule"],
        "is_new": ruled["is_new"],
        "dry_run": effect is Effect.DRY_RUN,
    }
    answer = Answer(ruled["items"], ruled["revision"], ruled["warnings"], extra)
    session.output.show(answer, PROJECT_COLUMNS)
