"""Find the path under which this command still exists after an upgrade.

pipx, uv and Homebrew put a link into a folder of the PATH and keep it, while the environment it
leads to is made anew, sometimes at another path. A service has to name the link.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from rootsd.core.errors import RootsdError
from rootsd.core.labels import safe_label

COMMAND_NAME = "rootsd"
_CACHES = frozenset((".cache", "Caches", "archive-v0"))
_HOMEBREW = ("/opt/homebrew/bin", "/usr/local/bin", "/home/linuxbrew/.linuxbrew/bin")


class NoStableCommand(RootsdError):
    """This installation is none that a service can be made of."""


def stable_command(
    started_as: str, *, scripts: Path, environment: Path, home: Path, search: str
) -> Path:
    """The path to start this installation by, not resolved.

    `started_as` is how this process was started, `scripts` and `environment` are where its
    interpreter keeps commands and everything, `search` is the PATH. Raises NoStableCommand.
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
            f"this {COMMAND_NAME} lies in a cache, which is emptied now and then: {shown}",
            f"uv tool install {COMMAND_NAME}",
        )
    same = [name for name in (*_candidates(home, search, target), own) if name.resolve() == target]
    # A copy beside the interpreter goes with its environment; a link elsewhere outlives it.
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
