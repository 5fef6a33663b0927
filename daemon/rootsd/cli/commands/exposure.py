"""`rootsd exposure`: print what agents and MCP servers can read and write now."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import click

from rootsd.agents.forms.reach import Extent
from rootsd.cli.answers.exposed import COLUMNS, measure_here, show_everything, show_screen
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.options.flags import pass_invocation, verb
from rootsd.cli.text.field_columns import FieldList, field_columns
from rootsd.cli.text.layout import ColumnFit
from rootsd.cli.text.render import Column, CommandResult
from rootsd.core.errors import Exit
from rootsd.exposure.report import ExposureItem, ExposureReport

SECTION = "Inspect"


class FailOn(StrEnum):
    """What `--fail-on` looks for."""

    SECRETS = "secrets"
    WRITE = "write"
    FINDINGS = "findings"

    def holds(self, item: ExposureItem) -> bool:
        """Return whether an agent or a server has it."""
        match self:
            case FailOn.SECRETS:
                return item["secrets"] > 0
            case FailOn.WRITE:
                return Extent(item["writes"]["extent"]).is_unlimited
            case FailOn.FINDINGS:
                return bool(item["findings"])


def _source(item: Mapping[str, Any]) -> str:
    reads = item["reads"]
    return f"{reads['file']}:{reads['line']}" if reads["file"] else ""


@verb(
    "exposure",
    prints=(ExposureReport,),
    epilog="rootsd exposure\nrootsd exposure -v\n"
    "rootsd exposure --fail-on secrets --fail-on write",
)
@click.option(
    "--fail-on",
    multiple=True,
    type=click.Choice([each.value for each in FailOn]),
    metavar="WHAT",
    help="exit with status 1 if an agent or a server can, without a question, read `secrets` or"
    " `write` everything, or if it has `findings`; may be repeated",
)
@click.option(
    "--format",
    "fields",
    type=FieldList(tuple(ExposureItem.__annotations__)),
    metavar="FIELD,...",
    help="print these fields of --json in columns: name,reads,secrets",
)
@pass_invocation
def command(
    invocation: Invocation, *, fail_on: tuple[str, ...], fields: tuple[str, ...] | None
) -> int:
    """Print what each agent and MCP server can read and write now, and which setting says so.

    This needs no daemon. It writes nothing and sends nothing. It reads settings and the names of
    files, and never the text of a secret.

    READS and WRITES say what it can use without asking you: `project` is the folder in which you
    start it. PROJECTS and SECRETS count what it can read without asking, wherever you start it.
    With -v, the output has each reason, and each finding with the command that fixes it.
    """
    report, warnings = measure_here(invocation)
    output, items = invocation.output, report["items"]
    if output.is_json:
        extra = {key: value for key, value in report.items() if key != "items"}
        output.object(CommandResult(items, None, warnings, extra))
    elif fields is not None:
        output.show(CommandResult(items), field_columns(fields))
    elif invocation.flags.verbose:
        show_everything(output, report)
    elif output.on_terminal or not items:
        show_screen(output, report)
    else:
        output.show(CommandResult(items), (*COLUMNS, Column("SAYS", _source, fit=ColumnFit.PATH)))
    output.warn(warnings)
    failed = any(FailOn(each).holds(item) for each in fail_on for item in items)
    return Exit.FAILED if failed else Exit.OK
