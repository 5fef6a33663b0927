"""Find the files and folders that an entry names, and that its wrapped server could not reach.

The wall shows a server the system, toolchains, caches, and the roots of the session. An entry may
name more: the file in which a server keeps its memory, a key, or the folders to which a person
limited it. A server that loses such a file may start with an empty one and say nothing. So every
path in the command and the variables is looked up, whether it stands alone, after `--option=`, in
a URI, or in a list. A path that does not exist yet counts, too: the server is going to create it.

A root does not count as reached, because a session elsewhere does not have it.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from msgspec import Struct

from rootsd.connect.launch import Launch
from rootsd.connect.wraps import PathUse, ShownPath
from rootsd.core.mount_plan import ViewEntryKind
from rootsd.core.parsing import Unparsable, parse_json
from rootsd.core.paths import contains
from rootsd.core.wall import WallSettings
from rootsd.wall.view.default_view import base_entries
from rootsd.wall.view.person_view import person_view
from rootsd.wall.view.program_folder import holds_home, program_folder

_LIST = re.compile(r"[:;,]")
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(.*)", re.DOTALL)
_LOCAL_HOST = re.compile(r"//(?:localhost)?(?=/)", re.IGNORECASE)
_GLUED = re.compile(r"-\w(?=[/~])")
_READ_ONLY = (".crt", ".key", ".pem", ".p12", ".pub", ".yaml", ".yml", ".toml")
_CODE_FLAGS = frozenset(("--directory", "--project", "--prefix", "--cwd", "--from", "-C"))
_CODE_FILES = ("package.json", "pyproject.toml", "deno.json", ".git")
_CODE_LEVELS = 4
_LAUNCHERS = re.compile(
    r"(?:node|npx|npm|pnpm|yarn|bunx?|deno|tsx|uvx?|pipx|python[\d.]*|ruby|perl|java|sh|bash|env)"
)
_VERBS = frozenset(("dlx", "exec", "run", "tool", "x"))
_STATE_PLACES = (".", ".config/", ".local/share/", ".local/state/", ".cache/")
_STATE = {"mcp-remote": (".mcp-auth",)}
_SHOWN = frozenset(
    (
        ViewEntryKind.READ, ViewEntryKind.WRITE, ViewEntryKind.SOCKET, ViewEntryKind.DEVICE,
        ViewEntryKind.CACHE, ViewEntryKind.TOOLS, ViewEntryKind.KEPT, ViewEntryKind.LINK,
    )
)  # fmt: skip
_KERNEL = ("/dev", "/proc", "/sys")
_SHARED = ("/", "/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - not used as a temporary folder
_MAX_PIECES = 1000


class NeedKind(Enum):
    """Why a server needs a path."""

    PROGRAM = "its program"
    CODE = "its code"
    DATA = "a file or folder that it uses"
    LIMIT = "a folder to which a person limited it"


class PathNeed(Struct, frozen=True):
    """A path that an entry names.

    * `origin`: where, as a person reads it.
    * `shown`: what to show to the server for it, None if that would show files of others, too.
    """

    path: str
    origin: str
    kind: NeedKind
    shown: ShownPath | None


class ReachableFiles:
    """What every server reaches behind the wall, without the roots."""

    def __init__(self, home: Path, settings: WallSettings) -> None:
        self.home = os.path.realpath(home)
        folder, user = os.fsencode(self.home), os.geteuid()
        # The client chooses the variables of its servers, so none counts.
        view = person_view(folder, user, {}, base_entries(folder, user))
        self._kinds = {entry.path: entry.kind for entry in view.entries}
        named = (*settings.read, *settings.write, *settings.keep)
        self._kinds |= {os.path.realpath(path): ViewEntryKind.READ for path in named}
        self._kinds |= {os.path.realpath(path): ViewEntryKind.HIDDEN for path in settings.hide}

    def has(self, path: str) -> bool:
        """Return whether a server sees the file or folder at an absolute path."""
        return self._has(os.fsencode(path)) and self._has(os.fsencode(os.path.realpath(path)))

    def _has(self, path: bytes) -> bool:
        if any(contains(os.fsencode(each), path) for each in _KERNEL):
            return True
        above = [each for each in self._kinds if contains(each, path)]
        return bool(above) and self._kinds[max(above, key=len)] in _SHOWN


def path_needs(launch: Launch, reachable: ReachableFiles, search: str) -> list[PathNeed]:
    """Return the paths that an entry names and a server does not reach, the program first.

    `search` is the PATH of the client.
    """
    found = [*_program(launch, reachable, search), *_named(launch, reachable.home)]
    if launch.folder:
        shown = ShownPath(PathUse.READ, launch.folder)
        found.insert(0, PathNeed(launch.folder, "its working directory", NeedKind.CODE, shown))
    needs: list[PathNeed] = []
    for need in found:
        if not reachable.has(need.path) and not is_covered(need, [each.shown for each in needs]):
            needs.append(need)
    return needs


def is_covered(need: PathNeed, shown: Sequence[ShownPath | None]) -> bool:
    """Return whether one of the paths `shown` holds the path of a need."""
    path = os.fsencode(os.path.realpath(need.path))
    places = [os.fsencode(os.path.realpath(each.path)) for each in shown if each is not None]
    return any(contains(place, path) for place in places)


def own_state(launch: Launch, reachable: ReachableFiles) -> list[ShownPath]:
    """Return the folders in the home folder in which the server keeps its own state, by name."""
    name = _package(launch.words)
    if not name:
        return []
    places = [f"{place}{name}" for place in _STATE_PLACES] + [*_STATE.get(name, ())]
    paths = [os.path.join(reachable.home, place) for place in places]
    return [
        ShownPath(PathUse.KEEP, path)
        for path in paths
        if os.path.isdir(path) and not os.path.islink(path) and not reachable.has(path)
    ]


def _package(words: Sequence[str]) -> str:
    """Return the name of the package that a command runs, without its scope and version."""
    left = [word for word in words if not word.startswith("-") and word not in _VERBS]
    if left and _LAUNCHERS.fullmatch(os.path.basename(left[0])):
        left = left[1:]
    if not left:
        return ""
    name = left[0].rpartition("/")[2] if left[0].startswith("@") else os.path.basename(left[0])
    name = re.split(r"[@=<>\[]", name)[0]
    return name if re.fullmatch(r"[A-Za-z0-9][\w.-]+", name) else ""


def _program(launch: Launch, reachable: ReachableFiles, search: str) -> Iterator[PathNeed]:
    program = launch.words[0]
    if "/" in program:
        program = os.path.join(launch.folder, _in_home(program, reachable.home))
    found = shutil.which(program, path=search)
    if found is None or reachable.has(found):
        return
    folder = program_folder(os.path.abspath(found), reachable.home)
    yield PathNeed(found, "its program", NeedKind.PROGRAM, ShownPath(PathUse.READ, folder))
    python = os.path.realpath(os.path.join(folder, "bin", "python"))
    if os.path.exists(os.path.join(folder, "pyvenv.cfg")) and not reachable.has(python):
        prefix = program_folder(python, reachable.home)
        shown = ShownPath(PathUse.READ, prefix)
        yield PathNeed(python, "its Python", NeedKind.PROGRAM, shown)


def is_environment(need: PathNeed) -> bool:
    """Return whether a need is a program in a virtual environment, or the Python of one."""
    folder = need.shown.path if need.shown is not None else ""
    is_venv = os.path.exists(os.path.join(folder, "pyvenv.cfg"))
    return need.kind is NeedKind.PROGRAM and (is_venv or need.origin == "its Python")


def _named(launch: Launch, home: str) -> Iterator[PathNeed]:
    base = launch.folder
    has_code = not _LAUNCHERS.fullmatch(os.path.basename(launch.words[0]))
    for flag, word in zip(launch.words, launch.words[1:], strict=False):
        for path in _paths_in(word, base, home):
            is_code = flag in _CODE_FLAGS or (not has_code and os.path.isfile(path))
            if is_code:
                has_code = True
                shown = ShownPath(PathUse.READ, _code_folder(path, home))
                yield PathNeed(path, "its command", NeedKind.CODE, shown)
            elif os.path.isdir(path):
                yield PathNeed(path, "its command", NeedKind.LIMIT, _data(path, home))
            else:
                yield PathNeed(path, "its command", NeedKind.DATA, _data(path, home))
    for name, text in launch.variables.items():
        for path in _paths_in(text, base, home):
            if path == home:
                continue  # a server always has a home folder, which the wall makes private
            if name.endswith("PATH") and os.path.isdir(path) and ":" in text:
                shown = ShownPath(PathUse.READ, path)
                yield PathNeed(path, name, NeedKind.CODE, shown)
            else:
                yield PathNeed(path, name, NeedKind.DATA, _data(path, home))


def _data(path: str, home: str) -> ShownPath | None:
    """Return what to show for a path that the server may change.

    A file needs its folder: servers write a new file beside it and rename that, or keep a journal
    there. A folder with the files of many programs is never shown.
    """
    if os.path.isfile(path) and path.endswith(_READ_ONLY):
        return ShownPath(PathUse.READ, path)
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    if _is_shared(folder, home) or not os.path.isdir(folder):
        return None
    return ShownPath(PathUse.WRITE, folder)


def _is_shared(folder: str, home: str) -> bool:
    """Return whether a folder has the files of many programs."""
    return folder in _SHARED or holds_home(folder, home)


def _code_folder(path: str, home: str) -> str:
    """Return the folder of a program's code: that of its package, or else the one around it."""
    if os.path.isdir(path):
        return path
    folder = os.path.dirname(path)
    for _ in range(_CODE_LEVELS):
        if _is_shared(folder, home):
            break
        if any(os.path.exists(os.path.join(folder, name)) for name in _CODE_FILES):
            return folder
        folder = os.path.dirname(folder)
    around = os.path.dirname(path)
    return path if _is_shared(around, home) else around


def _paths_in(text: str, base: str, home: str) -> Iterator[str]:
    """Yield the absolute paths in a word or a value that exist, or that can be created."""
    seen: set[str] = set()
    for piece in _pieces(text):
        path = _absolute(piece, base, home)
        if path is None or path in seen:
            continue
        seen.add(path)
        if os.path.lexists(path):
            yield path
            if piece == text:
                return  # not a list, although it may have a separator
            continue
        is_absolute = os.path.isabs(_in_home(piece, home))
        if is_absolute and not _LIST.search(piece) and _first_folder(path) != "/":
            yield path


def _pieces(text: str) -> Iterator[str]:
    """Yield a text and its parts that may be paths: after `=`, in a URI, and in a list."""
    left, seen = [text], set[str]()
    while left and len(seen) < _MAX_PIECES:
        piece = left.pop(0)
        if piece in seen or not piece or "\0" in piece:
            continue
        seen.add(piece)
        yield piece
        left += [*_inner(piece)]


def _inner(text: str) -> Iterator[str]:
    if (glued := _GLUED.match(text)) is not None:
        yield text[glued.end() :]
    if "=" in text:
        yield text.partition("=")[2]
    if (uri := _URI.fullmatch(text)) is not None:
        yield from _uri_paths(uri[2])
    if text[0] in '["{' and (texts := [*_json_texts(text)]):
        yield from texts
        return
    if _LIST.search(text) and uri is None:
        yield from _LIST.split(text)
    if any(map(str.isspace, text)) and text[0] not in "/~":
        try:
            yield from shlex.split(text)
        except ValueError:
            yield from text.split()


def _uri_paths(rest: str) -> Iterator[str]:
    if rest.startswith("//") and _LOCAL_HOST.match(rest) is None:
        return  # on another host
    path = _LOCAL_HOST.sub("", rest, count=1)
    plain = unquote(path)
    if not os.path.lexists(plain):
        plain = unquote(re.split(r"[?#]", path)[0])
    yield re.sub(r"^/+", "/", plain)
    yield plain.removeprefix("/")  # SQLAlchemy: three slashes begin a relative path


def _json_texts(text: str) -> Iterator[str]:
    def texts(value: Any) -> Iterator[str]:  # noqa: ANN401 - a JSON value
        match value:
            case str():
                yield value
            case list():
                for each in value:
                    yield from texts(each)
            case dict():
                yield from texts(list(value.values()))
            case _:
                pass

    with suppress(Unparsable):
        yield from texts(parse_json(text))


def _in_home(text: str, home: str) -> str:
    for prefix in ("~", "$HOME", "${HOME}"):
        if text == prefix or text.startswith(f"{prefix}/"):
            return home + text.removeprefix(prefix)
    return text


def _absolute(text: str, base: str, home: str) -> str | None:
    """Return the absolute path that a text names; None for a word that is none."""
    path = _in_home(text, home)
    if os.path.isabs(path):
        return os.path.normpath(re.sub(r"^/+", "/", path))
    joined = os.path.normpath(os.path.join(base, path)) if base else ""
    return joined if joined and os.path.lexists(joined) else None


def _first_folder(path: str) -> str:
    """Return the nearest folder above a path that exists."""
    folder = os.path.dirname(path)
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return folder
