"""`rootsd review`."""

from __future__ import annotations

import click

from rootsd.cli.flags import VerbCommand, pass_invocation
from rootsd.cli.invocation import Invocation
from rootsd.cli.review import Review
from rootsd.cli.terminal import Keyboard
from rootsd.core.errors import CallerRefused
from rootsd.wire.guard import MAX_LOG_WAIT_S
from rootsd.wire.projects import NextPendingQuery


@click.command("review", cls=VerbCommand, epilog="rootsd review\nrootsd review --follow")
@click.option("--follow", is_flag=True, help="wait for what comes next; ^C ends it")
@pass_invocation
def command(invocation: Invocation, *, follow: bool) -> None:
    """Decide about what waits, one after the other, each with all that is known about it.

    Projects come in groups, by parent and by the owner that they were cloned from. y publishes, n
    denies, a and d do so for the rest of the group, s skips, r renames, q ends, ? tells. Each key
    takes effect at once, and undo takes it back.
    """
    keyboard = Keyboard()
    if invocation.flags.no_input or invocation.flags.json or not keyboard.is_there():
        raise CallerRefused("review asks a person on a terminal", "rootsd pending")
    review = Review(invocation, keyboard)
    try:
        goes_on = True
        while goes_on:
            waiting = invocation.call(NextPendingQuery(tuple(review.seen)))["items"]
            if not waiting and not review.seen:
                invocation.output.say("Nothing waits for a decision.")
            goes_on = review.ask_about(waiting)
            if not follow:
                break
            goes_on = goes_on and _wait(invocation, review)
    except KeyboardInterrupt:
        invocation.output.say("")
        raise
    finally:
        if review.seen or review.left:
            invocation.output.say(review.summary())


def _wait(invocation: Invocation, review: Review) -> bool:
    invocation.output.say("Waiting for the next project; ^C ends this.")
    while not invocation.call(NextPendingQuery(tuple(review.seen), MAX_LOG_WAIT_S))["items"]:
        pass
    return True
