"""Keep what programs behind walls may write from being run outside, by the relay for git.

A person often has a folder of a project in PATH, such as a virtual environment, or settings of git
and ssh that lead into a repository of dotfiles. If a program can write there, it would choose what
the relay runs. So PATH and the environment lose such folders, and nothing runs whose command or
settings lie in one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress

from rootsd.core.paths import contains
from rootsd.places.runtime_dir import home_folder

_AROUND_PATHS = bytes.maketrans(b"\t\r\n'\"`;&|()<>=,:{}", b" " * 18)
_RUN = (b"sh", b"git", b"ssh", b"grep")  # what the relay starts by name
_MAX_SETTINGS_BYTES = 1 << 18


class WrittenFolders:
    """Folders that programs behind walls may write, or could write once."""

    def __init__(self, folders: Iterable[bytes]) -> None:
        self._folders = frozenset(folders)

    def hold(self, path: bytes) -> bool:
        """Return whether a path lies in one of them, or leads there."""
        return any(
            contains(folder, each)
            for each in {os.path.normpath(path), os.path.realpath(path)}
            for folder in self._folders
        )

    def are_named_in(self, text: bytes) -> bool:
        """Return whether a command, a setting, or a variable may name something in them."""
        home = home_folder()
        text = text.replace(b"\\", b"").replace(b"${HOME}", home).replace(b"$HOME", home)
        if any(folder + b"/" in text for folder in self._folders):
            return True  # also between spaces
        for word in text.translate(_AROUND_PATHS).split():
            _, tilde, rest = word.partition(b"~/")
            _, slash, below = word.partition(b"/")
            if (tilde and self.hold(home + b"/" + rest)) or (slash and self.hold(slash + below)):
                return True
        return False

    def environment(self, outside: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
        """Return the variables that name nothing in these folders, and the rest of PATH."""
        found = {name: text for name, text in outside.items() if not self.are_named_in(text)}
        places = outside.get(b"PATH", os.defpath.encode()).split(b":")
        return {**found, b"PATH": b":".join(each for each in places if self._is_trusted(each))}

    def change_ssh(self) -> bool:
        """Return whether the person's settings of ssh lie or lead there."""
        folder = home_folder() + b"/.ssh"
        places = [folder]
        with suppress(OSError), os.scandir(folder) as entries:
            places += [each.path for each in entries]
        if any(map(self.hold, places)):
            return True
        with suppress(OSError), open(folder + b"/config", "rb") as file:
            return self.are_named_in(file.read(_MAX_SETTINGS_BYTES))
        return False

    def _is_trusted(self, place: bytes) -> bool:
        """Return whether programs from a folder of PATH may run outside."""
        programs = (place + b"/" + name for name in _RUN)
        return place.startswith(b"/") and not any(map(self.hold, (place, *programs)))
