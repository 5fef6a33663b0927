"""`rootsd show`: show the facts about a project before you decide."""

from __future__ import annotations

from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.options import completion
from rootsd.cli.options.flags import pass_invocation, verb
from rootsd.cli.text.projects import LABEL_WIDTH, RISK_LABELS, detail_lines
from rootsd.cli.text.render import CommandResult
from rootsd.cli.text.theme import Tone
from rootsd.core.labels import exact_path, safe_label
from rootsd.wire.projects import ProjectListing, ShowQuery

SECTION = "Inspect"


@verb(
    "show",
    prints=(ProjectListing,),
    epilog="rootsd show acme/api\nrootsd show .\nrootsd show 'acme/*' --json",
)
@completion.refs_argument
@pass_invocation
def command(invocation: Invocation, *, refs: tuple[str, ...]) -> None:
    """Show the facts about a project that matter for a decision, as they are on the disk now.

    REF is a name, an id, a path, `.`, or a glob. The facts are the origin, the branch, the last
    commit, the name in the project's own files, and risky contents: secrets, files that agents
    run, other projects. In a pipe, each line is label, tab, value, with an empty line between
    projects. Facts from inside the project come from its author and may be false.
    """
    listing = invocation.call(ShowQuery(invocation.cwd, refs))
    output = invocation.output
    answer = CommandResult.of(listing)
    if output.is_json:
        output.object(answer)
        return
    for number, item in enumerate(answer.items):
        if number:
            output.line("")
        for label, value in detail_lines(item, for_person=output.on_terminal):
            shown = safe_label(value, limit=None) if output.on_terminal else exact_path(value)
            start = f"{label:<{LABEL_WIDTH}}" if output.on_terminal else f"{label}\t"
            output.labelled(start, shown, Tone.REFUSED if label in RISK_LABELS else Tone.LABEL)
    output.warn(answer.warnings)
