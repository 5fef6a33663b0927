"""List what programs behind the wall keep, and remove it if a person says so."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rootsd.cli.answers.decisions import DRY_RUN_NOTICE
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.answers.questions import Questions
from rootsd.cli.text.phrases import bytes_of
from rootsd.cli.text.render import Column, CommandResult, path_column, time_column
from rootsd.core.errors import Busy, ErrorCode, Exit, RootsdError, Unconfirmed
from rootsd.core.labels import safe_label
from rootsd.core.paths import text_of
from rootsd.places.base_folders import folder_name
from rootsd.wall.session.kept_names import KeptName, kept_names, remove_kept


class NothingKept(RootsdError):
    """A name that keeps nothing."""

    code = ErrorCode.NOTHING_MATCHED


class NotRemoved(RootsdError):
    """A folder that could not be removed."""


_COLUMNS = (
    Column("NAME", lambda item: item["name"]),
    Column("SIZE", lambda item: str(item["size"]), short=lambda item: bytes_of(item["size"])),
    time_column("USED", "used"),
    Column("RUNNING", lambda item: "runs" if item["running"] else ""),
    path_column("FOLDER", lambda item: item["folder"]),
)


def clean(invocation: Invocation, names: Sequence[str], *, yes: bool, dry_run: bool) -> int:
    """List what is kept, for all names or these, and remove it after a question.

    Raises NothingKept, Busy, and Unconfirmed.
    """
    kept = _find(invocation, names)
    idle = [each for each in kept if not each.is_running]
    removed = idle if yes or dry_run else []
    output = invocation.output
    if not output.is_json:
        output.show(CommandResult([_item(each) for each in kept]), _COLUMNS)
    if names and len(idle) < len(kept):
        name = next(each.name for each in kept if each.is_running)
        raise Busy(f"{name} runs behind the wall, so nothing was removed", "rootsd sessions")
    if not kept:
        output.message("Nothing is kept.")
    elif idle and not removed:
        removed = _confirmed(invocation, idle)
    if not dry_run:
        for each in removed:
            _remove(each)
    if output.is_json:
        gone = {"removed": [each.name for each in removed], "dry_run": dry_run}
        output.object(CommandResult([_item(each) for each in kept], extra=gone))
    elif dry_run:
        output.message(DRY_RUN_NOTICE)
    elif removed:
        output.message(f"Removed {_describe(removed)}.")
    return Exit.OK


def _find(invocation: Invocation, names: Sequence[str]) -> list[KeptName]:
    """Return what is kept, for all names or these. Raises NothingKept."""
    found = list(kept_names(invocation.places.state))
    wanted = {os.fsdecode(folder_name(name)): name for name in names}
    for folder, name in wanted.items():
        if folder not in {each.name for each in found}:
            raise NothingKept(f"nothing is kept for {name}", "rootsd confine --clean")
    return [each for each in found if not names or each.name in wanted]


def _remove(kept: KeptName) -> None:
    try:
        remove_kept(kept)
    except OSError as error:
        shown = safe_label(kept.folder, limit=None)
        raise NotRemoved(
            f"{shown} cannot be removed: {error.strerror}", f"ls -la {shown}"
        ) from error


def _confirmed(invocation: Invocation, kept: list[KeptName]) -> list[KeptName]:
    """Return what a person agrees to remove. Raises Unconfirmed if nobody can be asked."""
    questions = Questions(invocation, yes=False, dry_run=False)
    if not questions.has_person:
        names = "".join(f" {each.name}" for each in kept)
        raise Unconfirmed(
            f"nobody can be asked whether to remove {_describe(kept)}, so nothing was removed",
            f"rootsd confine --clean --yes{names}",
        )
    agrees = questions.agrees_to_decide(f"Remove {_describe(kept)}?")
    return kept if agrees else []


def _describe(kept: Sequence[KeptName]) -> str:
    size = bytes_of(sum(each.size for each in kept))
    return f"what is kept for {', '.join(each.name for each in kept)} ({size})"


def _item(kept: KeptName) -> Mapping[str, Any]:
    used = datetime.fromtimestamp(kept.used, UTC).isoformat(timespec="seconds")
    folder = text_of(kept.folder)
    return {
        "name": kept.name, "size": kept.size, "used": used, "running": kept.is_running,
        "folder": folder,
    }  # fmt: skip
