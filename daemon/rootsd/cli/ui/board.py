"""What the screen shows: projects, sessions, and confined programs as rows, in order. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cached_property
from typing import Any

from msgspec import Struct, field

from rootsd.cli.text.grouping import by_folder
from rootsd.cli.text.phrases import shorten_home
from rootsd.cli.text.projects import OWNER, path_of
from rootsd.cli.text.sorting import READ_FROM_DISK, in_order_of
from rootsd.wire.follow import ProjectGroup

SORTS = ("name", "age", "risk", "from", "kind")
"""The orders of `rootsd.cli.text.sorting` that a key chooses, besides the usual one."""
_FACTS = ("risk", "findings", "origin_owner")


class PanelKind(Enum):
    """The three lists of the screen."""

    PENDING = "Pending"
    ROOTS = "Roots"
    SESSIONS = "Sessions"


class ProjectRow(Struct, frozen=True, dict=True):
    """A project. `item` is a `ProjectItem`, whose texts are untrusted."""

    group: ProjectGroup
    item: Mapping[str, Any]

    @property
    def id(self) -> str:
        """The id of the project."""
        return str(self.item["id"])

    @property
    def name(self) -> str:
        """The name of the project."""
        return str(self.item["name"])

    @property
    def identity(self) -> str:
        """What identifies the folder that the row is about."""
        return str(self.item.get("identity", ""))

    @property
    def request(self) -> str:
        """Which sessions request it, and why, or empty."""
        return str(self.item.get("request", ""))

    @cached_property
    def path(self) -> str:
        """The path, or the URI."""
        return path_of(self.item)

    @cached_property
    def text(self) -> str:
        """The text that a search looks through, in lower case."""
        tags = " ".join(f"#{tag}" for tag in self.item["tags"])
        words = (self.name, shorten_home(self.path), tags, self.item["kind"], self.item["note"])
        return " ".join(word or "" for word in words).lower()


class SessionRow(Struct, frozen=True, dict=True):
    """A session or a confined program. `item` is untrusted, too."""

    id: str
    name: str
    is_confined: bool
    item: Mapping[str, Any]

    @cached_property
    def text(self) -> str:
        """The text that a search looks through, in lower case."""
        return f"{self.name} {self.item['pid']} {' '.join(self.item['scope'])}".lower()


class GroupRow(Struct, frozen=True):
    """A heading above projects of one folder or owner, which is untrusted text, too."""

    id: str
    name: str
    members: tuple[ProjectRow, ...]

    @property
    def text(self) -> str:
        """Nothing, so that a search finds projects only."""
        return ""


Row = ProjectRow | SessionRow | GroupRow


class Grouping(Enum):
    """What the projects of a list are grouped by."""

    NONE = "no groups"
    FOLDER = "by folder"
    OWNER = "by owner"


class Order(Struct, frozen=True):
    """How a person wants to see the projects. Usually, requests come first, then paths."""

    sort: str | None = None
    grouping: Grouping = Grouping.NONE
    shows_denied: bool = False

    @property
    def needs_facts(self) -> bool:
        """Whether the order depends on facts that are read from the disk."""
        return self.sort in READ_FROM_DISK or self.grouping is Grouping.OWNER


class Board(Struct):
    """Everything that the daemon has sent, as its changes (`ScreenChange`) add up.

    `facts` are the risks and owners of projects, by id, which are read for the rows on the screen.
    `is_complete` is false while the first part arrives.
    """

    projects: dict[str, ProjectRow] = field(default_factory=dict)
    facts: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    sessions: Sequence[SessionRow] = ()
    confined: Sequence[SessionRow] = ()
    focus: str | None = None
    is_complete: bool = False

    def apply(self, change: Mapping[str, Any]) -> None:
        """Apply a `FeedChange` for a screen."""
        update = change["screen"]
        for each in update["projects"]:
            row = ProjectRow(ProjectGroup(each["group"]), each["item"])
            before = self.projects.get(row.id)
            if before is not None and before.identity != row.identity:
                self.facts.pop(row.id, None)
            self.projects[row.id] = row
        for id_ in update["gone"]:
            self.projects.pop(id_, None)
        if update["sessions"] is not None:
            self.sessions = [
                SessionRow(item["id"], item["client"] or "?", is_confined=False, item=item)
                for item in update["sessions"]
            ]
        if update["confined"] is not None:
            self.confined = [
                SessionRow(item["id"], item["name"], is_confined=True, item=item)
                for item in update["confined"]
            ]
        self.focus = change["focus"]
        self.is_complete = update["is_complete"]

    def cells_of(self, row: ProjectRow | SessionRow) -> Mapping[str, Any]:
        """Return all that the columns of a list show of a row."""
        if isinstance(row, SessionRow):
            return row.item
        return {**row.item, **self.facts.get(row.id, {}), "group": row.group}

    def add_facts(self, ids: Sequence[str], items: Iterable[Mapping[str, Any]]) -> None:
        """Add what was read about projects. Those that could not be read are not read again."""
        self.facts.update((id_, {"risk": None}) for id_ in ids)
        self.facts.update(
            (item["id"], {key: item[key] for key in _FACTS if key in item}) for item in items
        )

    def rows(self, kind: PanelKind, order: Order) -> list[Row]:
        """Return the rows of a panel in order."""
        if kind is PanelKind.SESSIONS:
            return [*self.sessions, *self.confined]
        group = ProjectGroup.APPROVED if kind is PanelKind.ROOTS else ProjectGroup.PENDING
        rows = [row for row in self.projects.values() if row.group is group]
        if kind is PanelKind.ROOTS:
            rows.sort(key=lambda row: (row.name, row.path))
        else:
            rows.sort(key=lambda row: (not row.request, row.path))
        if order.sort is not None:
            items = in_order_of(map(self.cells_of, rows), order.sort)
            rows = [self.projects[item["id"]] for item in items]
        if order.shows_denied and kind is PanelKind.PENDING:
            denied = (row for row in self.projects.values() if row.group is ProjectGroup.DENIED)
            rows += sorted(denied, key=lambda row: row.path)
        return [*rows] if order.grouping is Grouping.NONE else [*self._grouped(rows, order)]

    def tags(self) -> list[str]:
        """Return all tags of projects."""
        return sorted({tag for row in self.projects.values() for tag in row.item["tags"]})

    def roots(self) -> list[str]:
        """Return the names of all folders that are published."""
        rows = self.rows(PanelKind.ROOTS, Order())
        return [row.name for row in rows if isinstance(row, ProjectRow) and row.item["published"]]

    def _grouped(self, rows: Sequence[ProjectRow], order: Order) -> Iterator[Row]:
        """Yield the rows below the headings of their groups."""
        items = [self.cells_of(row) for row in rows]
        if order.grouping is Grouping.FOLDER:
            groups = [(group.heading, group.items) for group in by_folder(items)]
        else:
            by_owner: dict[str, list[Mapping[str, Any]]] = {}
            for item in items:
                by_owner.setdefault(OWNER.cell(item) or "no owner", []).append(item)
            groups = sorted(by_owner.items())
        for heading, members in groups:
            of_group = tuple(self.projects[item["id"]] for item in members)
            yield GroupRow(f"group {heading}", heading, of_group)
            yield from of_group


def search(rows: Iterable[Row], typed: str) -> list[Row]:
    """Return the rows that contain each of the typed words, in any case."""
    words = typed.lower().split()
    return [row for row in rows if all(word in row.text for word in words)]
