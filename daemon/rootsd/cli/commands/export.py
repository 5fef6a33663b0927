"""`rootsd export`: print the folders of a tag as a .code-workspace file."""

from __future__ import annotations

from typing import Any, TypedDict

import click

from rootsd.cli.answers.invocation import Invocation, call_or_read_store
from rootsd.cli.options import completion
from rootsd.cli.options.flags import pass_invocation, verb
from rootsd.cli.text.phrases import pluralize
from rootsd.cli.text.render import CommandResult
from rootsd.core.errors import ErrorCode, RootsdError
from rootsd.core.labels import safe_label
from rootsd.core.parsing import parse_json
from rootsd.wire.projects import ProjectsQuery

SECTION = "Decide"

_TAG = "tag:"


class NoTaggedRoot(RootsdError):
    """No approved folder has the tag."""

    code = ErrorCode.NOTHING_MATCHED


class CodeWorkspaceOutput(TypedDict):
    """The file."""

    tag: str
    """The tag."""
    file: str | None
    """The file that was written, or null."""
    code_workspace: dict[str, Any]
    """The content of the file."""


@verb(
    "export",
    prints=(CodeWorkspaceOutput,),
    epilog="rootsd export --code-workspace tag:work --output work.code-workspace",
)
@click.option(
    "--code-workspace",
    "scope",
    required=True,
    metavar="tag:TAG",
    help="the tag of the approved folders",
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
def command(invocation: Invocation, *, scope: str, file: str | None) -> None:
    """Print a .code-workspace file with the approved folders of a tag.

    VS Code opens such a file, and rootsd add proposes its folders, for example on another machine.
    This command also works without a daemon. For all decisions as JSON: rootsd ls --json.
    """
    from rootsd.cli.answers import code_workspace

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
