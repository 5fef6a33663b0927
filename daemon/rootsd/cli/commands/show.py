"""`rootsd show`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

from rootsd.cli import completing
from rootsd.cli.columns import age, home_short, note_of, path_of
from rootsd.cli.flags import Command
from rootsd.cli.render import Answer
from rootsd.cli.session import Session, pass_session
from rootsd.core.labels import safe_label
from rootsd.wire.facts import ShowQuery

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_STEP = 1024
_SHORT_ID = 10
_CONCERNS = {
    "sensitive": "sensitive",
    "executed": "agents run",
    "nested": "nested",
    "elsewhere": "data outside",
}


@click.command(
    "show", cls=Command, epilog="rootsd show acme/api\nrootsd show .\nrootsd show 'acme/*' --json"
)
@click.argument(
    "refs", metavar="REF...", nargs=-1, required=True, shell_complete=completing.projects()
)
@pass_session
def command(session: Session, *, refs: tuple[str, ...]) -> None:
    """All that a decision on a project should rest on, as it is on the disk now.

    REF is a name, an id, a path, `.`, or a glob. Where it came from, branch and last commit, what
    it says it is called, what lies in it: secrets, files that agents run, other projects. In a
    pipe: label, tab, value; an empty line between projects. Everything that is read from the
    project was written by its author, who may lie.
    """
    listing = session.call(ShowQuery(session.cwd, refs))
    output = session.output
    answer = Answer(listing["items"], listing["revision"], listing["warnings"])
    if output.is_json:
        output.object(answer)
        return
    for number, item in enumerate(answer.items):
        if number:
            output.line("")
        for label, value in _lines(item, for_person=output.on_terminal):
            shown = safe_label(value, limit=None)
            output.line(f"{label:<13}{shown}" if output.on_terminal else f"{label}\t{shown}")
    output.warn(answer.warnings)


def _lines(item: Mapping[str, Any], *, for_person: bool) -> Iterator[tuple[str, str]]:
    path = path_of(item)
    rows = (
        ("name", f"{item['name']} ({item['id']})" if for_person else item["name"]),
        ("id", "" if for_person else item["id"]),
        ("path", home_short(path) if for_person else path),
        ("kind", item["kind"]),
        ("verdict", f"{item['verdict']}, published" if item["published"] else item["verdict"]),
        ("note", note_of(item)),
        ("found", age(item["discovered_at"]) if for_person else item["discovered_at"]),
        ("decided", item["decided_at"] or ""),
        ("origin", item["origin"] or ""),
        ("branch", item["branch"] or ""),
        ("worktree of", item["worktree_of"] or ""),
        ("last commit", _commit(item.get("last_commit"), for_person=for_person)),
        ("calls itself", ", ".join(item["declared_names"] or ())),
        ("files", " ".join(item["project_files"] or ())),
        ("ecosystems", " ".join(item.get("ecosystems") or ())),
        ("size", _size(item.get("size"))),
    )
    yield from ((label, value) for label, value in rows if value)
    for finding in item["findings"] or ():
        detail = f" ({finding['detail']})" if finding["detail"] else ""
        yield _CONCERNS.get(finding["concern"], finding["concern"]), finding["path"] + detail
    if left_out := item.get("findings_left_out"):
        yield "and", f"{left_out} more findings"


def _commit(commit: Mapping[str, str] | None, *, for_person: bool) -> str:
    if commit is None:
        return ""
    when = age(commit["at"]) if for_person else commit["at"]
    return f"{commit['id'][:_SHORT_ID]} {when}: {commit['summary']}"


def _size(size: Mapping[str, Any] | None) -> str:
    if size is None:
        return ""
    amount, unit = float(size["bytes"]), 0
    while amount >= _STEP and unit < len(_UNITS) - 1:
        amount, unit = amount / _STEP, unit + 1
    least = "" if size["whole"] else "at least "
    files = "1 file" if size["files"] == 1 else f"{size['files']} files"
    return f"{least}{amount:.{1 if unit else 0}f} {_UNITS[unit]} in {files}"
