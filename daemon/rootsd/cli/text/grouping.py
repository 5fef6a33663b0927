"""Group the projects of a listing by folder, for a person on a terminal.

A project belongs to the folder above it. A folder with one project would need two lines for it, so
the project moves to the next folder above, up to the configured parent. What is left are few
headings, and each one stands above the projects that a person thinks of together.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from rootsd.cli.text.layout import ColumnFit
from rootsd.cli.text.phrases import shorten_home
from rootsd.cli.text.projects import OWNER, PATH, path_of
from rootsd.cli.text.render import Column, TableGroup

Item = Mapping[str, Any]

_NO_FOLDER = "URIs"


class FolderGroup(Struct, frozen=True):
    """The projects below `folder`, which is empty for URIs.

    `owner` is the owner of all their origins, or empty if they have not the same one.
    """

    folder: str
    items: Sequence[Item]
    owner: str

    @property
    def heading(self) -> str:
        """The line above the projects, without the owner."""
        return shorten_home(self.folder) if self.folder else _NO_FOLDER

    def path_below(self, item: Item) -> str:
        """Return the path of a project below the folder; empty if it is the end of its name."""
        path = path_of(item)
        below = path[len(self.folder.rstrip("/")) + 1 :] if self.folder else path
        return "" if f"/{item['name']}".endswith(f"/{below}") else below


def by_folder(items: Sequence[Item]) -> list[FolderGroup]:
    """Return the groups of `items`, in the order of their first members."""
    members: dict[str, list[int]] = {}
    for number, item in enumerate(items):
        path = path_of(item)
        folder = posixpath.dirname(path) if path.startswith("/") else ""
        members.setdefault(folder, []).append(number)
    # A folder comes before those above it, so one that moved up can move on.
    for folder in sorted(members, key=lambda each: each.count("/"), reverse=True):
        _move_up(members, folder, items)
    return [
        _group(folder, [items[number] for number in sorted(numbers)])
        for folder, numbers in sorted(members.items(), key=lambda each: min(each[1]))
    ]


def _move_up(members: dict[str, list[int]], folder: str, items: Sequence[Item]) -> None:
    """Move a project that is alone in its folder up to a folder with others, or to its parent."""
    [first, *others] = members[folder]
    top = items[first].get("parent")
    above = folder
    while not others and top and above.startswith(f"{top.rstrip('/')}/"):
        above = posixpath.dirname(above)
        others = members.get(above, [])
    if above != folder:
        del members[folder]
        members[above] = [*others, first]


def _group(folder: str, items: Sequence[Item]) -> FolderGroup:
    owners = {item.get("origin_owner") for item in items}
    return FolderGroup(folder, items, (owners.pop() or "") if len(owners) == 1 else "")


def grouped_table(
    groups: Sequence[FolderGroup], columns: Iterable[Column]
) -> tuple[list[TableGroup], list[Column]]:
    """Return the groups with their headings, and the columns to show below these.

    The columns PATH and OWNER have only what a heading or a name does not say, and are left out if
    that is nothing.
    """
    members = [(group, item) for group in groups for item in group.items]
    paths = {item["id"]: group.path_below(item) for group, item in members}
    owners = {item["id"]: "" if group.owner else OWNER.cell(item) for group, item in members}
    shown = []
    for column in columns:
        if column is PATH and any(paths.values()):
            shown.append(replace(PATH, short=lambda item: paths[item["id"]], fit=ColumnFit.NOTE))
        elif column is OWNER and any(owners.values()):
            shown.append(replace(OWNER, short=lambda item: owners[item["id"]], fit=ColumnFit.NOTE))
        elif column is not PATH and column is not OWNER:
            shown.append(column)
    return [TableGroup(group.heading, group.owner, group.items) for group in groups], shown
