"""Write the lines about a selection, risks first. Pure, apart from the clock of `age`.

The values are untrusted. The widget that shows a paragraph makes a label of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rootsd.cli.answers.affected import affected_lines, risk_of_affected
from rootsd.cli.answers.decision_flow import Facts, incomplete_lines
from rootsd.cli.text.confined_words import describe_engine, describe_network, describe_roots
from rootsd.cli.text.layout import Paragraph
from rootsd.cli.text.phrases import age, pluralize, shorten_home
from rootsd.cli.text.projects import (
    LABEL_WIDTH,
    RISK_LABELS,
    coverage_of,
    describe_shared_git,
    detail_lines,
    path_of,
    rule_words,
)
from rootsd.cli.text.theme import Tone
from rootsd.cli.ui.board import ProjectRow, SessionRow
from rootsd.wire.decisions import DecideRequest
from rootsd.wire.guard import UndoRequest

_MOST_RISKS = 100


def about_row(row: ProjectRow, status: str) -> list[Paragraph]:
    """Return what is known about a project before its details are read."""
    return [
        Paragraph("risks", status, Tone.ATTENTION),
        Paragraph("name", row.name),
        Paragraph("path", shorten_home(row.path)),
        *([Paragraph("note", row.item["note"])] if row.item["note"] else ()),
    ]


def about_project(item: Mapping[str, Any]) -> list[Paragraph]:
    """Return the details of an item of `ShowQuery`, risks first."""
    lines = detail_lines(item, for_person=True)
    others = [Paragraph(*line) for line in lines if line[0] not in RISK_LABELS]
    return [*risks_of(item), *others]


def risks_of(item: Mapping[str, Any]) -> list[Paragraph]:
    """Return what a person should look at first in an item of `ShowQuery`."""
    lines = detail_lines(item, for_person=True)
    risks = [
        Paragraph(label, text, Tone.ATTENTION) for label, text in lines if label in RISK_LABELS
    ]
    if not risks:
        is_read = item["findings"] is not None
        risks = [Paragraph("risks", "none found" if is_read else "the folder could not be read")]
    if "request" in item:
        risks.insert(0, Paragraph("requested", item["request"], Tone.ATTENTION))
    return risks


def about_session(row: SessionRow, roots: Iterable[Mapping[str, Any]]) -> list[Paragraph]:
    """Return the details of a session or a confined program, and the roots that it got."""
    item = row.item
    listed = [*roots]
    facts = [
        ("program" if row.is_confined else "client", f"{row.name}, pid {item['pid']}"),
        ("scope", " ".join(item["scope"]) or "all roots"),
        ("since", age(item["since"])),
    ]
    if row.is_confined:
        facts += [
            ("reaches", describe_roots(item)),
            ("wall", f"{describe_engine(item)}, {describe_network(item)}"),
            ("agent", item["program"]),
            ("report", "R shows the one of its last session that has ended"),
        ]
        warnings = [
            *(("stays open", text) for text in item["stays_open"]),
            *(("still open", text) for text in item["holders"]),
            *(("not shown", text) for text in item["not_shown"]),
            *(("refused", text) for text in item["refused"]),
        ]
    else:
        relayed = item["told"]
        facts.append(("wall", "none: rootsd tells it the roots, and cannot enforce them"))
        facts += [("server has", pluralize(relayed["roots"], "root"))] if relayed else []
        warnings = []
    return [
        *(Paragraph(label, text, Tone.ATTENTION) for label, text in warnings),
        *(Paragraph(label, text) for label, text in facts),
        Paragraph("roots", pluralize(len(listed), "root")),
        *(Paragraph("", _root_line(root)) for root in listed),
    ]


def about_projects(label: str, rows: Sequence[ProjectRow]) -> list[Paragraph]:
    """Return the projects that are selected, or those of a group."""
    return [
        Paragraph(label, pluralize(len(rows), "project"), Tone.HEADING),
        *(Paragraph("", f"{row.name}  {shorten_home(row.path)}") for row in rows),
    ]


def risks_of_several(listing: Mapping[str, Any]) -> Iterator[Paragraph]:
    """Yield the requests for projects of a listing with risks, and then their risks."""
    for item in listing["items"]:
        if "request" in item:
            yield Paragraph("requested", f"{item['name']}: {item['request']}", Tone.ATTENTION)
    risky = [item for item in listing["items"] if item.get("risk")]
    for item in risky[:_MOST_RISKS]:
        yield Paragraph("risk", f"{item['name']}: {item['risk']}", Tone.ATTENTION)
    if len(risky) > _MOST_RISKS:
        yield Paragraph("risk", f"in {len(risky) - _MOST_RISKS:,} more", Tone.ATTENTION)
    yield from (Paragraph("risk", warning, Tone.ATTENTION) for warning in listing["warnings"])


def about_affected(facts: Facts[Any]) -> Iterator[Paragraph]:
    """Yield the projects that an order decides about, if they are several, with their risks."""
    if facts.confirmation is not None:
        # A paragraph is shown as a label, in which leading spaces would appear as escapes.
        for line in affected_lines(facts.confirmation):
            yield Paragraph("", line.strip(), Tone.ATTENTION)


def about_approval(
    facts: Facts[DecideRequest], with_worktrees: Facts[DecideRequest]
) -> Iterator[Paragraph]:
    """Yield what an approval would publish, also with the worktrees that it can include."""
    yield from about_affected(facts)
    for line in incomplete_lines(facts.incomplete):
        yield Paragraph("incomplete", line, Tone.ATTENTION)
    plan = facts.plan
    for git in plan.get("shared_git", ()):
        yield Paragraph("git data", describe_shared_git(git), Tone.ATTENTION)
    risks = {each["id"]: risk_of_affected(each) for each in with_worktrees.listed}
    for tree in plan.get("worktrees", ()):
        where = shorten_home(path_of(tree))
        if tree["published"]:
            yield Paragraph("worktree", f"{where} (published with it)")
        elif tree["confirmable"]:
            yield Paragraph("worktree", f"{where} (older than this approval)")
            if risk := risks.get(tree["id"]):
                yield Paragraph("risk", f"{tree['name']}: {risk}", Tone.ATTENTION)
    for item in (*plan["items"], *plan["unchanged"]):
        yield Paragraph("publish", f"{item['name']}  {shorten_home(path_of(item))}")
    for warning in plan["warnings"]:
        yield Paragraph("note", warning)


def about_denial(rows: Sequence[ProjectRow], facts: Facts[Any]) -> list[Paragraph]:
    """Return what a denial of these rows decides about."""
    return [*about_affected(facts)] or about_projects("selected", rows)


def about_why(why: Mapping[str, Any]) -> list[Paragraph]:
    """Return the reasons for the verdict on a path, in the order of precedence."""
    published = "published" if why["published"] else "not published"
    room = max(len(each["ground"]) for each in why["voices"]) + 2
    return [
        Paragraph("", f"{shorten_home(why['path'])}: {published}", Tone.HEADING),
        *(Paragraph("", obstacle, Tone.ATTENTION) for obstacle in why["obstacles"]),
        *(
            Paragraph(f"{each['ground']:<{room}}", _reason(each), _tone(each))
            for each in why["voices"]
        ),
    ]


def about_rules(listing: Mapping[str, Any]) -> list[Paragraph]:
    """Return the rules, those of the machine's policy last, with the projects that each covers."""
    rules = [*listing["items"], *listing["policy"]]
    return [
        Paragraph(
            f"{rule['number'] or 'policy'} {rule['verdict']}",
            f"{rule_words(rule)}. {coverage_of(rule)}",
        )
        for rule in rules
    ] or [Paragraph("", "No rules yet. To add one: rootsd rule add approve '~/src/acme/**'")]


def about_report(rows: Sequence[Mapping[str, str]]) -> list[Paragraph]:
    """Return what a session did."""
    room = max(len(row["what"]) for row in rows) + 2
    return [
        Paragraph(f"{row['what']:<{room}}", "  ".join(filter(None, _report_cells(row))))
        for row in rows
    ]


def _report_cells(row: Mapping[str, str]) -> Iterator[str]:
    yield from (shorten_home(row["where"]), row["note"], row["at"] and age(row["at"]))


def about_undo(facts: Facts[UndoRequest]) -> list[Paragraph]:
    """Return the events that an undo takes back."""
    undone = facts.plan["undone"]
    events = [Paragraph(event["verb"], event["path"] or event["what"]) for event in undone]
    return [*events, *about_affected(facts)]


def label_of(paragraph: Paragraph) -> str:
    """Return the label with the space after it."""
    return f"{paragraph.label:<{LABEL_WIDTH}}"


def _root_line(root: Mapping[str, Any]) -> str:
    access = " (read only)" if root["access"] == "read" else ""
    return f"{root['name']}  {shorten_home(root['path'])}{access}"


def _reason(reason: Mapping[str, Any]) -> str:
    by = f" by {shorten_home(reason['by'])}" if reason["by"] else ""
    decides = " (decides)" if reason["decides"] else ""
    return f"{reason['verdict'] or '-'}{by}{decides}"


def _tone(reason: Mapping[str, Any]) -> Tone | None:
    return Tone.HEADING if reason["decides"] else None
