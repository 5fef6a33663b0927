"""Measure what agents and MCP servers can read and write here, and print that on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rootsd.agents.forms.reach import ExposureFinding, ExposureKind, Extent
from rootsd.cli.answers.connecting import client_environment
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.text.phrases import pluralize, shorten_home
from rootsd.cli.text.render import Column, CommandResult, Output
from rootsd.cli.text.theme import Tone
from rootsd.config.configuration import read_config
from rootsd.core.errors import RootsdError
from rootsd.core.labels import safe_text
from rootsd.exposure.report import ExposureItem, ExposureReport, measure

_ROWS = 24  # of a small terminal
_ROWS_OF_A_FINDING = 3
_ROWS_AROUND = 5
_SECRETS = 50
_TONES = {Extent.EVERYTHING.value: Tone.BAD, Extent.UNKNOWN.value: Tone.BAD}
_WEIGHTS = {kind.value: weight for weight, kind in enumerate(ExposureKind)}

COLUMNS = (
    Column("NAME", lambda item: item["name"]),
    Column("READS", lambda item: item["reads"]["extent"], tones=_TONES),
    Column("WRITES", lambda item: item["writes"]["extent"], tones=_TONES),
    Column("PROJECTS", lambda item: str(item["repositories"])),
    Column("SECRETS", lambda item: str(item["secrets"])),
    Column("FINDINGS", lambda item: str(len(item["findings"]))),
)


def measure_here(invocation: Invocation) -> tuple[ExposureReport, list[str]]:
    """Return what can be reached on this machine, and warnings. This asks no daemon."""
    parents, walled, warnings = [], frozenset[str](), []
    try:
        config = read_config(invocation.places.config_file)
        parents = [parent.path for parent in config.parents]
        walled = frozenset(config.wall.agents)
    except RootsdError as error:
        warnings.append(f"{error.message} (try: {error.remedy})")
    report = measure(client_environment(), parents, walled)
    if not report["whole"]:
        warnings.append("not every folder could be read in time, so there may be more")
    return report, warnings


def show_screen(output: Output, report: ExposureReport) -> None:
    """Print the table and the findings that weigh most, on one small screen."""
    items = report["items"]
    if not items:
        output.message("No agent and no MCP client was found.")
        return
    rows = _by_agent(items)
    output.show(CommandResult(rows), COLUMNS)
    output.line(_found(report))
    findings = [(item, found) for item in items for found in item["findings"]]
    findings.sort(key=lambda each: _WEIGHTS[each[1]["kind"]])
    room = max(1, (_ROWS - _ROWS_AROUND - len(rows)) // _ROWS_OF_A_FINDING)
    for item, found in findings[:room]:
        _show_finding(output, f"{item['name']}: ", found)
    more = len(findings) - room
    what = f"{pluralize(more, 'more finding')}, and each reason" if more > 0 else "Each reason"
    output.message(f"{what}: rootsd exposure -v")


def show_everything(output: Output, report: ExposureReport) -> None:
    """Print the reasons, the findings, and the commands for each agent and server."""
    for item in report["items"]:
        output.labelled(safe_text(item["name"]), "", Tone.HEADING)
        for verb in ("reads", "writes"):
            access = item[verb]
            where = _where(access["file"], access["line"])
            text = f"{access['extent']}: {access['reason']}{where}"
            output.labelled(f"  {verb:<8}", safe_text(text))
        for folder in item["opened"]:
            output.labelled("  opened  ", safe_text(shorten_home(folder)))
        if item["remedy"]:
            output.command(2, "→ ", item["remedy"])
        for found in item["findings"]:
            _show_finding(output, "  finding ", found)
    for path in report["secrets"][:_SECRETS]:
        output.labelled("secret    ", safe_text(shorten_home(path)))
    output.line(_found(report))


def _show_finding(output: Output, label: str, found: ExposureFinding) -> None:
    text = f"{found['text']}{_where(found['file'], found['line'])}"
    output.labelled(safe_text(label), safe_text(text), Tone.BAD)
    front, file = found["remedy"].removesuffix(found["file"]), found["file"]
    output.command(2, "→ ", front + shorten_home(file) if front != found["remedy"] else front)


def _where(file: str | None, line: int | None) -> str:
    return f" ({shorten_home(file)}:{line})" if file else ""


def _found(report: ExposureReport) -> str:
    projects = pluralize(report["repositories"], "project")
    secrets = pluralize(len(report["secrets"]), "secret")
    return f"Found here: {projects}, and {secrets}, by the names of files and folders."


def _by_agent(items: Sequence[ExposureItem]) -> list[ExposureItem]:
    """Return the agents, each with one line for those of its servers that reach the same."""
    groups: dict[tuple[object, ...], list[ExposureItem]] = {}
    for item in items:
        client = item["name"] if item["agent"] else item["name"].partition("/")[0]
        key = (client, item["agent"], item["reads"]["extent"], item["secrets"])
        groups.setdefault(key, []).append(item)
    return [_together(group) if len(group) > 1 else group[0] for group in groups.values()]


def _together(servers: Sequence[ExposureItem]) -> ExposureItem:
    client = servers[0]["name"].partition("/")[0]
    findings = [found for server in servers for found in server["findings"]]
    name = f"{client}/ ({len(servers)} servers)"
    return {**servers[0], "name": name, "findings": findings}
