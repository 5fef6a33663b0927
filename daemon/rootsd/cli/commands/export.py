"""`rootsd export`: print your decisions, to import them elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

import click

from rootsd.cli import completion
from rootsd.cli.flags import VerbCommand, pass_invocation
from rootsd.cli.formatting import pluralize
from rootsd.cli.invocation import Invocation, call_or_read_store
from rootsd.cli.render import CommandResult
from rootsd.core.errors import ErrorCode, RootsdError
from rootsd.core.labels import safe_label
from rootsd.core.parsing import parse_json
from rootsd.wire.decisions import EXPORT_FORMAT, RulesQuery
from rootsd.wire.projects import ProjectsQuery

SECTION = "Decide"

_PROJECT = ("path", "path_b64", "uri", "kind", "name", "tags", "verdict", "access")
_RULE = ("verdict", "pattern", "pattern_b64")


_TAG = "tag:"


class NoTaggedRoot(RootsdError):
    """No approved folder has the tag."""

    code = ErrorCode.NOTHING_MATCHED


class ExportedRule(TypedDict):
    """A rule."""

    verdict: str
    """A value of `Verdict`. It is `pending` for an approve rule that lapsed."""
    pattern: str | None
    """Its pattern, or null if it is not UTF-8."""
    pattern_b64: str | None
    """Its pattern in base64, if it is not UTF-8."""


class ExportedProject(TypedDict):
    """A project with a decision or a tag."""

    path: str | None
    """Its path. Null if it is not a folder, or if the path is not UTF-8."""
    path_b64: str | None
    """Its path in base64, if it is not UTF-8."""
    uri: str | None
    """Its URI, or null if the path is not UTF-8."""
    kind: str
    """A value of `ProjectKind`."""
    name: str
    """Its name."""
    tags: list[str]
    """Its tags, sorted."""
    verdict: str
    """A value of `Verdict`."""
    access: str
    """A value of `Access`."""


class ExportOutput(TypedDict):
    """Without `--code-workspace`; also without `--json`."""

    format: int
    """The version of the export, which `rootsd import` checks."""
    rules: list[ExportedRule]
    """The rules."""
    items: list[ExportedProject]
    """The projects."""


class CodeWorkspaceOutput(TypedDict):
    """With `--code-workspace`."""

    tag: str
    """The tag."""
    file: str | None
    """The file that was written, or null."""
    code_workspace: dict[str, Any]
    """The content of the file."""


@click.command(
    "export",
    cls=VerbCommand,
    prints=(
        ExportOutput,
        CodeWorkspaceOutput,
    ),
    epilog=(
        "rootsd export > roots.json\n"
        "rootsd import roots.json\n"
        "rootsd export --code-workspace tag:work --output work.code-workspace"
    ),
)
@click.option(
    "--code-workspace",
    "scope",
    metavar="tag:TAG",
    help="print a .code-workspace file with the approved folders of this tag instead",
    shell_complete=completion.tag_scopes,
)
@click.option(
    "--output",
    "file",
    metavar="FILE",
    help="write the .code-workspace file here; the file must be new",
    shell_complete=completion.files,
)
@pass_invocation
def command(invocation: Invocation, *, scope: str | None, file: str | None) -> None:
    """Print all decisions, names, and tags as one JSON object, for import elsewhere.

    The export holds names and paths, but no identities, so that it cannot approve anything. With
    --code-workspace, print a file that VS Code opens and rootsd add proposes. This command also
    works without a daemon.
    """
    if scope is not None:
        _export_workspace(invocation, scope, file)
        return
    if file is not None:
        raise click.UsageError("--output needs --code-workspace")
    listing, rules = (
        call_or_read_store(invocation, ProjectsQuery(invocation.cwd)),
        call_or_read_store(invocation, RulesQuery()),
    )
    items = [_only(item, _PROJECT) for item in listing["items"] if _is_worth_it(item)]
    extra = {
        "format": EXPORT_FORMAT,
        "rules": [_only(rule, _RULE) for rule in rules["items"]],
    }
    invocation.output.object(CommandResult(items, listing["revision"], listing["warnings"], extra))


def _export_workspace(invocation: Invocation, scope: str, file: str | None) -> None:
    from rootsd.cli import code_workspace

    tag = scope.removeprefix(_TAG)
    if not scope.startswith(_TAG) or not tag:
        raise click.UsageError("name a tag: --code-workspace tag:TAG")
    listing = call_or_read_store(invocation, ProjectsQuery(invocation.cwd))
    tagged = [
        item
        for item in listing["items"]
        if tag in item["tags"] and item["verdict"] == "approved" and not item["lapsed"]
    ]
    paths = [item["path"] for item in tagged if item["path"]]
    if not paths:
        raise NoTaggedRoot(f"no approved folder has the tag {safe_label(tag)}", "rootsd tag")
    left_out = [
        f"{safe_label(item['name'])} is left out: such a file cannot name it"
        for item in tagged
        if not item["path"]
    ]
    content, output = code_workspace.workspace_of(paths), invocation.output
    text = code_workspace.workspace_text(content)
    warnings = [*listing["warnings"], *left_out]
    if file is not None:
        code_workspace.create_file(file, text)
    if output.is_json:
        extra = {"tag": tag, "file": file, "code_workspace": parse_json(text)}
        output.object(CommandResult((), listing["revision"], warnings, extra))
        return
    if file is None:
        output.text(text)
    else:
        output.message(f"{pluralize(len(paths), 'folder')} in {safe_label(file, limit=None)}")
    output.warn(warnings)


def _is_worth_it(item: Mapping[str, Any]) -> bool:
    return item["verdict"] != "pending" or bool(item["tags"]) or bool(item["lapsed"])


def _only(item: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: item[key] for key in keys}
