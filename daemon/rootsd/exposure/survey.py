"""Find the repositories and the secrets of a person, by names alone and in bounded time."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from rootsd import agents
from rootsd.agents.forms.reach import AgentHome
from rootsd.core.exclusion import ExclusionReason
from rootsd.core.model import NestedPolicy
from rootsd.core.secret_names import is_secret_name, secret_part
from rootsd.disk.hung_mounts import may_follow
from rootsd.disk.markers import WalkRules
from rootsd.disk.mounts import list_mounts, mount_points
from rootsd.disk.walk import Walker, WalkFolder
from rootsd.vcs.facts import find_secrets
from rootsd.wall.git.wall_folders import names_in

_DEPTH = 4
MAX_SECONDS = 5.0
"""The longest time for a search."""
_MAX_NAMES = 4_000
# Folders of the home folder whose members can be logins.
_BELOW_HOME = (b"", b".config")


class Survey(Struct, frozen=True):
    """The secrets of each repository, by its path, and those of the home folder.

    `is_whole` says whether everything was looked at.
    """

    repositories: Mapping[str, tuple[str, ...]]
    home_secrets: tuple[str, ...]
    is_whole: bool

    def below(self, folders: Iterable[str]) -> Survey:
        """Return what of it lies in these folders."""
        tops = tuple(f"{folder.rstrip('/')}/" for folder in folders)

        def is_in(path: str) -> bool:
            return f"{path}/".startswith(tops)

        inside = {path: names for path, names in self.repositories.items() if is_in(path)}
        return Survey(inside, tuple(filter(is_in, self.home_secrets)), self.is_whole)

    @property
    def secrets(self) -> list[str]:
        """The paths of all files and folders that look like secrets."""
        return [
            *self.home_secrets,
            *(each for files in self.repositories.values() for each in files),
        ]


def survey(home: AgentHome, parents: Iterable[bytes]) -> Survey:
    """Look below the home folder and the configured `parents`. Raises nothing."""
    end = time.monotonic() + MAX_SECONDS
    found: dict[str, tuple[str, ...]] = {}
    is_whole = True
    for path in find_projects((os.fsencode(home.home), *parents), end):
        secrets, is_read = find_secrets(path)
        name = os.fsdecode(path)
        found[name] = tuple(os.path.join(name, each["path"]) for each in secrets)
        is_whole = is_whole and is_read
    return Survey(found, tuple(_home_secrets(home)), is_whole and time.monotonic() < end)


def find_projects(tops: Iterable[bytes], end: float) -> Iterator[bytes]:
    """Yield the projects a few levels below these folders, until `end` of the monotonic clock."""
    found = set[bytes]()
    stops = dict.fromkeys(mount_points(list_mounts()), ExclusionReason.MOUNT)
    for top in filter(may_follow, tops):
        rules = WalkRules(
            _DEPTH,
            NestedPolicy.NONE,
            stops={point: why for point, why in stops.items() if point != top},
            top_is_project=False,
        )
        walk = Walker(rules).walk(
            WalkFolder(top, _DEPTH, top=True), cancelled=lambda: time.monotonic() > end
        )
        for listing in walk.listings:
            path = listing.place.path
            if time.monotonic() > end:
                return
            if listing.kind is not None and path not in found:
                found.add(path)
                yield path


def _home_secrets(home: AgentHome) -> Iterable[str]:
    """Yield the logins of programs and agents in the home folder."""
    top = os.fsencode(home.home)
    for below in _BELOW_HOME:
        folder = os.path.join(top, below)
        for name in names_in(folder, _MAX_NAMES):
            is_looked_at = below or name.startswith(b".") or is_secret_name(name)
            if is_looked_at and secret_part(name):
                yield os.fsdecode(os.path.join(folder, name))
    for agent in agents.files_with("state"):
        for each in agent.state().folders:
            place = each.place.locate(home.home, home.variables, home.platform)
            yield from (
                path for name in each.credentials if os.path.lexists(path := f"{place}/{name}")
            )
