"""What the screen shows: projects, sessions, and confined programs as rows, in order. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cached_property
from typing import Any

from msgspec import Struct, field

from rootsd.cli.text.phrases import shorten_home
from rootsd.cli.text.projects import path_of
from rootsd.wire.follow import ProjectGroup


class PanelKind(Enum):
    """The three lists of the screen."""

    PENDING = "Pending"
    ROOTS = "Roots"
    SESSIONS = "Sessions"


class ProjectRow(Struct, frozen=True, dict=True):
    """A project. All texts are untrusted.

    It has the part of a `ProjectItem` that the lists show, because there may be thousands.
    """

    id: str
    name: str
    path: str
    group: ProjectGroup
    is_published: bool
    access: str
    tags: tuple[str, ...]
    request: str
    note: str
    identity: str
    kind: str

    @classmethod
    def of(cls, group: str, item: Mapping[str, Any]) -> ProjectRow:
        """Return the row of an item."""
        return cls(
            item["id"],
            item["name"],
            path_of(item),
            ProjectGroup(group),
            item["published"],
            item["access"],
            tuple(item["tags"]),
            item.get("request", ""),
            item["note"] or "",
            item.get("identity", ""),
            item["kind"],
        )

    @cached_property
    def text(self) -> str:
        """The text that a search looks through, in lower case."""
        tags = " ".join(f"#{tag}" for tag in self.tags)
        return f"{self.name} {shorten_home(self.path)} {tags} {self.kind} {self.note}".lower()


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


Row = ProjectRow | SessionRow


class Board(Struct):
    """Everything that the daemon has sent, as its changes (`ScreenChange`) add up.

    `is_complete` is false while the first part arrives.
    """

    projects: dict[str, ProjectRow] = field(default_factory=dict)
    sessions: Sequence[SessionRow] = ()
    confined: Sequence[SessionRow] = ()
    focus: str | None = None
    is_complete: bool = False

    def apply(self, change: Mapping[str, Any]) -> None:
        """Apply a `FeedChange` for a screen."""
        update = change["screen"]
        for each in update["projects"]:
            row = ProjectRow.of(each["group"], each["item"])
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

    def rows(self, kind: PanelKind) -> list[Row]:
        """Return the rows of a panel in order: requests first, then projects by path."""
        match kind:
            case PanelKind.PENDING:
                pending = self._in_group(ProjectGroup.PENDING)
                return [*sorted(pending, key=lambda row: (not row.request, row.path))]
            case PanelKind.ROOTS:
                approved = self._in_group(ProjectGroup.APPROVED)
                return [*sorted(approved, key=lambda row: (row.name, row.path))]
            case PanelKind.SESSIONS:
                return [*self.sessions, *self.confined]

    def tags(self) -> list[str]:
        """Return all tags of projects."""
        return sorted({tag for row in self.projects.values() for tag in row.tags})

    def _in_group(self, group: ProjectGroup) -> Iterator[ProjectRow]:
        return (row for row in self.projects.values() if row.group is group)


def search(rows: Iterable[Row], typed: str) -> list[Row]:
    """Return the rows that contain each of the typed words, in any case."""
    words = typed.lower().split()
    return [row for row in rows if all(word in row.text for word in words)]
