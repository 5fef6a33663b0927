"""Say which entries a client's access lists get. `rootsd.agents` has the format of the lists."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence

from msgspec import Struct

from rootsd.agents import files_with, name_of
from rootsd.agents.forms.access import ListFormat, ListLine
from rootsd.agents.forms.place import Platform
from rootsd.sync.access import AccessLists, ClientOutcome, GrantedFolder
from rootsd.sync.entries import EntryKind, ListEntry


class Wanted(Struct, frozen=True):
    """The entries for one file, and the outcome if they can be written there.

    `projects` are the folders whose own settings can take denials away.
    """

    entries: tuple[ListEntry, ...] = ()
    outcome: ClientOutcome = ClientOutcome()
    projects: tuple[str, ...] = ()


class SyncTarget(Struct, frozen=True):
    """The lists of one client. `name` is that of the client, as in `rootsd connect`."""

    name: str
    format: ListFormat

    @property
    def always(self) -> list[ListEntry]:
        """The entries without a folder."""
        return [
            ListEntry(line.keys, line.text, EntryKind.DENIAL, line.value)
            for line in self.format.always
        ]

    def settings_file(self, home: str, variables: Mapping[str, str]) -> str:
        """Return the file in the home of the client that these surroundings name, after links."""
        return self.format.place.locate(home, variables, Platform.LINUX)  # on macOS, the same

    def merged_files(self, file: str) -> list[str]:
        """Return the files that the client merges with the settings `file`, the winner last.

        The settings file itself is in the list, also if it is missing.
        """
        files = [os.path.join(os.path.dirname(file), name) for name in self.format.merged_with]
        return [each for each in files if each == file or os.path.lexists(each)] or [file]

    def home_variables(self, file: str) -> dict[str, str]:
        """Return the variables that lead the client to the home that has `file`."""
        folder = os.path.dirname(file)
        if folder == os.path.dirname(self.settings_file(os.path.expanduser("~"), {})):
            return {}
        variable = self.format.place.variables[0]
        inside = os.path.dirname(variable.below)
        return {variable.name: folder.removesuffix(f"/{inside}") if inside else folder}

    def in_home(self, file: str, command: str) -> str:
        """Return a command of rootsd as a person types it for the home that has `file`."""
        variables = self.home_variables(file)
        name = self.format.place.variables[0].name
        front = [f"env -u {name}"] if os.environ.get(name) and not variables else []
        return " ".join(
            [*front, *(f"{k}={shlex.quote(v)}" for k, v in variables.items()), command]
        )

    def denial(self, path: str) -> list[ListEntry] | str:
        """Return the entries that deny a folder, or a clause that says why there are none."""
        return _lines(self.format.denial, path, EntryKind.DENIAL)

    def grant(self, folder: GrantedFolder) -> list[ListEntry] | str:
        """Return the entries that open a folder, or such a clause."""
        kept = () if folder.is_writable else self.format.read_only
        return _lines((*kept, *self.format.grant), folder.path, EntryKind.GRANT)

    def entries(self, lists: AccessLists) -> Wanted:
        """Return the entries for `lists`."""
        denials = [(path, self.denial(path)) for path in lists.denied]
        opened = lists.granted if self.format.grant else ()
        grants = [(each.path, self.grant(each)) for each in opened]
        omitted = [
            *lists.omitted,
            *(
                f"{path} is not {done} there: {why}"
                for done, found in (("denied", denials), ("opened", grants))
                for path, why in found
                if isinstance(why, str)
            ),
        ]
        denied = [found for _, found in denials if not isinstance(found, str)]
        granted = [found for _, found in grants if not isinstance(found, str)]
        entries = [entry for found in (*denied, *granted) for entry in found]
        outcome = ClientOutcome(len(denied), len(granted), omitted=tuple(omitted))
        return Wanted((*self.always, *entries), outcome)


def _lines(lines: Sequence[ListLine], path: str, kind: EntryKind) -> list[ListEntry] | str:
    """Return the entries of `lines` for `path`, or a clause that says why there are none."""
    if why := next(filter(None, (_refusal(path, line) for line in lines)), None):
        return why
    return [
        ListEntry(line.keys, line.text.format(_escaped(path, line)), kind, line.value)
        for line in lines
    ]


def _escaped(path: str, line: ListLine) -> str:
    return path.translate({ord(char): f"\\{char}" for char in line.escaped})


def _refusal(path: str, line: ListLine) -> str | None:
    """Return why `path` cannot be written, or None.

    Only characters that a person can see are written. So no path can end a line or hide its end.
    """
    if not path.isprintable() or path != path.strip():
        return "its path has invisible characters"
    if line.trims_names and any(part != part.rstrip() for part in path.split("/")):
        return "a name in its path ends with a space"
    if found := sorted(set(line.special) & set(path)):
        return f"{found[0]} has another meaning in this client's lists"
    return None


TARGETS = {
    name_of(agent): SyncTarget(name_of(agent), agent.access()) for agent in files_with("access")
}
"""The clients whose lists can be synced, by name."""
