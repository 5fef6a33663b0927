"""Where the files of an agent are. A variable can name another place for them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple


class Platform(Enum):
    """A system on which the settings of some clients have another place."""

    LINUX = "linux"
    MACOS = "darwin"


class HomeVariable(NamedTuple):
    """A variable that names another place on some `platforms`. `below` is the path from there."""

    name: str
    below: str = ""
    platforms: tuple[Platform, ...] = tuple(Platform)


class SettingsPlace(NamedTuple):
    """Where a file or a folder is: `linux` and `macos` are relative to the home folder.

    The first of the `variables` that is set names another place. Without `macos`, it has the same
    place on both systems.
    """

    linux: str
    macos: str = ""
    variables: tuple[HomeVariable, ...] = ()

    def locate(self, home: str, variables: Mapping[str, str], platform: Platform) -> str:
        """Return the absolute path. Its folder has no links, so each file has one path.

        A relative value of a variable is ignored: it would mean another file in each folder.
        """
        for variable in self.variables:
            value = variables.get(variable.name, "")
            if platform in variable.platforms and os.path.isabs(value):
                return _after_links(os.path.join(value, variable.below))
        below = self.macos if platform is Platform.MACOS and self.macos else self.linux
        return _after_links(os.path.join(home, below))


def moved_by(variable: str, folder: str, path: str = "", inside: str = "") -> SettingsPlace:
    """Return the place of `path` in `folder`, which a variable moves.

    The folder is then what the variable names, or `inside` that.
    """
    moved = HomeVariable(variable, os.path.join(inside, path).rstrip("/"))
    return SettingsPlace(os.path.join(folder, path).rstrip("/"), variables=(moved,))


class XdgFolder(NamedTuple):
    """A folder below the home folder that many programs share (XDG), and its variable."""

    variable: str
    usual: str

    def at(self, below: str) -> SettingsPlace:
        """Return the place of a file or a folder in it. It is the same on both systems."""
        moved = HomeVariable(self.variable, below)
        return SettingsPlace(f"{self.usual}/{below}", variables=(moved,))


CONFIG = XdgFolder("XDG_CONFIG_HOME", ".config")
DATA = XdgFolder("XDG_DATA_HOME", ".local/share")
STATE = XdgFolder("XDG_STATE_HOME", ".local/state")


def in_config_home(below: str, macos: str = "") -> SettingsPlace:
    """Return the place of a file in the base folder for settings (XDG), of Linux alone."""
    moved = HomeVariable("XDG_CONFIG_HOME", below, (Platform.LINUX,))
    return SettingsPlace(f".config/{below}", macos, (moved,))


def _after_links(path: str) -> str:
    folder, name = os.path.split(path.rstrip("/") or "/")
    return os.path.join(os.path.realpath(folder), name)
