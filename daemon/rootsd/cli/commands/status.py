"""`rootsd status`: show the daemon, its parents, counts, and connections.

A bare `rootsd` runs this verb, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.options.flags import pass_invocation
from rootsd.cli.options.remote import RemoteVerbCommand
from rootsd.cli.text.confined_words import (
    describe_engine,
    describe_network,
    describe_program,
    describe_roots,
)
from rootsd.cli.text.layout import Paragraph
from rootsd.cli.text.phrases import age, pluralize, shown_path
from rootsd.cli.text.render import CommandResult
from rootsd.cli.text.theme import Tone
from rootsd.core.guard_setting import Guard
from rootsd.core.labels import exact_path, first_of, safe_label, safe_text
from rootsd.wire.daemon import StatusQuery, StatusResult

SECTION = "Inspect"

_MAX_NAMES = 5
_MAX_CONFINED = 5
_DETAILS = {
    "stays_open": "open", "not_shown": "not shown", "holders": "still holds a file",
    "refused": "refused to git",
}  # fmt: skip
_LABEL_WIDTH = 10
_HINT_COLUMN = 41
_PARTS = (
    "daemon", "parents", "counts", "changed_files", "left_behind", "sessions", "degraded",
    "confined", "config", "policy", "guard", "focus", "refused", "agent_commands",
    "closed_connections",
)  # fmt: skip


@click.command(
    "status",
    cls=RemoteVerbCommand,
    prints=(StatusResult,),
    epilog="rootsd\nrootsd status --json",
)
@pass_invocation
def command(invocation: Invocation) -> None:
    """Show the daemon, its parents, counts, connections, and problems."""
    print_status(invocation, invocation.call(StatusQuery(is_look=invocation.output.on_terminal)))


def print_status(invocation: Invocation, status: Mapping[str, Any]) -> None:
    """Print a status as lines for a person, tab-separated lines for a pipe, or JSON."""
    output = invocation.output
    if output.is_json:
        output.object(status_result(status))
    elif output.on_terminal:
        for line in _lines(status):
            gap = "   " if line.hint else ""
            room = _HINT_COLUMN - _LABEL_WIDTH if line.hint else 0
            text = f"{line.text + gap:<{room}}"
            output.labelled(
                f"{line.label:<{_LABEL_WIDTH}}", text, line.tone or Tone.LABEL, line.hint
            )
    else:
        output.rows(list(_rows(status)))
    output.warn(status["warnings"])


def status_result(status: Mapping[str, Any]) -> CommandResult:
    """Return the whole status as a result without items."""
    return CommandResult(
        revision=status["revision"],
        warnings=status["warnings"],
        extra={part: status[part] for part in _PARTS},
    )


def parent_line(parent: Mapping[str, Any]) -> str:
    """Return a line about a parent: path, depth, state, and number of projects."""
    path = shown_path(parent["path"])
    note = f": {safe_label(parent['note'], limit=None)}" if parent["note"] else ""
    count = pluralize(parent["projects"], "project")
    return f"{path} (depth {parent['depth']})  {parent['state']}{note}  {count}"


def _lines(status: Mapping[str, Any]) -> Iterator[Paragraph]:
    """Yield the lines for a person, one per topic."""
    daemon, counts = status["daemon"], status["counts"]
    started = age(daemon["since"])
    confined = ", confined" if daemon["confined"] == "landlock" else ""
    who = f"{daemon['version']}, pid {daemon['pid']}"
    yield Paragraph("daemon", f"running {who}, started {started}{confined}")
    if not status["parents"]:
        yield Paragraph("parents", "none", hint="rootsd up ~/src")
    for number, parent in enumerate(status["parents"]):
        yield Paragraph("" if number else "parents", parent_line(parent))
    words = ("published", "denied", "lapsed", "incomplete")
    totals = [f"{counts[word]} {word}" for word in words if counts[word]]
    if unpublishable := counts["unpublishable"]:
        totals.append(f"{unpublishable} can never be published")
    yield Paragraph("projects", "   ".join(totals) or "none decided")
    if lapsed := counts["lapsed_rules"]:
        yield Paragraph("rules", f"{lapsed} lapsed", Tone.ATTENTION, "rootsd rule")
    yield from _policy_lines(status["policy"])
    waiting = counts["waiting"]
    yield Paragraph(
        "pending",
        str(waiting),
        Tone.ATTENTION if waiting else None,
        "rootsd pending" if waiting else "",
    )
    yield from _change_lines(status)
    is_next = counts["published"] and not status["sessions"]
    hint = "rootsd clients" if is_next else ""
    yield Paragraph("clients", _clients(status["sessions"]), hint=hint)
    yield from _confined_lines(status["confined"])
    yield from _setting_lines(status)
    if refused := status["refused"]:
        yield Paragraph("refused", _refused(refused), Tone.REFUSED, "rootsd log")
    if commands := status["agent_commands"]:
        yield Paragraph("agents", _refused(commands), Tone.ATTENTION, "rootsd log")
    if closed := _closed(status):
        reasons = ", ".join(f"{count} {safe_label(why)}" for why, count in closed)
        yield Paragraph("closed", f"connections {reasons}")
    for sentence in status["degraded"]:
        yield Paragraph("degraded", safe_text(sentence), tone=Tone.BAD)


def _change_lines(status: Mapping[str, Any]) -> Iterator[Paragraph]:
    """Yield the files that changed since the approval, and what sessions left behind."""
    if changed := status["counts"]["changed"]:
        more = [f"and {left} more"] if (left := changed - len(status["changed_files"])) > 0 else []
        text = "; ".join([*map(safe_text, status["changed_files"]), *more])
        yield Paragraph("changed", text, Tone.ATTENTION, "rootsd review --changed")
    for number, sentence in enumerate(status["left_behind"]):
        yield Paragraph("" if number else "left", safe_text(sentence), Tone.ATTENTION)


def _setting_lines(status: Mapping[str, Any]) -> Iterator[Paragraph]:
    """Yield a line for each setting of a person that is not the usual one."""
    if focus := status["focus"]:
        yield Paragraph("focus", safe_label(focus), hint="rootsd focus --clear")
    if status["guard"] != Guard.AGENTS:
        yield Paragraph("guard", status["guard"])


def _policy_lines(policy: Mapping[str, Any] | None) -> Iterator[Paragraph]:
    """Yield a line about the machine's policy. If it is broken, a line "degraded" says why."""
    if policy is None:
        return
    file = safe_label(policy["file"], limit=None)
    if policy["error"]:
        yield Paragraph("policy", f"{file} cannot be used", Tone.BAD, "rootsd doctor")
        return
    counts = (
        (policy["refused"], "refused place"),
        (policy["denied"], "deny rule"),
        (policy["approved"], "approve rule"),
    )
    words = [pluralize(count, word) for count, word in counts if count]
    words += ["wall required"] if policy["requires_wall"] else []
    yield Paragraph("policy", f"{', '.join(words) or 'no rules'}  ({file})")


def _confined_lines(confined: Sequence[Mapping[str, Any]]) -> Iterator[Paragraph]:
    """Yield a line for each program behind the wall, with what the wall does not close."""
    for number, item in enumerate(confined[:_MAX_CONFINED]):
        words = describe_engine(item), describe_network(item)
        about = " · ".join((describe_program(item), describe_roots(item), *words))
        yield Paragraph("" if number else "confined", about)
        for key, word in _DETAILS.items():
            for line in item[key]:
                yield Paragraph("", f"  {word}: {safe_text(line)}")
    if (more := len(confined) - _MAX_CONFINED) > 0:
        yield Paragraph("", f"and {more} more", hint="rootsd sessions")


def _rows(status: Mapping[str, Any]) -> Iterator[list[str]]:
    """Yield the rows for a pipe. The first cell of a row is its kind."""
    daemon = status["daemon"]
    yield ["daemon", daemon["version"], str(daemon["pid"]), daemon["since"]]
    for parent in status["parents"]:
        path, note = exact_path(parent["path"]), parent["note"] or ""
        numbers = [str(parent["depth"]), str(parent["projects"])]
        safe_note = safe_label(note, limit=None) if note else ""
        yield ["parent", path, *numbers, parent["state"], safe_note]
    for files in status["changed_files"]:
        yield ["changed", safe_text(files)]
    for sentence in status["left_behind"]:
        yield ["left", safe_text(sentence)]
    for word, count in status["counts"].items():
        yield ["count", word, str(count)]
    for client in status["sessions"]:
        yield ["session", safe_label(client["client"] or "?"), str(client["pid"]), client["since"]]
    yield from _confined_rows(status["confined"])
    yield from _setting_rows(status)
    if refused := status["refused"]:
        words = (safe_label(refused[key], limit=None) for key in ("what", "by", "why"))
        yield ["refused", str(refused["count"]), refused["at"], *words]
    if commands := status["agent_commands"]:
        words = (safe_label(commands[key], limit=None) for key in ("what", "by", "why"))
        yield ["agent command", str(commands["count"]), commands["at"], *words]
    for why, count in _closed(status):
        yield ["closed", str(count), safe_label(why)]
    for sentence in status["degraded"]:
        yield ["degraded", safe_text(sentence)]


def _setting_rows(status: Mapping[str, Any]) -> Iterator[list[str]]:
    """Yield a row for each setting of a person, and one for the machine's policy."""
    yield ["guard", status["guard"]]
    if focus := status["focus"]:
        yield ["focus", safe_label(focus)]
    if policy := status["policy"]:
        counts = (str(policy[word]) for word in ("refused", "denied", "approved"))
        wall = "wall required" if policy["requires_wall"] else "wall not required"
        yield ["policy", exact_path(policy["file"]), *counts, wall]


def _confined_rows(confined: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    """Yield a row for each program behind the wall, and a row for each of its details."""
    for item in confined:
        name, pid = safe_text(item["name"]), str(item["pid"])
        yield ["confined", name, pid, describe_engine(item), describe_network(item)]
        for key, word in _DETAILS.items():
            for line in item[key]:
                yield [word, name, pid, safe_text(line)]


def _closed(status: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Return the reasons for closed connections with their counts, the most frequent first."""
    return sorted(status["closed_connections"].items(), key=lambda reason: -reason[1])


def _refused(refused: Mapping[str, Any]) -> str:
    """Return `2 commands, the last 3m ago: approve api, because Goose started it`."""
    count = refused["count"]
    many = f"{count} commands, the last" if count > 1 else "1 command,"
    what, why = (safe_label(refused[key], limit=None) for key in ("what", "why"))
    return f"{many} {age(refused['at'])}: {what}, because {why}"


def _clients(sessions: list[Mapping[str, Any]]) -> str:
    names: dict[str, int] = {}
    for client in sessions:
        name = safe_label(client["client"] or f"pid {client['pid']}")
        names[name] = names.get(name, 0) + 1
    shown = [f"{name} ({n})" if n > 1 else name for name, n in names.items()]
    return first_of(shown, _MAX_NAMES) or "none"
