"""`rootsd review`: decide about pending projects, one by one."""

from __future__ import annotations

import click

from rootsd.cli.answers.changed_files import (
    ask_before_start,
    review_approved,
    show_changed,
)
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.answers.review import Review
from rootsd.cli.options import completion
from rootsd.cli.options.flags import pass_invocation, verb
from rootsd.cli.text.terminal import Keyboard
from rootsd.core.errors import CallerRefused
from rootsd.link.hidden_process import hide_process
from rootsd.wire.guard import MAX_LOG_WAIT_S
from rootsd.wire.projects import NextPendingQuery

SECTION = "Decide"


@verb(
    "review",
    epilog="rootsd review\nrootsd review --follow\nrootsd review --changed",
)
@click.option("--follow", is_flag=True, help="wait for more projects; ^C ends it")
@click.option(
    "--changed",
    is_flag=True,
    help="show files that tools run, and that changed behind the wall or since you approved",
)
@click.option(
    "--before",
    metavar="AGENT",
    shell_complete=completion.agents,
    help="ask whether to start this agent outside, if --changed has something about this project",
)
@pass_invocation
def command(
    invocation: Invocation, *, follow: bool, changed: bool, before: str | None
) -> int | None:
    """Decide about the pending projects one by one, with the known facts about each.

    Projects that a session requests come first, then those without risks. They are grouped by
    parent and by the owner of their origin. The keys are: y publish, n deny, a publish the rest of
    the group, d deny the rest of the group, A publish all without risks, s skip, r rename, q quit,
    ? details and help. A key about several projects lists them and asks. rootsd undo takes each
    answer back.

    --changed is about files that tools run, such as .mcp.json and hooks. First, it prints a diff
    of what programs behind the wall changed. On a terminal, rootsd status then stops listing that.
    Next, it lists what is new or changed since you approved each project: y accepts that, n denies
    the project, s skips it. Without a daemon, it lists what the last one found, and asks nothing.

    --before only asks. `AGENT --outside` runs it, and starts the agent if the exit status is 0.
    Without a terminal, it prints one line and asks nothing.
    """
    keyboard = Keyboard()
    if before is not None:
        return ask_before_start(invocation, keyboard, before)
    if changed:
        _review_changed(invocation, keyboard)
        return None
    if invocation.flags.no_input or invocation.flags.json or not keyboard.is_there():
        raise CallerRefused("review needs a person on a terminal", "rootsd pending")
    hide_process()
    review = Review(invocation, keyboard)
    try:
        goes_on = True
        while goes_on:
            waiting = invocation.call(NextPendingQuery(tuple(review.seen)))["items"]
            if not waiting and not review.seen:
                invocation.output.message("No project needs a decision.")
            goes_on = review.ask_about(waiting)
            if not follow:
                break
            goes_on = goes_on and _wait(invocation, review)
    except KeyboardInterrupt:
        invocation.output.message("")
        raise
    finally:
        if review.seen or review.left:
            invocation.output.message(review.summary())
    return None


def _review_changed(invocation: Invocation, keyboard: Keyboard) -> None:
    if invocation.flags.json:
        raise CallerRefused("review --changed prints no JSON, but ls does", "rootsd ls --json")
    is_there = keyboard.is_there()
    shown = show_changed(invocation, is_look=is_there)
    asks = is_there and not invocation.flags.no_input
    if asks:
        hide_process()
    shown |= review_approved(invocation, keyboard if asks else None)
    if not shown:
        invocation.output.message("There are no unreviewed changes in files that tools run.")


def _wait(invocation: Invocation, review: Review) -> bool:
    invocation.output.message("Waiting for the next project; ^C ends this.")
    while not invocation.call(NextPendingQuery(tuple(review.seen), MAX_LOG_WAIT_S))["items"]:
        pass
    return True
