"""Guess what a first run needs: folders to watch, and the shell.

A guess is never more than a question. The search below the home folder reads names only, and it
is bounded: it must not hang on a large disk.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from rootsd.exposure.survey import MAX_SECONDS, find_projects
from rootsd.files.repository_folder import is_repository, repository_around
from rootsd.places.base_folders import named_folder

USUAL_NAMES = (
    "src", "code", "Code", "projects", "Projects", "dev", "Developer", "Development", "git",
    "go/src", "repos", "work", "workspace", "Documents/GitHub",
)  # fmt: skip


class ParentGuess(Struct, frozen=True):
    """A folder that may hold projects, and how many repositories the search found in it."""

    path: Path
    repositories: int


def guess_parents(home: Path, cwd: Path) -> list[ParentGuess]:
    """Return the folders to offer as parents, the one around `cwd` first.

    A repository counts for the usual folder that contains it, else for the folder directly below
    `home`. A repository that lies directly in `home` counts for none: its parent would be the
    whole home folder.
    """
    found: Counter[Path] = Counter()
    end = time.monotonic() + MAX_SECONDS
    for path in find_projects((os.fsencode(home),), end):
        repository = Path(os.fsdecode(path))
        parent = _parent_of(repository, home) if is_repository(repository) else None
        if parent is not None:
            found[parent] += 1
    here = repository_around(cwd)
    if here is not None and here.is_relative_to(home):
        around = _parent_of(here, home)
    else:
        around = None if here is None else here.parent
    if around is not None and not found[around]:
        found[around] = 1
    guesses = [ParentGuess(path, count) for path, count in found.items() if count]
    return sorted(guesses, key=lambda guess: (guess.path != around, -guess.repositories))


class ShellLine(Struct, frozen=True):
    """A line in the start-up file of a shell that loads the output of `rootsd VERB`."""

    verb: str
    shell: str
    file: Path
    line: str

    def is_there(self) -> bool:
        """Return whether the file loads this output already."""
        try:
            return f"rootsd {self.verb}" in self.file.read_text("utf-8", "replace")
        except OSError:
            return False

    def append(self) -> None:
        """Append the line to the file. Raises OSError."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a", encoding="utf-8") as stream:
            stream.write(f"\n{self.line}\n")


def shell_line(verb: str, home: Path, environment: Mapping[str, str]) -> ShellLine | None:
    """Return the line for the login shell of the user, or None for another shell."""
    match os.path.basename(environment.get("SHELL", "")):
        case "bash":
            return ShellLine(verb, "bash", home / ".bashrc", f'eval "$(rootsd {verb} bash)"')
        case "zsh":
            folder = Path(environment.get("ZDOTDIR") or home)
            return ShellLine(verb, "zsh", folder / ".zshrc", f'eval "$(rootsd {verb} zsh)"')
        case "fish":
            folder = Path(named_folder("XDG_CONFIG_HOME", environment) or home / ".config")
            file = folder / "fish" / "config.fish"
            return ShellLine(verb, "fish", file, f"rootsd {verb} fish | source")
        case _:
            return None


def _parent_of(repository: Path, home: Path) -> Path | None:
    for name in USUAL_NAMES:
        usual = home / name
        if repository != usual and repository.is_relative_to(usual):
            return usual
    inside = repository.relative_to(home).parts
    return home / inside[0] if len(inside) > 1 else None
