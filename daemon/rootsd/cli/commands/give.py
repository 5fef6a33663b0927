"""`rootsd give`: show copies of files to a program behind the wall."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict

import click

from rootsd.cli.answers.decisions import effect_of
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.answers.questions import Questions
from rootsd.cli.answers.walled_program import NoProgram, meant_program
from rootsd.cli.options import completion
from rootsd.cli.options.flags import pass_invocation, verb
from rootsd.cli.text.phrases import shown_path
from rootsd.cli.text.render import Column, CommandResult, path_column
from rootsd.core.errors import ErrorCode, Exit, RootsdError
from rootsd.core.labels import safe_label
from rootsd.core.paths import text_of
from rootsd.places.base_folders import WALLS
from rootsd.wire.wall import GiveRequest

if TYPE_CHECKING:
    from rootsd.wall.session.given_files import FileToGive

SECTION = "Decide"

_COLUMNS = (
    Column("PROGRAM", lambda item: item["program"]),
    path_column("FILE", lambda item: item["path"]),
    Column("RESULT", lambda item: item["result"]),
)


class SecretNotGiven(RootsdError):
    """A file that may hold a secret, and no person who agrees."""

    code = ErrorCode.REFUSED


class GivenItem(TypedDict):
    """A file."""

    program: str
    """The name of the program that gets it."""
    path: str
    """Where the program sees the copy."""
    result: str
    """`given`, `would be given`, or why the program does not see the copy."""


class GiveOutput(TypedDict):
    """The files."""

    items: list[GivenItem]
    """The files, in the order of the arguments."""
    dry_run: bool
    """Whether nothing was changed, because of `--dry-run`."""


@verb(
    "give",
    prints=(GiveOutput,),
    epilog="rootsd give ~/Downloads/screenshot.png\nrootsd give notes.txt --to claude",
)
@click.argument(
    "files", nargs=-1, required=True, metavar="FILE...", shell_complete=completion.files
)
@click.option("--to", metavar="NAME|PID", help="the program, as rootsd sessions lists it")
@click.option(
    "--dry-run", is_flag=True, help="only show what would be given, and to which program"
)
@pass_invocation
def command(
    invocation: Invocation, *, files: tuple[str, ...], to: str | None, dry_run: bool
) -> int:
    """Show copies of files to a program that runs behind the wall.

    The program sees each copy at the path of the file, without links on the way. It cannot change
    the copy, and later changes of the file do not reach it. The copies end with the program, or
    when you deny a folder that the file is in.

    Without --to, rootsd takes the program that sees the project of the working directory, if there
    is only one.

    A file may have at most 16 MiB, and the program must not see its folder already. If the file
    may hold a secret, give asks first. Without a terminal, it refuses.
    """
    from rootsd.wall.session.given_files import WrittenCopies, read_file
    from rootsd.wall.session.running_walls import folder_of

    found = list({file.path: file for file in map(read_file, files)}.values())
    program = meant_program(invocation, to, "give FILE")
    paths = tuple(text_of(file.path) for file in found)
    if dry_run:
        order = GiveRequest(program["id"], "", paths, effect_of(dry_run=True))
        problems = invocation.call(order)["problems"]
    else:
        _ask_about_secrets(invocation, found, program["name"])
        wall = folder_of(invocation.places.state + WALLS, program["pid"])
        if wall is None:
            raise NoProgram(f"{program['name']} has no folder here", "rootsd sessions")
        with WrittenCopies(wall, found) as copies:
            order = GiveRequest(program["id"], copies.name, paths)
            problems = invocation.call(order)["problems"]
            copies.are_shown = not all(problems)
    done = "would be given" if dry_run else "given"
    items = [
        {"program": program["name"], "path": path, "result": problem or done}
        for path, problem in zip(paths, problems, strict=True)
    ]
    invocation.output.show(CommandResult(items, extra={"dry_run": dry_run}), _COLUMNS)
    return Exit.REFUSED if any(problems) else Exit.OK


def _ask_about_secrets(invocation: Invocation, files: Sequence[FileToGive], program: str) -> None:
    """Ask about each file that may hold a secret. Raises SecretNotGiven."""
    questions = Questions(invocation, yes=False, dry_run=False)
    for file in files:
        if file.suspicion:
            shown = shown_path(file.path)
            why = f"{shown}: {safe_label(file.suspicion, limit=None)}"
            if not questions.agrees_to_decide(f"{why}. Give it to {program}?"):
                raise SecretNotGiven(f"nothing was given; {why}", "rootsd give on a terminal")
