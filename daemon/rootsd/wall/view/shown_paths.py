"""Keep what a view shows of the paths that somebody's settings name, and judge each path.

Nothing shows the home folder, a wide folder such as `.config`, a project, a file of another user,
or what sounds like a secret. A link leads to a place that is judged alike. Each refusal is a
`LeftOut`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rootsd.core.labels import home_label
from rootsd.core.mount_plan import ViewEntry, ViewEntryKind
from rootsd.core.paths import PRIVATE_IN_HOME, ancestors, contains, text_of
from rootsd.core.project_kind import PROJECT_FILES, VCS_NAMES
from rootsd.core.secret_names import is_secret_name, secret_part
from rootsd.disk.links import MAX_LINKS, final_path
from rootsd.wall.view.default_view import is_system
from rootsd.wall.view.known_settings import LOGINS, WIDE
from rootsd.wall.view.token_files import hidden_tokens

_SHOWN = frozenset(
    (ViewEntryKind.READ, ViewEntryKind.CACHE, ViewEntryKind.TOOLS, ViewEntryKind.WRITE)
)
_FOLLOWED = frozenset((*_SHOWN, ViewEntryKind.LINK))
_KERNEL = (b"/proc/", b"/sys/", b"/dev/")


class LeftOut(NamedTuple):
    """A path that something names and the view does not have as it is, why, and what opens it."""

    path: bytes
    named_by: str
    why: str
    remedy: str

    def sentence(self, home: bytes) -> str:
        """Return the words for people."""
        return f"{home_label(self.path, home)}, for {self.named_by}: {self.why} ({self.remedy})"


class ShownPaths:
    """The entries of a view. What comes first stays.

    `home` is real. The `roots` are visible anyway, and nothing in a `denied` folder is.
    """

    def __init__(
        self, home: bytes, uid: int, roots: Iterable[bytes], denied: Iterable[bytes]
    ) -> None:
        self.home = home
        self.left_out: dict[bytes, LeftOut] = {}
        self._uid = uid
        self._roots = tuple(roots)
        self._denied = frozenset(denied)
        self._entries: dict[bytes, ViewEntry] = {}
        self._dotfiles: set[bytes] = set()
        self._is_project_at: dict[bytes, bool] = {}

    def entries(self) -> Iterator[ViewEntry]:
        """Yield the entries, each at a path without links on the way."""
        links = {path for path, each in self._entries.items() if each.kind is ViewEntryKind.LINK}
        for path, entry in self._entries.items():
            around = (self._entries.get(each) for each in ancestors(path))
            if entry.kind in _SHOWN and entry.kind in (each.kind for each in around if each):
                continue
            if links.isdisjoint(ancestors(path)):
                yield entry
                continue
            place = os.path.join(final_path(os.path.dirname(path)), os.path.basename(path))
            if not self.is_shown(place):
                yield entry._replace(path=place)

    def add_dotfiles(self, names: Iterable[bytes]) -> None:
        """Know the projects to which settings with these usual names are linked as dotfiles."""
        for name in names:
            path = self.home + b"/" + name
            real = final_path(path)
            usual = os.path.basename(name).lstrip(b".")
            if real != path and os.path.basename(real).lstrip(b".").startswith(usual):
                self._dotfiles.update(filter(None, [self._project_of(real)]))

    def add_base(self, base: Iterable[ViewEntry]) -> None:
        """Add the entries that every person has, and what those lead to that are links."""
        linked = list[ViewEntry]()
        for entry in base:
            is_named = entry.path != self.home and contains(self.home, entry.path)
            if is_named and entry.kind in _FOLLOWED and final_path(entry.path) != entry.path:
                linked.append(entry)
            else:
                self._entries[entry.path] = entry
        for entry in linked:
            is_link = entry.kind is ViewEntryKind.LINK
            kind = ViewEntryKind.READ if is_link else entry.kind
            self.add(entry.path, entry.reason, kind)

    def put(self, entry: ViewEntry) -> None:
        """Add a link or a copy as it is, unless there is an entry for its path."""
        self._entries.setdefault(entry.path, entry)

    def hide_tokens(self, place: bytes, usual: bytes) -> None:
        """Hide the logins in a tool that usually lies at `usual` in the home folder."""
        self._entries |= {entry.path: entry for entry in hidden_tokens(place, usual)}

    def is_dotfile(self, path: bytes) -> bool:
        """Return whether a path leads into a project with somebody's dotfiles."""
        return self._project_of(final_path(path)) in self._dotfiles

    def add(
        self, path: bytes, named_by: str, kind: ViewEntryKind = ViewEntryKind.READ
    ) -> bytes | None:
        """Add a file or a folder as a whole, and return its place if it may be shown."""
        place = self.follow(path, named_by)
        if place is None or is_system(final_path(place)):
            return None
        if self.is_shown(place):
            return place
        names = names_in(place)
        if names and self.is_dotfile(place):
            self.leave_out(path, named_by, "it is a folder of your dotfiles")
            return None
        if any(os.path.lexists(b"%s/%s/.git" % (place, name)) for name in names):
            self.leave_out(path, named_by, "it holds a project")
            return None
        self.show(place, named_by, kind)
        logins = (name for name in LOGINS if os.path.exists(place + b"/" + name))
        for name in (*filter(is_secret_name, names), *logins):
            self.hide(place + b"/" + name, named_by, "its name sounds like secrets")
        return place

    def refuse(self, path: bytes, named_by: str, why: str) -> None:
        """Leave out a folder, with a better reason if there is one."""
        if self.follow(path, named_by) is not None:
            self.leave_out(path, named_by, why)

    def show(self, place: bytes, named_by: str, kind: ViewEntryKind = ViewEntryKind.READ) -> None:
        """Show a place that was judged. A file is always to read."""
        if not self.is_shown(place):
            kind = kind if os.path.isdir(place) else ViewEntryKind.READ
            self._entries[place] = ViewEntry(place, kind, named_by)

    def hide(self, path: bytes, named_by: str, why: str) -> None:
        """Leave out a file, also where the folder around it is shown."""
        self.leave_out(path, named_by, why)
        if self.is_shown(path):
            self._entries[path] = ViewEntry(path, ViewEntryKind.HIDDEN, f"{named_by}: {why}")

    def leave_out(self, path: bytes, named_by: str, why: str, remedy: str = "") -> None:
        """Say why a path is not shown as it is. The first reason stays."""
        remedy = remedy or f"--read {home_label(path, self.home)}"
        self.left_out.setdefault(path, LeftOut(path, named_by, why, remedy))

    def is_in_root(self, path: bytes) -> bool:
        """Return whether a root has a path."""
        return any(contains(each, path) for each in self._roots)

    def is_shown(self, path: bytes) -> bool:
        """Return whether the view has a path already, with everything in it."""
        if self.is_in_root(path):
            return True
        for each in (path, *ancestors(path)):
            if (entry := self._entries.get(each)) is not None:
                return entry.kind in _SHOWN
        return False

    def follow(self, path: bytes, named_by: str, name: bytes = b"") -> bytes | None:
        """Add the links at `path`, and return where they lead; None if that must not be shown.

        It is no reason against settings with a known `name` that the name is one of secrets.
        """
        if not os.path.lexists(path) or path.startswith(_KERNEL):
            return None
        links: list[ViewEntry] = []
        place = b"/" + os.path.normpath(path).lstrip(b"/")
        try:
            while os.path.islink(place) and len(links) < MAX_LINKS:
                links.append(ViewEntry(place, ViewEntryKind.LINK, named_by, os.readlink(place)))
                place = os.path.normpath(os.path.join(os.path.dirname(place), links[-1].target))
            # The text cannot tell where `..` after a link leads, or a link of the kernel.
            if place.startswith(_KERNEL) or not os.path.samefile(place, path):
                links, place = [], final_path(path)
            real = final_path(place)
            refusal = self._refusal(real, os.stat(real), os.path.basename(name))
        except (OSError, ValueError):
            return None
        if refusal is not None:
            self.leave_out(path, named_by, *refusal)
            return None
        if self._is_closed(real):
            return None
        if self.is_in_root(real):
            place = real
        for link in links:
            if not self.is_shown(link.path):
                self.put(link)
        return place

    def _refusal(self, real: bytes, found: os.stat_result, name: bytes) -> tuple[str, str] | None:
        """Return why a real path is not shown, and what opens it; or None."""
        if is_system(real) or self.is_in_root(real):
            return None
        if contains(real, self.home):
            return "it holds the home folder", "--read FOLDER"
        inside = real[len(self.home) + 1 :] if contains(self.home, real) else b""
        if inside in WIDE:
            return "it holds more than tools or settings", "--read FOLDER"
        read = f"--read {home_label(real, self.home)}"
        judged = inside or real
        if name and os.path.basename(real) == name:
            judged = os.path.dirname(judged)
        if (part := secret_part(judged)) is not None:
            return f"{text_of(part)} sounds like secrets", read
        above = () if inside else ancestors(real)
        owners = {found.st_uid, *(os.stat(each).st_uid for each in above)}
        if not owners <= {0, self._uid}:
            return "it belongs to another user", read
        if any(contains(real, each) for each in (*self._roots, *self._denied)):
            return "it holds a project", read
        top = self._project_of(real)
        if top is not None and (top not in self._dotfiles or real == top):
            return f"it is in the project {home_label(top, self.home)}", read
        return None

    def _project_of(self, real: bytes) -> bytes | None:
        """Return the checkout, or the folder with a project file, that `real` is in, or None."""
        above = [real, *ancestors(real)]
        if contains(self.home, real):
            above = above[: above.index(self.home)]
            if above and os.path.basename(above[-1]) in PRIVATE_IN_HOME:
                return None  # no folder there can be a root
        return next((each for each in above if self._is_project(each)), None)

    def _is_closed(self, real: bytes) -> bool:
        """Return whether a path is denied, or a known secret."""
        above = (real, *ancestors(real))
        entries = (self._entries[each] for each in above if each in self._entries)
        is_hidden = any(entry.kind is ViewEntryKind.HIDDEN for entry in entries)
        return is_hidden or real.startswith(_KERNEL) or any(each in self._denied for each in above)

    def _is_project(self, folder: bytes) -> bool:
        if folder not in self._is_project_at:
            is_hidden = b"/." in folder.removeprefix(self.home)
            names = VCS_NAMES if is_hidden else VCS_NAMES | PROJECT_FILES
            self._is_project_at[folder] = not names.isdisjoint(names_in(folder))
        return self._is_project_at[folder]


def names_in(folder: bytes) -> list[bytes]:
    """Return the names in a folder; none if it cannot be listed."""
    try:
        return os.listdir(folder)
    except OSError:
        return []
