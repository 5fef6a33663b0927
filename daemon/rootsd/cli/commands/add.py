"""`rootsd add`: propose a folder, a URI, or a workspace file by hand."""

from __future__ import annotations

from typing import Literal, TypedDict

import click

from rootsd.cli.answers.decisions import DRY_RUN_NOTICE, effect_of
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.options import completion
from rootsd.cli.options.flags import pass_invocation, verb
from rootsd.cli.text.phrases import pluralize
from rootsd.cli.text.projects import PATH, PROJECT_COLUMNS
from rootsd.cli.text.render import CommandResult, PathItem
from rootsd.core.labels import safe_label
from rootsd.wire.decisions import AddFoldersRequest, AddRequest, AddResult
from rootsd.wire.projects import ProjectItem

SECTION = "Decide"

_PATHS = (PATH,)


class AddOutput(AddResult):
    """For a folder or a URI: the project, as it is now."""

    dry_run: bool
    """Whether nothing was changed, because of `--dry-run`."""


class WorkspaceOutput(TypedDict):
    """What a workspace file has besides new folders."""

    unchanged: list[ProjectItem]
    """The projects that were known already."""
    tag: str
    """The tag that the proposed projects get."""


class AddWorkspaceOutput(WorkspaceOutput):
    """For a workspace file: its folders that were not known before."""

    items: list[ProjectItem]
    """The proposed projects."""
    dry_run: Literal[False]
    """False."""


class AddWorkspaceDryRunOutput(WorkspaceOutput):
    """For a workspace file, with `--dry-run`."""

    items: list[PathItem]
    """All folders of the file."""
    dry_run: Literal[True]
    """Nothing was changed."""


@verb(
    "add",
    prints=(
        AddOutput,
        AddWorkspaceOutput,
        AddWorkspaceDryRunOutput,
    ),
    epilog=(
        "rootsd add ~/notes --name notes\n"
        "rootsd add https://api.example.com/v1\n"
        "rootsd add ~/src/work.code-workspace"
    ),
)
@click.argument("what", metavar="PATH|URI|FILE", shell_complete=completion.files)
@click.option("--name", metavar="NAME", help="the name of the project")
@click.option(
    "--tag",
    metavar="TAG",
    help="the tag for the folders of a workspace (default: the name of the file)",
    shell_complete=completion.tags,
)
@click.option("--dry-run", is_flag=True, help="only show what would be proposed")
@pass_invocation
def command(
    invocation: Invocation, *, what: str, name: str | None, tag: str | None, dry_run: bool
) -> None:
    """Propose a folder that no scan finds, or a URI. You then decide about it.

    If FILE is a .code-workspace file of VS Code, propose all its folders under one tag, which they
    keep when you approve them. Folders that already have a decision stay as they are.

    Clients see an approved URI in tools and resources. MCP requires its roots to be files, so a
    URI is among them only if the client's bridge runs with --any-uri. To remove it again, use
    rootsd forget.
    """
    from rootsd.cli.answers import code_workspace

    if code_workspace.is_workspace_file(what):
        if name is not None:
            raise click.UsageError("--name is for a single folder; a workspace has a --tag")
        _add_workspace(invocation, what, tag, dry_run=dry_run)
        return
    if tag is not None:
        raise click.UsageError("--tag is for a workspace file; for a folder: rootsd tag REF TAG")
    added = invocation.call(AddRequest(what, invocation.cwd, name, effect_of(dry_run=dry_run)))
    output = invocation.output
    answer = CommandResult.of(added, is_new=added["is_new"], dry_run=dry_run)
    output.show(answer, PROJECT_COLUMNS)
    (item,) = added["items"]
    shown = safe_label(item["name"])
    if not added["is_new"]:
        output.message(f"{shown} is already known: it is {item['verdict']}.")
    if dry_run:
        output.message(DRY_RUN_NOTICE)
    elif item["verdict"] == "pending":
        output.message(f"It needs your decision: rootsd approve {item['id']}")


def _add_workspace(
    invocation: Invocation, file: str, chosen_tag: str | None, *, dry_run: bool
) -> None:
    from rootsd.cli.answers import code_workspace

    workspace = code_workspace.read_folders(file)
    tag = chosen_tag or code_workspace.default_tag(file)
    paths, effect = workspace.paths, effect_of(dry_run=dry_run)
    added = invocation.call(AddFoldersRequest(paths, tag, effect))
    items, known = added["items"], added["unchanged"]
    warnings = [*workspace.warnings, *dict.fromkeys(added["warnings"])]
    if dry_run:
        items = [{"path": path} for path in paths]
    extra = {"tag": tag, "unchanged": known, "dry_run": dry_run}
    answer = CommandResult(items, added["revision"], warnings, extra)
    output = invocation.output
    output.show(answer, _PATHS if dry_run else PROJECT_COLUMNS)
    for item in known:
        if tag not in item["tags"] and item["verdict"] != "denied":
            output.message(
                f"{safe_label(item['name'])} is already {item['verdict']}; to add the tag: "
                f"rootsd tag {completion.word_for(item)} {tag}"
            )
    if dry_run:
        output.message(f"Dry run: they would get the tag {tag}; nothing was changed.")
    else:
        count = pluralize(len(items), "folder")
        next_step = ": rootsd review" if items else ""
        output.message(
            f"{count} proposed with the tag {tag}, {len(known)} already known{next_step}"
        )
