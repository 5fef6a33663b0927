"""Find what a person's own settings name, so that it is visible behind the wall, too.

PATH and variables of tools name programs. The settings of shells and git name files, and links
lead to places where people keep their settings (stow, home-manager). `person_view` follows all of
these, reads nothing else, and changes nothing. `shown_paths` judges each path that it finds.

Whoever starts a program chooses its variables: an editor takes them from the settings of a
workspace. So a variable shows only a folder in which a tool is installed. A settings file with
secrets is shown as a copy without those lines.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from rootsd.core.labels import home_label, safe_label
from rootsd.core.mount_plan import ViewEntry, ViewEntryKind
from rootsd.core.paths import contains, text_of
from rootsd.core.secret_names import is_secret_name, secret_part
from rootsd.disk.git_settings import read_settings
from rootsd.disk.links import final_path, walk_links
from rootsd.disk.reader import read_small
from rootsd.wall.view import known_settings as known
from rootsd.wall.view.default_view import is_system
from rootsd.wall.view.secret_lines import has_literal_secret, without_secrets
from rootsd.wall.view.shown_paths import LeftOut, ShownPaths
from rootsd.wall.view.token_files import matches

_SOURCE = frozenset((b"source", b".", b"\\."))
_BEFORE_SOURCE = frozenset((b";", b"then", b"&&", b"||", b"{", b"do", b"builtin"))
# A link of Fedora with ostree, to /var/home and /var/roothome.
_HOMES = (b"/home", b"/root")
_ELF = b"\x7fELF"
_TOO_MANY = "it has too many files to look for secrets in them"
_MAX_BYTES = 256 << 10
_MAX_SCRIPT_BYTES = 64 << 10
_MAX_NAMES = 2000
_MAX_FILES = 100  # of a folder of settings
_MAX_DEPTH = 8  # of files that name files


class PersonView(NamedTuple):
    """The entries of the view, and what is left out."""

    entries: tuple[ViewEntry, ...]
    left_out: tuple[LeftOut, ...] = ()


def person_view(
    home: bytes,
    uid: int,
    environment: Mapping[bytes, bytes],
    base: Iterable[ViewEntry],
    roots: Iterable[bytes] = (),
    denied: Iterable[bytes] = (),
) -> PersonView:
    """Return the `base` of the view with what the person's environment and settings name.

    `home` is real. The `roots` are visible anyway, and nothing in a `denied` folder is. Other
    projects are known by their markers.
    """
    shown = ShownPaths(home, uid, roots, denied)
    shown.add_dotfiles((*known.SETTINGS, *known.SHELL_SETTINGS, *known.GIT_SETTINGS))
    shown.add_base(base)
    finder = _Finder(shown, environment)
    finder.add_names_of_home()
    finder.add_tools()
    finder.add_programs()
    finder.add_settings()
    return PersonView(tuple(shown.entries()), tuple(shown.left_out.values()))


class _Finder:
    """Finds what a person's environment and settings name, and adds it to what is shown."""

    def __init__(self, shown: ShownPaths, environment: Mapping[bytes, bytes]) -> None:
        self._shown = shown
        self._environment = environment
        self._done: set[bytes] = set()
        self._alias = os.path.normpath(environment.get(b"HOME", b"") or shown.home)

    def add_names_of_home(self) -> None:
        """Add the links by which the home folder has other names, which files may hold."""
        for name in (*_HOMES, self._alias):
            with suppress(OSError):  # a loop of links leads nowhere
                steps = list(walk_links(name)) if name.startswith(b"/") else []
                if steps and contains(steps[-1][0], self._shown.home):
                    for path, target in steps:
                        if target is not None and not self._shown.is_shown(path):
                            reason = "another name of the home folder"
                            self._shown.put(ViewEntry(path, ViewEntryKind.LINK, reason, target))

    # Programs

    def add_tools(self) -> None:
        """Add the folders of tools, or parts of them, that variables name."""
        for variable, usual, *marks in _rows(known.TOOL_VARIABLES):
            if (place := self._moved(variable, usual)) is not None:
                named_by = f"variable {text_of(variable)}"
                if any(os.path.exists(place + b"/" + mark) for mark in marks):
                    self._shown.add(place, named_by, ViewEntryKind.TOOLS)
                else:
                    self._shown.leave_out(
                        place, named_by, "it does not look like a folder of this tool"
                    )
        for kind, table in known.PART_VARIABLES.items():
            for path, named_by in self._moved_parts(table):
                self._shown.add(path, named_by, kind)
        for path, named_by in self._moved_parts(known.SETTINGS_VARIABLES):
            self._add_shell_settings(path, named_by)

    def _moved_parts(self, table: str) -> Iterator[tuple[bytes, str]]:
        for variable, usual, *parts in _rows(table):
            if (place := self._moved(variable, usual)) is not None:
                for part in parts:
                    yield place + b"/" + part, f"variable {text_of(variable)}"

    def _moved(self, variable: bytes, usual: bytes) -> bytes | None:
        """Return the folder that a variable names, if it is not the usual one or visible anyway.

        The files in which tools keep logins are hidden there, too.
        """
        place = self._at_home(self._environment.get(variable, b"").split(b":")[0])
        if not place.startswith(b"/") or place == self._shown.home + b"/" + usual:
            return None
        real = final_path(place)
        is_above = contains(real, self._shown.home)
        if is_above or is_system(real) or self._shown.is_shown(real) or not os.path.isdir(real):
            return None
        self._shown.hide_tokens(place, usual)
        return place

    def add_programs(self) -> None:
        """Add the folders of PATH, and what the programs in them need."""
        search = self._environment.get(b"PATH", b"")
        drives = _windows_drives() if b"WSL_DISTRO_NAME" in self._environment else []
        usual = [self._shown.home + b"/" + name for name in known.OWN_PROGRAM_FOLDERS]
        for folder in dict.fromkeys(map(self._at_home, (*search.split(b":"), *usual))):
            real = final_path(folder) if folder.startswith(b"/") else b"/usr"
            if any(contains(drive, real) for drive in drives):
                self._shown.leave_out(folder, "PATH", "programs of Windows cannot start inside")
                continue
            is_known = self._shown.is_shown(real)  # of these, only the usual ones have links out
            if is_system(real) or not os.path.isdir(real) or (is_known and folder not in usual):
                continue
            files = [*islice(_files_below(folder), _MAX_NAMES + 1)]
            if not is_known and os.path.basename(folder) not in known.PROGRAM_FOLDERS:
                self._shown.refuse(
                    folder, "PATH", "its name does not say that only programs are in it"
                )
            elif not is_known and len(files) > _MAX_NAMES:
                self._shown.refuse(folder, "PATH", _TOO_MANY)
            elif is_known or self._add_programs_at(folder) is not None:
                for path in files:
                    self._add_program(path) if os.path.islink(path) else self._look_into(path)

    def _add_programs_at(self, folder: bytes) -> bytes | None:
        """Add a folder of PATH. Where npm installs its global packages, it can install inside."""
        above = os.path.dirname(folder)
        is_prefix = os.path.isdir(above + b"/lib/node_modules")
        kind = ViewEntryKind.TOOLS if is_prefix else ViewEntryKind.READ
        place = self._shown.add(folder, "PATH", kind)
        if place is not None and above[len(self._shown.home) + 1 :] not in (b"", *known.WIDE):
            for name in known.INSTALLED_BESIDE:
                self._shown.add(above + b"/" + name, "PATH", kind)
        return place

    def _add_program(self, path: bytes, depth: int = _MAX_DEPTH) -> None:
        """Add the installation of a program, of the links to it, and of its interpreter."""
        is_new = depth and path not in self._done and not is_system(path)
        if not is_new or not os.path.isfile(path) or not os.access(path, os.X_OK):
            return
        self._done.add(path)
        if not self._shown.is_shown(path):
            program = safe_label(os.path.basename(path))
            where = self._installation(path)
            self._shown.add(where, f"the program {program}", ViewEntryKind.TOOLS)
        if os.path.islink(path):
            target = os.path.join(os.path.dirname(path), os.readlink(path))
            self._add_program(os.path.normpath(target), depth - 1)
        elif self._shown.is_shown(path):
            self._look_into(path, depth - 1)

    def _look_into(self, path: bytes, depth: int = _MAX_DEPTH) -> None:
        """Hide a file among programs that holds a secret, and add the interpreter of a script."""
        text = _text_of_program(path)
        is_program = os.access(path, os.X_OK)
        part = path if is_secret_name(os.path.basename(path)) else None
        if not is_program:
            part = part or secret_part(path.removeprefix(self._shown.home))
        if part is not None or _without_secrets(path, text) != text:
            self._shown.hide(path, "PATH", "it looks like a secret, or holds one")
        elif text.startswith(b"#!/") and (words := text[2:].partition(b"\n")[0].split()):
            self._add_program(os.path.normpath(words[0]), depth)

    def _installation(self, program: bytes) -> bytes:
        """Return the folder to show for a program: an installation, a part of it, or the file."""
        if self._shown.is_dotfile(program):
            return program
        parts = program.split(b"/")
        start = self._shown.home.count(b"/") + 1 if contains(self._shown.home, program) else 2
        for at in range(start, len(parts) - 1):
            if parts[at] in known.PROGRAM_PARTS:
                top = b"/".join(parts[:at])
                beside = (os.path.exists(top + b"/" + name) for name in known.INSTALLED_BESIDE)
                is_wide = at == start or top[len(self._shown.home) + 1 :] in known.WIDE
                return top if not is_wide and any(beside) else top + b"/" + parts[at]
        return program

    # Settings

    def add_settings(self) -> None:
        """Add the settings without secrets, and the files that they name."""
        for name in known.GIT_SETTINGS:
            self._add_git_settings(self._shown.home + b"/" + name, "settings of git", name)
        for name in known.SHELL_SETTINGS:
            self._add_shell_settings(self._shown.home + b"/" + name, "settings of shells", name)
        for name in known.SETTINGS:
            self._add_setting(self._shown.home + b"/" + name, "settings", name)
        for pattern in known.WRITTEN_IN_TOOLS:
            for path in matches(self._shown.home, pattern):
                if self._shown.is_shown(path) and os.path.isfile(path):
                    self._add_file(path, "settings in a toolchain")

    def _add_git_settings(
        self, path: bytes, named_by: str, name: bytes = b"", depth: int = _MAX_DEPTH
    ) -> None:
        for setting, value in read_settings(self._new_text(path, named_by, name, depth)):
            file = os.path.join(os.path.dirname(path), self._expanded(value))
            by = f"git's {safe_label(setting)}"
            if setting == "include.path" or setting.startswith("includeif."):
                self._add_git_settings(file, by, depth=depth - 1)
            elif setting in known.GIT_FILES and file != os.path.dirname(path) + b"/":
                self._add_setting(file, by)
            elif setting.startswith("alias.") and value.startswith((b"!/", b"!~/", b"!$HOME/")):
                self._add_setting(self._expanded(value[1:].split()[0]), by)

    def _add_shell_settings(
        self, path: bytes, named_by: str, name: bytes = b"", depth: int = _MAX_DEPTH
    ) -> None:
        text = self._new_text(path, named_by, name, depth)
        for file in map(self._expanded, _sourced(text)):
            if file.startswith(b"/") and not is_system(file) and not set(file) & set(b"$*?[`"):
                sourced_by = f"what {home_label(path, self._shown.home)} reads"
                self._add_shell_settings(file, sourced_by, depth=depth - 1)

    def _new_text(self, path: bytes, named_by: str, name: bytes, depth: int) -> bytes:
        """Add a file of settings, and return its text if it may name files that are not known."""
        text = None if os.path.isdir(path) else self._add_setting(path, named_by, name)
        if text is None or path in self._done or not depth:
            return b""
        self._done.add(path)
        return text

    def _expanded(self, word: bytes) -> bytes:
        """Return a word of a person's settings with the home folder in it."""
        for start in (b"~/", b"$HOME/", b"${HOME}/"):
            if word.startswith(start):
                return self._shown.home + b"/" + word[len(start) :]
        return word

    def _add_setting(self, path: bytes, named_by: str, name: bytes = b"") -> bytes | None:
        """Add a file, or a folder of files, without what looks like secrets.

        Return the text of the file that is shown, or None. A file with a known `name`, such as
        `.npmrc`, may have the name of a secret.
        """
        place = self._shown.follow(path, named_by, name)
        if place is None or is_system(place):
            return None if place is None else read_small(final_path(place), _MAX_BYTES)
        if not os.path.isdir(place):
            return self._add_file(place, named_by)
        if place in self._done:  # a link in it may lead to it
            return None
        self._done.add(place)
        files = list(islice(_files_below(place), _MAX_FILES + 1))
        if len(files) > _MAX_FILES and not self._shown.is_shown(place):
            self._shown.leave_out(path, named_by, _TOO_MANY)
        elif all(self._is_clean(each) for each in files):
            self._shown.show(place, named_by)
        else:
            for each in files:
                self._add_setting(each, named_by)
        return None

    def _add_file(self, path: bytes, named_by: str) -> bytes | None:
        text = read_small(final_path(path), _MAX_BYTES)
        if text is None:
            return None
        clean = text if self._shown.is_in_root(path) else _without_secrets(path, text)
        if clean == text:
            self._shown.show(path, named_by)
        elif clean is None:
            self._shown.hide(path, named_by, "it holds what looks like a secret, or is too long")
        else:
            self._shown.leave_out(
                path, named_by, "programs get a copy without the lines with secrets"
            )
            reason = f"{named_by}; a copy without the lines with secrets"
            self._shown.put(ViewEntry(path, ViewEntryKind.COPY, reason, content=clean))
        return clean

    def _is_clean(self, path: bytes) -> bool:
        if os.path.islink(path) or secret_part(os.path.basename(path)) is not None:
            return False
        text = read_small(final_path(path), _MAX_BYTES)
        return text is not None and _without_secrets(path, text) == text

    def _at_home(self, path: bytes) -> bytes:
        """Return a path of the environment with the real home folder in it."""
        path = b"/" + os.path.normpath(path).lstrip(b"/") if path.startswith(b"/") else b""
        is_inside = self._alias != b"/" and contains(self._alias, path)
        return self._shown.home + path[len(self._alias) :] if is_inside else path


def _windows_drives() -> list[bytes]:
    """Return where WSL has mounted drives of Windows. To list a folder there is slow."""
    try:
        with open("/proc/self/mountinfo", "rb") as file:
            lines = [line.partition(b" - ") for line in file]
    except OSError:
        return []
    return [
        mount.split(b" ")[4].replace(b"\\040", b" ")
        for mount, _, source in lines
        if b"drvfs" in source
    ]


def _rows(table: str) -> Iterator[list[bytes]]:
    rows = table.encode().replace(b"\n", b"|").split(b"|")
    return (row.split() for row in rows if row.strip())


def _without_secrets(path: bytes, text: bytes) -> bytes | None:
    """Return the text of a file without secrets. A program is shown as it is, or not at all.

    JSON with a secret becomes an empty object: it could not be read without single lines.
    """
    if len(text) == _MAX_BYTES:
        return None
    if os.access(path, os.X_OK):
        return None if has_literal_secret(text) else text
    clean = without_secrets(text)
    return b"{}\n" if clean not in (None, text) and text.startswith(b"{") else clean


def _text_of_program(path: bytes) -> bytes:
    """Return the start of a script or another text, or nothing for a binary file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return b""
    with open(fd, "rb", 0) as file:
        text = file.read(len(_ELF)) or b""
        text += b"" if text == _ELF else file.read(_MAX_SCRIPT_BYTES) or b""
    return b"" if b"\0" in text or text == _ELF else text


def _files_below(folder: bytes) -> Iterator[bytes]:
    """Yield the files and links in a folder. It may have at most a few levels."""
    for above, folders, files in os.walk(folder):
        yield from (above + b"/" + name for name in files)
        yield from (above + b"/" + name for name in folders if os.path.islink(above + b"/" + name))


def _sourced(text: bytes) -> Iterator[bytes]:
    """Yield the files that a shell reads, as they are written. It is a guess."""
    for line in text.splitlines():
        words = line.replace(b";", b" ; ").split()
        for at, word in enumerate(words[:-1]):
            is_start = at == 0 or words[at - 1] in _BEFORE_SOURCE
            if word in _SOURCE and is_start:
                yield words[at + 1].strip(b"\"'")
