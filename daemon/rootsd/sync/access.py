"""Choose the folders for a client's access lists from the projects that the daemon lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

MAX_GRANTS = 20
"""The most grants for one client. A list in a user's settings reaches every session, so it is not
meant for everything that is approved.
"""
MAX_DENIALS = 500


@dataclass(frozen=True, slots=True)
class GrantedFolder:
    """A folder that a client may open; `is_writable` says whether it may change files there."""

    path: str
    is_writable: bool


@dataclass(frozen=True, slots=True)
class AccessLists:
    """The folders for one client. `omitted` has a sentence for each that is left out."""

    denied: tuple[str, ...] = ()
    granted: tuple[GrantedFolder, ...] = ()
    omitted: tuple[str, ...] = ()


NO_ACCESS = AccessLists()


def choose_access(
    denied: Iterable[Mapping[str, Any]], published: Iterable[Mapping[str, Any]], tag: str | None
) -> AccessLists:
    """Return the lists for a client that gets the roots with `tag`, or no grants without one.

    `denied` and `published` are project items of `rootsd/1`. A root that is approved for one
    session is left out: the list would reach all sessions.
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
    paths = _outermost(paths)
    if len(paths) > MAX_DENIALS:
        omitted.append(f"{len(paths) - MAX_DENIALS} denials are left out, after {MAX_DENIALS}")
    grants = [] if tag is None else [item for item in published if _is_for(item, tag)]
    if len(grants) > MAX_GRANTS:
        omitted.append(f"{len(grants) - MAX_GRANTS} grants are left out, after {MAX_GRANTS}")
    granted = [
        GrantedFolder(item["path"], item["access"] == "read-write")
        for item in sorted(grants, key=lambda item: str(item["path"]))
    ]
    return AccessLists(tuple(paths[:MAX_DENIALS]), tuple(granted[:MAX_GRANTS]), tuple(omitted))


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
