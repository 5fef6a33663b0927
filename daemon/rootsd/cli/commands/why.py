"""`rootsd why`: explain why a path is published or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from rootsd.check import absolute_path, possible_name
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.options import completion
from rootsd.cli.options.flags import pass_invocation, verb
from rootsd.cli.text.phrases import shown_path
from rootsd.cli.text.projects import VERDICT_TONES, path_of
from rootsd.cli.text.render import Column, CommandResult, path_column
from rootsd.core.errors import Exit
from rootsd.core.labels import safe_label
from rootsd.wire.projects import WhyQuery, WhyResult

SECTION = "Inspect"

_DECIDES = {True: "decides", False: ""}
_COLUMNS = (
    Column("REASON", lambda reason: reason["ground"]),
    Column("SAYS", lambda reason: reason["verdict"] or "-", tones=VERDICT_TONES),
    Column("", lambda reason: _DECIDES[reason["decides"]]),
    path_column("BY", lambda reason: reason["by"] or ""),
)


@verb(
    "why",
    prints=(WhyResult,),
    epilog="rootsd why .\nrootsd why api\nrootsd why ~/src/api/main.py --json",
)
@click.argument("path", metavar="PATH|REF", shell_complete=completion.projects_or_files)
@pass_invocation
def command(invocation: Invocation, *, path: str) -> int:
    """Explain why a path or URI is published or not, with all reasons for and against.

    If there is no such path, the word is a name, an id, or a glob that matches one project.

    A reason overrides the ones below it; "decides" marks the one that takes effect. The exit
    status is 5 if no project is known at or above the path.
    """
    why = invocation.call(WhyQuery(absolute_path(path), possible_name(path)))
    output = invocation.output
    extra = {name: why[name] for name in ("path", "published", "root", "voices", "obstacles")}
    if output.is_json:
        output.object(CommandResult.of(why, **extra))
    else:
        output.show(CommandResult.of(why, why["voices"]), _COLUMNS)
        output.message(_summary(why))
    return Exit.OK if why["items"] else Exit.NOTHING_MATCHED


def _summary(why: Mapping[str, Any]) -> str:
    path = shown_path(why["path"])
    if not why["items"]:
        return f"{path} is not published: {'; '.join(why['obstacles'])}."
    item = why["items"][0]
    name = safe_label(item["name"])
    is_itself = path_of(item) == why["path"]
    subject = f"{path} is {name}" if is_itself else f"{path} lies in {name}"
    if why["published"] and not item["published"]:
        root = safe_label(why["root"])
        return f"{subject}. Clients can read it, because it lies in the root {root}."
    if why["published"]:
        return f"{subject}, which is published."
    reasons = [f"it is {item['verdict']}"] if item["verdict"] != "approved" else []
    return f"{subject}, which is not published: {'; '.join([*reasons, *why['obstacles']])}."
