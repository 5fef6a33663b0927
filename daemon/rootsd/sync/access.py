"""Choose the folders for a client's access lists from the projects that the daemon lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct

MAX_GRANTS = 20
"""The most grants for one client. A list in a user's settings reaches every session, so it is not
meant for everything that is approved.
"""
MAX_DENIALS = 500


class GrantedFolder(Struct, frozen=True):
    """A folder that a client may open; `is_writable` says whether it may change files there."""

    path: str
    is_writable: bool


class ClientOutcome(Struct, frozen=True):
    """The outcome for one settings file: how many folders are denied and granted there.

    `problem` says why the file could not be written, and `omitted` has a sentence for each folder
    that cannot be written there.
    """

    denied: int = 0
    granted: int = 0
    problem: str = ""
    omitted: tuple[str, ...] = ()


class AccessLists(Struct, frozen=True):
    """The folders for one client, before its format decides which of them it can express.

    `omitted` has a sentence for each that is left out.
    """

    denied: tuple[str, ...] = ()
    granted: tuple[GrantedFolder, ...] = ()
    omitted: tuple[str, ...] = ()


def choose_access(
    denied: Iterable[Mapping[str, Any]],
    published: Iterable[Mapping[str, Any]],
    tag: str | None,
    is_written: Callable[[str], bool],
) -> AccessLists:
    """Return the lists for a client that gets the roots with `tag`, or no grants without one.

    `denied` and `published` are project items of `rootsd/1`. A root that is approved for one
    session is left out: the list would reach all sessions. `is_written` says whether the client's
    list has the denial of a path. Such a denial is not left out for another one: a broken policy
    denies every project, and must not open one that a person denied.
    """
    omitted = []
    paths = []
    for item in denied:
        if item["kind"] == "uri":
            continue
        if item["path"] is None:
            omitted.append(f"{item['name']} is not denied there: its path is not UTF-8")
        else:
            paths.append(item["path"])
    outermost = _outermost(paths)
    if len(outermost) > MAX_DENIALS:
        count = len(outermost) - MAX_DENIALS
        omitted.append(f"{count} denials are left out, after {MAX_DENIALS}")
        holders = frozenset(outermost)
        written = {_holder(path, holders) for path in paths if is_written(path)}
        outermost.sort(key=lambda path: path not in written)
    grants = [] if tag is None else [item for item in published if _is_for(item, tag)]
    if len(grants) > MAX_GRANTS:
        omitted.append(f"{len(grants) - MAX_GRANTS} grants are left out, after {MAX_GRANTS}")
    granted = [
        GrantedFolder(item["path"], item["access"] == "read-write")
        for item in sorted(grants, key=lambda item: str(item["path"]))
    ]
    chosen = _outermost(outermost[:MAX_DENIALS])
    return AccessLists(tuple(chosen), tuple(granted[:MAX_GRANTS]), tuple(omitted))


def _is_for(item: Mapping[str, Any], tag: str) -> bool:
    is_folder = item["kind"] != "uri" and item["path"] is not None
    return is_folder and item["published"] and not item.get("session") and tag in item["tags"]


def _outermost(paths: Iterable[str]) -> list[str]:
    """Return the paths that lie in no other one, sorted."""
    kept: list[str] = []
    for path in sorted(paths, key=lambda path: path.split("/")):
        if not kept or not f"{path}/".startswith(f"{kept[-1].rstrip('/')}/"):
            kept.append(path)
    return kept


def _holder(path: str, outermost: frozenset[str]) -> str:
    """Return the one of `outermost` that is `path` or contains it."""
    while path not in outermost:
        path = path.rpartition("/")[0] or "/"
    return path
