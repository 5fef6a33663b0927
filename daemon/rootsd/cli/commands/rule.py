"""`rootsd rule`: approve or deny everything below a path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from rootsd.cli.answers.decisions import DRY_RUN_NOTICE, effect_of, print_affected
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.answers.terminal_face import KeyPolicy, TerminalFace, declined
from rootsd.cli.options import completion
from rootsd.cli.options.flags import VerbGroup, pass_invocation, yes_option
from rootsd.cli.text.layout import ColumnFit
from rootsd.cli.text.phrases import age
from rootsd.cli.text.projects import (
    PROJECT_COLUMNS,
    conditions_of,
    coverage_of,
    pattern_of,
    rule_words,
)
from rootsd.cli.text.render import Column, CommandResult, path_column
from rootsd.cli.text.theme import Tone
from rootsd.core.errors import Exit
from rootsd.core.risks import RiskLimit
from rootsd.core.verdict import Verdict
from rootsd.wire.decisions import (
    AddRuleRequest,
    RemoveRuleRequest,
    RuleListing,
    RuleResult,
    RulesQuery,
)
from rootsd.wire.request import ApplyMode

SECTION = "Decide"

_VERBS = {"approve": Verdict.APPROVED, "deny": Verdict.DENIED}
_LAPSED = "lapsed"
_POLICY = "policy"
_TONES = {"approve": Tone.GOOD, "deny": Tone.BAD, _LAPSED: Tone.ATTENTION}
_WORDS = {verdict.value: word for word, verdict in _VERBS.items()}


def _added(rule: Mapping[str, Any]) -> str:
    """Return the age of a rule, or where a rule of the policy is written."""
    return rule["source"] or age(rule["added_at"])


_COLUMNS = (
    Column("RULE", lambda rule: str(rule["number"] or _POLICY)),
    Column("SAYS", lambda rule: _WORDS.get(rule["verdict"], _LAPSED), tones=_TONES),
    path_column("PATTERN", pattern_of),
    Column("COVERS", lambda rule: str(rule["covers"])),
    Column("ADDED", lambda rule: rule["source"] or rule["added_at"], short=_added),
    Column("ONLY", conditions_of, fit=ColumnFit.NOTE),
)


class RuleOutput(RuleResult):
    """The rule."""

    dry_run: bool
    """Whether nothing was changed, because of `--dry-run`."""


@click.group(
    "rule",
    cls=VerbGroup,
    invoke_without_command=True,
    epilog="rootsd rule\nrootsd rule add approve '~/src/acme/**'\nrootsd rule rm 1",
)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Approve or deny everything below a path, now and later.

    Without a subcommand, list the rules.

    A new clone below an approve rule is published at once. A new clone below a deny rule is never
    proposed. A deny rule overrides every approval, and your denial of a folder overrides an
    approve rule.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_)


@command.command("ls", prints=(RuleListing,), epilog="rootsd rule ls --json")
@pass_invocation
def list_(invocation: Invocation) -> None:
    """List the rules, with the number of known projects that each covers.

    The rules of the machine's policy come last. Nobody but root can change them.
    """
    listing = invocation.call(RulesQuery())
    output = invocation.output
    policy = listing["policy"]
    rows = listing["items"] if output.is_json else [*listing["items"], *policy]
    output.show(CommandResult.of(listing, rows, policy=policy), _COLUMNS)
    if output.on_terminal and not rows:
        output.message("No rules yet. Try: rootsd rule add approve '~/src/acme/**'")
    if any(rule["verdict"] == Verdict.PENDING for rule in listing["items"]):
        output.message("To renew the lapsed rules: rootsd approve --lapsed --all")


@command.command(
    "add",
    prints=(RuleOutput,),
    epilog=(
        "rootsd rule add approve '~/src/acme/**'\nrootsd rule add deny '~/src/*/scratch-*'\n"
        "rootsd rule add approve --origin 'github.com/acme/*' --below ~/work --risk none"
    ),
)
@click.argument("verb", type=click.Choice(list(_VERBS)))
@click.argument("glob", required=False, default="", shell_complete=completion.folders)
@click.option(
    "--below", metavar="FOLDER", default="", help="everything below FOLDER, instead of GLOB",
    shell_complete=completion.folders,
)  # fmt: skip
@click.option(
    "--origin", metavar="PATTERN", help="only projects that claim this origin: github.com/acme/*"
)
@click.option(
    "--risk",
    type=click.Choice([each.value for each in RiskLimit]),
    help="only projects without risks: none",
)
@yes_option
@click.option("--dry-run", is_flag=True, help="only show what it would cover")
@pass_invocation
def add(  # noqa: PLR0913 - one parameter for each option
    invocation: Invocation,
    *,
    verb: str,
    glob: str,
    below: str,
    origin: str | None,
    risk: str | None,
    yes: bool,
    dry_run: bool,
) -> int:
    """Approve or deny everything that GLOB matches, and print the projects that it covers now.

    Quote GLOB. *, ?, and [...] match within one component of a path; ** matches any number of
    components. A rule also covers everything below a match.

    --origin and --risk narrow an approve rule. rootsd reads the origin in .git/config, and a clone
    can claim any origin, so --origin needs a folder, too. A project that claims another origin
    later, or gets a risk, is pending again.

    If the rule changes more than one project now, add lists them and asks for a key. Without a
    terminal, it needs --yes.
    """
    if not (glob or below or origin):
        raise click.UsageError("GLOB is missing")
    effect = effect_of(dry_run=dry_run)
    order = AddRuleRequest(
        _VERBS[verb],
        glob,
        invocation.cwd,
        effect,
        below=below,
        origin=origin,
        risk=None if risk is None else RiskLimit(risk),
    )
    decided = TerminalFace(invocation, key=KeyPolicy.for_flag(yes=yes)).decide(order)
    if decided is None:
        return declined(invocation, order)
    ruled = decided.answer
    number = ruled["rule"]["number"]
    new = "would be added" if dry_run else "added"
    done = new if ruled["is_new"] else "exists already"
    _show(invocation, ruled, effect)
    invocation.output.message(
        f"Rule {number} {done}: {verb} {rule_words(ruled['rule'])}. {coverage_of(ruled['rule'])}"
    )
    if dry_run:
        invocation.output.message(DRY_RUN_NOTICE)
    return Exit.OK


@command.command("rm", prints=(RuleOutput,), epilog="rootsd rule\nrootsd rule rm 1")
@click.argument("number", type=click.IntRange(min=1), shell_complete=completion.rules)
@yes_option
@click.option("--dry-run", is_flag=True, help="only show the effect on its projects")
@pass_invocation
def remove(invocation: Invocation, *, number: int, yes: bool, dry_run: bool) -> int:
    """Remove a rule, and print the projects that it covered, as they are now.

    Projects that only this rule had approved or denied are pending again. If there is more than
    one, rm lists them and asks for a key. Without a terminal, it needs --yes.
    """
    effect = effect_of(dry_run=dry_run)
    order = RemoveRuleRequest(number, effect)
    decided = TerminalFace(invocation, key=KeyPolicy.for_flag(yes=yes)).decide(order)
    if decided is None:
        return declined(invocation, order)
    ruled = decided.answer
    _show(invocation, ruled, effect)
    verb = _WORDS.get(ruled["rule"]["verdict"], "approve")  # only an approve rule can lapse
    gone = "would be removed" if dry_run else "removed"
    invocation.output.message(f"Rule {number} {gone}: {verb} {rule_words(ruled['rule'])}.")
    if dry_run:
        invocation.output.message(DRY_RUN_NOTICE)
    return Exit.OK


def _show(invocation: Invocation, ruled: Mapping[str, Any], effect: ApplyMode) -> None:
    extra = {
        "rule": ruled["rule"],
        "is_new": ruled["is_new"],
        "dry_run": effect is ApplyMode.DRY_RUN,
    }
    if "confirmation" in ruled:
        extra["confirmation"] = ruled["confirmation"]
    invocation.output.show(CommandResult.of(ruled, **extra), PROJECT_COLUMNS)
    print_affected(invocation, ruled)
