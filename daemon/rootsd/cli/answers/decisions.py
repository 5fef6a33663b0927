"""Send a command that changes projects, and print its effect."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from rootsd.cli.answers.affected import WHOLE, affected_lines
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.text.phrases import shorten_home
from rootsd.cli.text.projects import (
    NAME,
    NOTE,
    PATH,
    PROJECT_COLUMNS,
    VERDICT,
    coverage_of,
    describe_shared_git,
    how_to_include,
    path_of,
    rule_words,
)
from rootsd.cli.text.render import Column, CommandResult
from rootsd.core.labels import safe_label
from rootsd.wire.decisions import (
    DecideRequest,
    DecideResult,
    DecisionVerb,
    RenameRequest,
    TagRequest,
)
from rootsd.wire.projects import Selection
from rootsd.wire.request import ApplyMode

ProjectOrder = DecideRequest | RenameRequest | TagRequest

DRY_RUN_NOTICE = "Dry run: nothing was changed."

# These rows read as sentences, so that they have no titles.
DECISION_COLUMNS = tuple(replace(column, title="") for column in (VERDICT, NAME, PATH))
_NAMING_COLUMNS = tuple(replace(column, title="") for column in (NAME, PATH, NOTE))
# Keys that not every response has.
_OPTIONAL_KEYS = (
    "rules",
    "worktrees",
    "shared_git",
    "published",
    "confirmation",
    "renewed",
    "incomplete",
)
_ALREADY = {
    DecisionVerb.APPROVE: "already approved",
    DecisionVerb.DENY: "already denied",
    DecisionVerb.FORGET: "already undecided",
    DecisionVerb.ACCEPT: "nothing has changed",
}


class OrderOutput(DecideResult):
    """The effect of an order about projects. A key that would be empty may be left out."""

    dry_run: bool
    """Whether nothing was changed, because of `--dry-run`."""


def effect_of(*, dry_run: bool) -> ApplyMode:
    """Return the mode that `--dry-run` selects."""
    return ApplyMode.DRY_RUN if dry_run else ApplyMode.APPLY


def send_and_print(invocation: Invocation, order: ProjectOrder) -> None:
    """Send the order, and print the projects as they are now. Raises RootsdError."""
    print_result(invocation, order, invocation.call(order))


def print_result(invocation: Invocation, order: ProjectOrder, decided: Mapping[str, Any]) -> None:
    """Print the effect of an order, or with a dry run, the effect it would have."""
    output = invocation.output
    is_dry_run = order.effect is ApplyMode.DRY_RUN
    rules = decided.get("rules", [])
    extra = {"unchanged": decided["unchanged"], "dry_run": is_dry_run}
    extra |= {key: decided[key] for key in _OPTIONAL_KEYS if decided.get(key)}
    answer = CommandResult.of(decided, **extra)
    output.show(answer, _columns(order) if output.on_terminal else PROJECT_COLUMNS)
    for name in _renewed(decided):
        output.message(f"{name}: approved again, for the running sessions")
    for item in decided["unchanged"]:
        output.message(f"{safe_label(item['name'])}: {_already_message(order)}")
        for remedy in _removal_hints(invocation, order, item):
            output.message(f"  {remedy}")
    for item in (*decided["items"], *decided["unchanged"]):
        if (for_session := item.get("session")) is not None and item["verdict"] == "approved":
            name, access = safe_label(item["name"]), item["access"].replace("read-", "read and ")
            grant = f"{name}: {access} access, only for the session of {safe_label(for_session)}."
            output.message(f"{grant} To grant more: rootsd approve {name} --always --write")
    for rule in rules:
        covers = coverage_of(rule)
        output.message(f"Rule {rule['number']} approves again: {rule_words(rule)}. {covers}")
    for line in _others_published(decided):
        output.message(line)
    if not decided["items"] and not decided["unchanged"] and not rules:
        output.message("Done. Projects that are gone from the disk are no longer listed.")
    print_affected(invocation, decided)
    if is_dry_run:
        output.message(DRY_RUN_NOTICE)


def print_affected(invocation: Invocation, answer: Mapping[str, Any]) -> None:
    """Print every project that the order of a dry run would decide about, if there are several."""
    if (confirmation := answer.get("confirmation")) is not None:
        for line in affected_lines(confirmation, WHOLE):
            invocation.output.message(line)


def _renewed(decided: Mapping[str, Any]) -> Iterator[str]:
    """Yield the label of each root that was approved before and is approved again."""
    ids = decided.get("renewed", ())
    return (safe_label(item["name"]) for item in decided["items"] if item["id"] in ids)


def also_published(decided: Mapping[str, Any]) -> list[str]:
    """Return the paths of folders that clients now see although the order did not name them."""
    named = {path_of(item) for item in (*decided["items"], *decided["unchanged"])}
    return [path for path in decided.get("published", ()) if path not in named]


def _others_published(decided: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each folder that clients now see although the order did not name it, and
    one for each worktree that stays pending."""
    for path in also_published(decided):
        yield f"Clients see this folder, too: {shorten_home(path)}"
    older: dict[str, list[str]] = {}
    for tree in decided.get("worktrees", ()):
        where = shorten_home(path_of(tree))
        if tree["confirmable"]:
            older.setdefault(tree["main"], []).append(where)
        elif not tree["published"]:
            yield f"Worktree {where} stays pending: {tree['reason']}"
    for main, places in older.items():
        for where in places:
            yield f"Worktree {where} stays pending: it is older than the approval"
        yield f"To publish {'it' if len(places) == 1 else 'them'}, too: {_how_to_publish(main)}"
    for git in decided.get("shared_git", ()):
        yield describe_shared_git(git)
        if git["confirmable"]:
            yield f"The approval does not include it. To include it: {how_to_include(git)}"


def _how_to_publish(main: str) -> str:
    return f"rootsd approve {shlex.quote(main)} --worktrees"


def _removal_hints(
    invocation: Invocation, order: ProjectOrder, item: Mapping[str, Any]
) -> Iterator[str]:
    """Yield the commands that stop proposals of `item`, if `order` forgets projects by name.

    A denial also covers everything below a folder. So it is a hint only if it denies this one.
    """
    if not isinstance(order, DecideRequest) or order.verb is not DecisionVerb.FORGET:
        return
    if order.select is not Selection.NAMED:
        return
    denial = DecideRequest(
        DecisionVerb.DENY, cwd="/", refs=(item["id"],), effect=ApplyMode.DRY_RUN
    )
    if "confirmation" not in invocation.call(denial):
        yield f"to stop proposing it: rootsd deny {item['id']}"
    if item.get("parent"):
        yield "to exclude folders of a parent by name: rootsd parent set --help"


def _columns(order: ProjectOrder) -> tuple[Column, ...]:
    return DECISION_COLUMNS if isinstance(order, DecideRequest) else _NAMING_COLUMNS


def _already_message(order: ProjectOrder) -> str:
    match order:
        case DecideRequest(verb=verb):
            return _ALREADY[verb]
        case RenameRequest():
            return "already has this name"
        case TagRequest():
            return "already has these tags"
