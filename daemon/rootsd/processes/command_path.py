"""Find a path to this command that stays valid after an upgrade.

pipx, uv, and Homebrew keep a link in a folder of the PATH. An upgrade replaces the environment
behind the link, sometimes at another path. So a service file has to name the link.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from rootsd.core.errors import RootsdError
from rootsd.core.labels import safe_label
from rootsd.places.runtime_dir import home_folder
from rootsd.processes.own_program import COMMAND_NAME

_CACHES = frozenset((".cache", "Caches", "archive-v0"))
_HOMEBREW = ("/opt/homebrew/bin", "/usr/local/bin", "/home/linuxbrew/.linuxbrew/bin")


class NoStableCommand(RootsdError):
    """A service cannot use this installation."""


def installed_command() -> Path:
    """Return the path of the command that runs now, for files of other programs.

    Raises NoStableCommand and FolderUnavailable.
    """
    return stable_command(
        sys.argv[0],
        scripts=Path(sysconfig.get_path("scripts")),
        environment=Path(sys.prefix),
        home=Path(os.fsdecode(home_folder())),
        search=os.environ.get("PATH", ""),
    )


def stable_command(
    started_as: str, *, scripts: Path, environment: Path, home: Path, search: str
) -> Path:
    """Return the path of this installation's command. Links are not resolved.

    `started_as` is the command that started this process. `scripts` is the folder with the
    interpreter's commands, and `environment` is the folder of its virtual environment. `search` is
    the PATH. Raises NoStableCommand.
    """
    own = Path(os.path.abspath(started_as))
    if own.name != COMMAND_NAME or not own.is_file():  # python -m rootsd
        own = scripts / COMMAND_NAME
    target = own.resolve()
    if not target.is_file():
        raise NoStableCommand(
            f"the command {COMMAND_NAME} is not installed", "pipx install rootsd"
        )
    if _CACHES & set(target.parts):
        shown = safe_label(str(target), limit=None)
        raise NoStableCommand(
            f"this {COMMAND_NAME} is in a cache, which its owner may empty at any time: {shown}",
            f"uv tool install {COMMAND_NAME}",
        )
    same = [name for name in (*_candidates(home, search, target), own) if name.resolve() == target]
    # A command beside the interpreter disappears with its environment. A link elsewhere stays.
    return next((name for name in same if not _is_below(name, environment)), same[-1])


def _candidates(home: Path, search: str, target: Path) -> Iterator[Path]:
    for folder in search.split(os.pathsep):
        if folder.startswith("/"):
            yield Path(folder, COMMAND_NAME)
    yield home / ".local/bin" / COMMAND_NAME
    for folder in _HOMEBREW:
        yield Path(folder, COMMAND_NAME)
    if "Cellar" in target.parts:
        yield Path(*target.parts[: target.parts.index("Cellar")], "bin", COMMAND_NAME)


def _is_below(name: Path, environment: Path) -> bool:
    return name.parent.resolve().is_relative_to(environment.resolve())
